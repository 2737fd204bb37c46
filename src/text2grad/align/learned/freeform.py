"""A comment that quotes nothing to the parts of the answer that it is about.

Prose is judged word by word, programs statement by statement: features of letters and, where a policy is given, of its
attention go into small boosted trees that were trained on people's comments (`benchmarks/train_freeform.py`). What they
return is a probability, and it is calibrated: of the words given 0.7, seven in ten are meant.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from importlib.resources import files
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from text2grad.align import code
from text2grad.align.learned.attention import Matrix, Scorer
from text2grad.align.learned.statement_features import of_statements
from text2grad.align.learned.trees import Trees
from text2grad.align.learned.word_features import lexical
from text2grad.align.program import Answer, extract, tree
from text2grad.align.stance import stances
from text2grad.align.statements import Statement, statements
from text2grad.errors import UserError
from text2grad.schema import Label, Range, Span
from text2grad.text.whitespace import PUNCTUATION, WhitespaceWord, split_words

Probabilities = NDArray[np.float64]

HEAD_STEPS = (-2, -1, 0, 1, 2)  # words around, whose attention score is a feature too
HEAD_OUTSIDE = -6.0  # the score beyond the ends of the answer
_GAP = 3  # words between two parts that belong together, if they are nearly probable enough
_NEARLY = 0.8
_DRAWN_SHARE = 0.1  # of an answer's words; a summary shares more with its source, function words alone do it
_LEAST_STATEMENT = 0.08  # a comment on a program nearly always means something in it
_NOT_CODE_ALONE = (ast.Expr, ast.Pass)


class _Place(NamedTuple):
    start: int
    end: int
    confidence: float


def locate(
    comment: str,
    completion: str,
    prompt: str | None = None,
    *,
    scorer: Scorer | None = None,
    label: Label | None = None,
    critic: str = "",
) -> list[Span]:
    """The parts of `completion` that `comment` is about, in order; none where nothing is probable enough.

    prompt: the source or the question, where there is one; words that a source does not have are suspect.
    scorer: a policy's attention (`attention.AttentionScorer`) in addition to the words; a text too long for it is
    judged by the words alone.
    For a program, what the comment names (`code.locate`) counts before what it may mean.
    A span's confidence is the mean probability of its words; its label, unless given, the comment's stance on them.
    """
    if not comment.strip() or not completion.strip():
        return []
    program = _program(completion, prompt)
    if program is not None:
        named = code.locate(comment, completion, prompt=prompt or "", label=label, critic=critic)
        if named:
            return named
        places = _statements(comment, *program)
    else:
        places = _words(comment, completion, _as_source(prompt, completion), scorer)
    spans = [
        Span(start=start, end=end, label="poor", match="freeform", confidence=confidence)
        for start, end, confidence in places
    ]
    return [_signed(span, comment, completion, label, critic) for span in spans]


def _as_source(prompt: str | None, completion: str) -> str | None:
    """The prompt, if the completion draws on it. Against a bare question every word would be suspect."""
    known = set(re.findall(r"\w+", (prompt or "").casefold()))
    words = re.findall(r"\w+", completion.casefold())
    return prompt if sum(word in known for word in words) >= _DRAWN_SHARE * len(words) else None


def word_probabilities(
    comment: str, completion: str, prompt: str | None = None, scorer: Scorer | None = None
) -> tuple[list[WhitespaceWord], Probabilities]:
    """The words of a completion in prose, and how probable it is that the comment is about each."""
    words, names, matrix = lexical(comment, completion, prompt)
    attention = scorer.read(comment, completion, prompt, words) if scorer and words else None
    if attention is None:
        return words, _model("words").trees.probabilities(names, matrix)
    heads = _model("heads")
    scores = _head_scores(attention, heads.weights)
    return words, heads.trees.probabilities([*names, *head_names()], np.hstack([matrix, around(scores)]))


def head_names() -> list[str]:
    return [f"heads[{step:+d}]" for step in HEAD_STEPS]


def around(scores: Matrix) -> Matrix:
    """Each word's score and its neighbours': (words,) to (words, HEAD_STEPS)."""
    reach = max(HEAD_STEPS)
    padded = np.pad(scores, reach, constant_values=HEAD_OUTSIDE)
    columns = [padded[reach + step : reach + step + len(scores)] for step in HEAD_STEPS]
    return np.stack(columns, axis=1).astype(np.float32)


def chosen(probabilities: Probabilities, threshold: float) -> NDArray[np.bool_]:
    """What is probable enough, and short gaps between such that nearly are."""
    sure = probabilities >= threshold
    result = sure.copy()
    places = np.flatnonzero(sure)
    for before, after in pairwise(places):
        between = slice(before + 1, after)
        if after - before - 1 <= _GAP and (probabilities[between] >= _NEARLY * threshold).all():
            result[between] = True
    return result


def _words(comment: str, completion: str, prompt: str | None, scorer: Scorer | None) -> Iterator[_Place]:
    words, probabilities = word_probabilities(comment, completion, prompt, scorer)
    taken = chosen(probabilities, _model("words" if scorer is None else "heads").threshold)
    for run in _runs(taken):
        start, end = _without_marks(completion, words[run.start].start, words[run.stop - 1].end)
        if start < end:
            yield _Place(start, end, float(probabilities[run].mean()))


def _statements(comment: str, answer: Answer, own: Sequence[Statement]) -> Iterator[_Place]:
    """The statements that are probable enough, or else the most probable one."""
    module = tree(answer.source)
    assert module is not None, "statements come from a program that parses"
    model = _model("statements")
    probabilities = model.trees.probabilities(*of_statements(comment, own, module))
    bar = min(model.threshold, max(_LEAST_STATEMENT, float(probabilities.max())))
    for statement, probability in zip(own, probabilities, strict=True):
        place = answer.span(*statement.place())
        if probability >= bar and place is not None:
            yield _Place(*place, float(probability))


def _program(completion: str, prompt: str | None) -> tuple[Answer, list[Statement]] | None:
    """The completion as a program; None for prose, even if it happens to parse ("Paris")."""
    answer = extract(completion, prompt or "")
    own = list(statements(answer).values()) if answer else []
    if answer is None or all(isinstance(statement.node, _NOT_CODE_ALONE) for statement in own):
        return None
    return answer, own


def _signed(span: Span, comment: str, completion: str, label: Label | None, critic: str) -> Span:
    """The span with the words of the comment that share most with it, and the comment's stance on those."""
    phrase = _phrase(comment, completion[span.start : span.end])
    at_the_end = (len(comment), len(comment))  # nothing shared: the last word on it decides
    stance = stances(comment, [phrase or at_the_end], occurs=lambda i: True)[0]
    view = label or ("good" if stance == "good" else "poor")
    return span.model_copy(
        update={"phrase": phrase, "label": view, "critic": critic, "reason": comment.strip() or None}
    )


