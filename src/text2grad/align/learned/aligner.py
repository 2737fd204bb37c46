"""The parts of a completion that a comment is about, if it neither quotes nor names them.

Prose is classified word by word, programs statement by statement: features of spelling and, where a policy is given, of
its attention go into small boosted trees that were trained on human comments (`benchmarks/train_freeform.py`). The
confidence of a place is calibrated on comments that were not trained on: seven in ten places with 0.7 are right.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from text2grad.align.answer.program import Program, extract_program, find_statements
from text2grad.align.learned.boosted_trees import BoostedTrees
from text2grad.align.learned.statement_features import compute_statement_features
from text2grad.align.learned.word_features import Matrix, compute_word_features
from text2grad.align.weight_files import load_weights
from text2grad.errors import UserError
from text2grad.schema import Range
from text2grad.text.whitespace import PUNCTUATION, WhitespaceWord
from text2grad.text.words import consecutive_runs

if TYPE_CHECKING:
    from text2grad.align.learned.attention_features import Scorer  # imports transformers

Probabilities = NDArray[np.float64]
Place = tuple[Range, float]  # characters of the completion, the calibrated confidence

NEIGHBOURS = (-2, -1, 0, 1, 2)  # words whose attention score is a feature, relative to the word
ATTENTION_COLUMNS = [f"heads[{step:+d}]" for step in NEIGHBOURS]
PADDING_SCORE = -6.0  # beyond the ends of the completion
_MAX_GAP = 3  # words between two selected runs that are selected too if they are almost probable enough
_GAP_THRESHOLD = 0.8  # of the threshold
_MIN_THRESHOLD = 0.1
_MIN_SHARED_WORDS = 0.1  # of a completion's words; function words alone reach that if the prompt is its source
_BEGINNING = 500  # characters of a prompt that are compared first
_MIN_STATEMENT_THRESHOLD = 0.08  # a comment on a program is nearly always about some statement
_WORD = re.compile(r"\w+")
_NOT_CODE_ALONE = (ast.Expr, ast.Pass)


def locate(comment: str, completion: str, prompt: str | None = None, *, scorer: Scorer | None = None) -> list[Place]:
    """Return the parts of `completion` that `comment` is about, in order; none if none is probable enough.

    prompt: the source or the question, where there is one; words that a source does not contain are suspect.
    scorer: attention features (`attention.AttentionScorer`) in addition to spelling; not used for texts that are too
    long for it.
    """
    if not comment.strip() or not completion.strip():
        return []
    program = find_program(completion, prompt)
    if program is not None:
        return locate_statements(comment, program)
    return locate_words(comment, completion, prompt, scorer)


def find_program(completion: str, prompt: str | None) -> Program | None:
    """Return the program of a completion that has statements; prose that happens to parse ("Paris") is none."""
    program = extract_program(completion, prompt or "")
    statements = find_statements(program).values() if program else []
    return None if all(isinstance(statement.node, _NOT_CODE_ALONE) for statement in statements) else program


def locate_words(
    comment: str,
    completion: str,
    prompt: str | None = None,
    scorer: Scorer | None = None,
    hints: Sequence[tuple[Range, float]] = (),
) -> list[Place]:
    """Return the runs of words in a completion in prose that the comment is about.

    hints: places that other sources propose, with the log-odds that are added to those of their words.
    """
    words, probabilities = predict_word_probabilities(comment, completion, source_or_none(prompt, completion), scorer)
    model = _load_model("words" if scorer is None else "heads")
    if not len(probabilities) or probabilities.max() < model.gate:
        return []
    for (start, end), log_odds in hints:
        inside = np.array([word.start < end and start < word.end for word in words], dtype=bool)
        probabilities[inside] = _shift(probabilities[inside], log_odds)
    places = []
    threshold = expected_f1_threshold(probabilities) if model.threshold is None else model.threshold
    for run in consecutive_runs(np.flatnonzero(select_words(probabilities, threshold)).tolist()):
        start, end = _strip_punctuation(completion, words[run.start].start, words[run.stop - 1].end)
        if start < end:
            places.append(((start, end), model.calibrate(float(probabilities[run.start : run.stop].mean()))))
    return places


def locate_statements(comment: str, program: Program) -> list[Place]:
    """Return the statements that are probable enough, or else the most probable one."""
    statements = list(find_statements(program).values())
    model = _load_model("statements")
    probabilities = model.trees.predict_proba(*compute_statement_features(comment, statements, program))
    assert model.threshold is not None
    threshold = min(model.threshold, max(_MIN_STATEMENT_THRESHOLD, float(probabilities.max(initial=0.0))))
    places = []
    for statement, probability in zip(statements, probabilities, strict=True):
        place = program.span(*statement.extent())
        if probability >= threshold and place is not None:
            places.append((place, model.calibrate(float(probability))))
    return places


def predict_word_probabilities(
    comment: str, completion: str, prompt: str | None = None, scorer: Scorer | None = None
) -> tuple[list[WhitespaceWord], Probabilities]:
    """Return the words of a completion in prose, and the probability that the comment is about each, (words,)."""
    words, names, matrix = compute_word_features(comment, completion, prompt)
    attention = scorer.score_words(comment, completion, prompt, words) if scorer and words else None
    if attention is None:
        return words, _load_model("words").trees.predict_proba(names, matrix)
    model = _load_model("heads")
    scores = stack_neighbours(_head_scores(attention, model.head_weights))
    return words, model.trees.predict_proba([*names, *ATTENTION_COLUMNS], np.hstack([matrix, scores]))


def stack_neighbours(scores: Matrix) -> Matrix:
    """Return each word's score and those of its neighbours: (words,) to (words, len(NEIGHBOURS))."""
    reach = max(NEIGHBOURS)
    padded = np.pad(scores, reach, constant_values=PADDING_SCORE)
    columns = [padded[reach + step : reach + step + len(scores)] for step in NEIGHBOURS]
    return np.stack(columns, axis=1).astype(np.float32)


