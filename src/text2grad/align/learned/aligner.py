"""The parts of a completion that a comment is about, if it quotes nothing.

Prose is classified word by word, programs statement by statement: features of spelling and, where a policy is given, of
its attention go into small boosted trees that were trained on human comments (`benchmarks/train_freeform.py`). Their
probabilities are calibrated: of the words with 0.7, the comment is about seven in ten.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from importlib.resources import files
from itertools import pairwise
from statistics import mode
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from text2grad.align.code_comments import align_code_comment
from text2grad.align.learned.boosted_trees import BoostedTrees
from text2grad.align.learned.statement_features import compute_statement_features
from text2grad.align.learned.word_features import Matrix, compute_word_features
from text2grad.align.program import Program, Statement, extract_program, find_statements
from text2grad.align.stance import detect_stances
from text2grad.errors import UserError
from text2grad.schema import Label, Range, Span
from text2grad.text.whitespace import PUNCTUATION, WhitespaceWord, split_words
from text2grad.text.words import consecutive_runs

if TYPE_CHECKING:
    from text2grad.align.learned.attention_features import Scorer  # imports transformers

Probabilities = NDArray[np.float64]
_Place = tuple[Range, float]  # characters of the completion, the confidence

NEIGHBOURS = (-2, -1, 0, 1, 2)  # words whose attention score is a feature, relative to the word
ATTENTION_COLUMNS = [f"heads[{step:+d}]" for step in NEIGHBOURS]
PADDING_SCORE = -6.0  # beyond the ends of the completion
_MAX_GAP = 3  # words between two selected runs that are selected too if they are almost probable enough
_GAP_THRESHOLD = 0.8  # of the threshold
_MIN_SHARED_WORDS = 0.1  # of a completion's words; function words alone reach that if the prompt is its source
_MIN_STATEMENT_THRESHOLD = 0.08  # a comment on a program is nearly always about some statement
_NOT_CODE_ALONE = (ast.Expr, ast.Pass)


def align_comment(
    comment: str,
    completion: str,
    prompt: str | None = None,
    *,
    scorer: Scorer | None = None,
    label: Label | None = None,
    critic: str = "",
) -> list[Span]:
    """Return spans on the parts of `completion` that `comment` is about, in order; none if none is probable enough.

    prompt: the source or the question, where there is one; words that a source does not contain are suspect.
    scorer: attention features (`attention.AttentionScorer`) in addition to spelling; not used for texts that are too
    long for it. For a program, what the comment names (`align_code_comment`) comes before what it may be about.
    A span's confidence is the mean probability of its words; its label, unless given, the comment's stance on them.
    """
    if not comment.strip() or not completion.strip():
        return []
    program = extract_program(completion, prompt or "")
    statements = list(find_statements(program).values()) if program else []
    if program is None or all(isinstance(statement.node, _NOT_CODE_ALONE) for statement in statements):
        # prose, even if it happens to parse ("Paris")
        places = _find_words(comment, completion, _source_or_none(prompt, completion), scorer)
    else:
        named = align_code_comment(comment, completion, prompt=prompt or "", label=label, critic=critic)
        if named:
            return named
        places = _find_likely_statements(comment, program, statements)
    return [_to_span(place, comment, completion, label, critic) for place in places]


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


def select_words(probabilities: Probabilities, threshold: float) -> NDArray[np.bool_]:
    """Select the words that reach the threshold, and short gaps between them that almost do."""
    selected = probabilities >= threshold
    result = selected.copy()
    for before, after in pairwise(np.flatnonzero(selected)):
        gap = slice(before + 1, after)
        if after - before - 1 <= _MAX_GAP and (probabilities[gap] >= _GAP_THRESHOLD * threshold).all():
            result[gap] = True
    return result


def _source_or_none(prompt: str | None, completion: str) -> str | None:
    """Return the prompt if the completion draws on it; compared with a mere question every word would be suspect."""
    known = set(re.findall(r"\w+", (prompt or "").casefold()))
    words = re.findall(r"\w+", completion.casefold())
    return prompt if sum(word in known for word in words) >= _MIN_SHARED_WORDS * len(words) else None


def _find_words(comment: str, completion: str, prompt: str | None, scorer: Scorer | None) -> Iterator[_Place]:
    words, probabilities = predict_word_probabilities(comment, completion, prompt, scorer)
    selected = select_words(probabilities, _load_model("words" if scorer is None else "heads").threshold)
    for run in consecutive_runs(np.flatnonzero(selected).tolist()):
        start, end = _strip_punctuation(completion, words[run.start].start, words[run.stop - 1].end)
        if start < end:
            yield (start, end), float(probabilities[run.start : run.stop].mean())


def _find_likely_statements(comment: str, program: Program, statements: Sequence[Statement]) -> Iterator[_Place]:
    """Yield the statements that are probable enough, or else the most probable one."""
    model = _load_model("statements")
    probabilities = model.trees.predict_proba(*compute_statement_features(comment, statements, program))
    threshold = min(model.threshold, max(_MIN_STATEMENT_THRESHOLD, float(probabilities.max())))
    for statement, probability in zip(statements, probabilities, strict=True):
        place = program.span(*statement.extent())
        if probability >= threshold and place is not None:
            yield place, float(probability)


def _to_span(place: _Place, comment: str, completion: str, label: Label | None, critic: str) -> Span:
    """Build a span with the phrase of the comment that shares most words with it, and the stance on that phrase."""
    (start, end), confidence = place
    phrase = _find_phrase(comment, completion[start:end])
    at_the_end = (len(comment), len(comment))  # without a phrase, the last cue of the comment decides
    stance = detect_stances(comment, [phrase or at_the_end], occurs=lambda i: True)[0]
    return Span(
        start=start,
        end=end,
        label=label or ("good" if stance == "good" else "poor"),
        phrase=phrase,
        reason=comment.strip(),
        critic=critic,
        match="freeform",
        confidence=confidence,
    )


def _find_phrase(comment: str, marked: str) -> Range | None:
    """Return the range of the shared content words in the sentence of the comment that has most of them."""
    keys = {key for word in split_words(marked) if word.is_content for key in word.keys}
    shared = [word for word in split_words(comment) if not keys.isdisjoint(word.keys)]
    if not shared:
        return None
    best = mode(word.sentence for word in shared)
    inside = [word for word in shared if word.sentence == best]
    return _strip_punctuation(comment, inside[0].start, inside[-1].end)


def _strip_punctuation(text: str, start: int, end: int) -> Range:
    piece = text[start:end]
    return start + len(piece) - len(piece.lstrip(PUNCTUATION)), end - (len(piece) - len(piece.rstrip(PUNCTUATION)))


class _Model(NamedTuple):
    trees: BoostedTrees
    threshold: float
    head_weights: NDArray[np.float64]  # the bias last; empty for models without attention


@lru_cache
def _load_model(name: str) -> _Model:
    data = json.loads(files("text2grad.align.learned").joinpath(f"weights/{name}.json").read_text("utf-8"))
    weights = np.array(data.get("weights", []), dtype=np.float64)
    return _Model(BoostedTrees.from_dict(data["trees"]), data["threshold"], weights)


def _head_scores(attention: Matrix, weights: NDArray[np.float64]) -> Matrix:
    if attention.shape[1] != len(weights) - 1:
        raise UserError(
            "the aligner's attention weights were trained with the default model, smollm2; "
            "give a policy that was trained from it, or align without a model"
        )
    scores: Matrix = (attention @ weights[:-1] + weights[-1]).astype(np.float32)
    return scores