def _phrase(comment: str, marked: str) -> Range | None:
    """From the first to the last shared content word in the sentence of the comment that shares most."""
    keys = {each for word in split_words(marked) if word.is_content for each in word.keys}
    shared = [word for word in split_words(comment) if not keys.isdisjoint(word.keys)]
    if not shared:
        return None
    sentences = [word.sentence for word in shared]
    best = max(sentences, key=sentences.count)
    inside = [word for word in shared if word.sentence == best]
    return _without_marks(comment, inside[0].start, inside[-1].end)


def _runs(taken: NDArray[np.bool_]) -> Iterator[slice]:
    edges = np.flatnonzero(np.diff(np.concatenate([[False], taken, [False]]).astype(np.int8)))
    for start, stop in zip(edges[::2], edges[1::2], strict=True):
        yield slice(int(start), int(stop))


def _without_marks(text: str, start: int, end: int) -> Range:
    piece = text[start:end]
    return start + len(piece) - len(piece.lstrip(PUNCTUATION)), end - (len(piece) - len(piece.rstrip(PUNCTUATION)))


class _Model(NamedTuple):
    trees: Trees
    threshold: float
    weights: NDArray[np.float64]  # of the attention heads, the bias last; empty for other models


@lru_cache
def _model(name: str) -> _Model:
    data: dict[str, Any] = json.loads(
        files("text2grad.align.learned").joinpath(f"weights/{name}.json").read_text("utf-8")
    )
    weights = np.array(data.get("weights", []), dtype=np.float64)
    return _Model(Trees.from_dict(data["trees"]), data["threshold"], weights)


def _head_scores(attention: Matrix, weights: NDArray[np.float64]) -> Matrix:
    if attention.shape[1] != len(weights) - 1:
        raise UserError(
            "the aligner's attention weights were learned with the default model, smollm2; "
            "give a policy that was trained from it, or align without a model"
        )
    scores: Matrix = (attention @ weights[:-1] + weights[-1]).astype(np.float32)
    return scores