def expected_f1_threshold(probabilities: Probabilities) -> float:
    """Return the threshold above which the selected words have the best expected F1: 2 * sum of p / (k + sum of all p).

    It is lower where no word is probable, so that what is likely right is not cut where everything is uncertain.
    """
    ranked = np.sort(probabilities)[::-1]
    f1 = 2 * np.cumsum(ranked) / (np.arange(1, len(ranked) + 1) + ranked.sum())
    return max(_MIN_THRESHOLD, float(ranked[f1.argmax()]))


def select_words(probabilities: Probabilities, threshold: float) -> NDArray[np.bool_]:
    """Select the words that reach the threshold, and short gaps between them that almost do."""
    selected = probabilities >= threshold
    result = selected.copy()
    for before, after in pairwise(np.flatnonzero(selected)):
        gap = slice(before + 1, after)
        if after - before - 1 <= _MAX_GAP and (probabilities[gap] >= _GAP_THRESHOLD * threshold).all():
            result[gap] = True
    return result


def source_or_none(prompt: str | None, completion: str) -> str | None:
    """Return the prompt if the completion draws on it; compared with a mere question every word would be suspect."""
    return prompt if _draws_on(completion, prompt or "") else None


@lru_cache(maxsize=16)
def _draws_on(completion: str, prompt: str) -> bool:
    words = _WORD.findall(completion.casefold())
    beginning = _WORD.findall(prompt[:_BEGINNING].casefold())[:-1]  # its last word may be cut; it nearly always decides
    return _shares_words(words, beginning) or _shares_words(words, _WORD.findall(prompt.casefold()))


def _shares_words(words: Sequence[str], source: Sequence[str]) -> bool:
    known = frozenset(source)
    return sum([word in known for word in words]) >= _MIN_SHARED_WORDS * len(words)


def _shift(probabilities: Probabilities, log_odds: float) -> Probabilities:
    odds = probabilities / (1 - probabilities).clip(1e-9) * np.exp(log_odds)
    shifted: Probabilities = odds / (1 + odds)
    return shifted


def _strip_punctuation(text: str, start: int, end: int) -> Range:
    piece = text[start:end]
    return start + len(piece) - len(piece.lstrip(PUNCTUATION)), end - (len(piece) - len(piece.rstrip(PUNCTUATION)))


class _Model(NamedTuple):
    trees: BoostedTrees
    threshold: float | None  # None: the one with the best expected F1, comment by comment
    gate: float  # the largest probability of a comment's words below which it is about none of them
    calibration: NDArray[np.float64]  # (2, knots): mean probability, share of places that were right
    head_weights: NDArray[np.float64]  # the bias last; empty for models without attention

    def calibrate(self, probability: float) -> float:
        """Return the confidence of a place with this mean probability."""
        return float(np.interp(probability, *self.calibration))


@lru_cache
def _load_model(name: str) -> _Model:
    return parse_model(load_weights("text2grad.align.learned", name))


def parse_model(data: dict[str, Any]) -> _Model:
    """Build a model from parsed JSON, as `benchmarks/train_freeform.py` writes it."""
    weights = np.array(data.get("weights", []), dtype=np.float64)
    trees = BoostedTrees.from_dict(data["trees"])
    return _Model(trees, data["threshold"], data["gate"], np.array(data["calibration"]), weights)


def _head_scores(attention: Matrix, weights: NDArray[np.float64]) -> Matrix:
    if attention.shape[1] != len(weights) - 1:
        raise UserError(
            "the aligner's attention weights were trained with the default model, smollm2; "
            "give a policy that was trained from it, or align without a model"
        )
    scores: Matrix = (attention @ weights[:-1] + weights[-1]).astype(np.float32)
    return scores
