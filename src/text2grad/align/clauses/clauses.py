"""What a comment says: its clauses, each with its stance and with what it says is missing."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Literal

from text2grad.align.answer.document import Document
from text2grad.align.clauses.clause_join import predict_join
from text2grad.align.clauses.clause_split import (
    Judge,
    Piece,
    adds_lack,
    main_parts,
    mask_quotations,
    split_clauses,
    strip_range,
)
from text2grad.align.clauses.missing import find_missing
from text2grad.align.clauses.scarcity import find_scarce
from text2grad.align.stance.stance_context import relate_to_answer
from text2grad.align.stance.stance_features import MASK, find_roles
from text2grad.align.stance.stance_model import StanceProbabilities, predict_stance, predict_stances_of_answer
from text2grad.schema import Range

ClauseStance = Literal["good", "poor", "unsure"]

MIN_PROBABILITY = 0.5  # of a stance that is taken; below, the clause is "unsure"
_MIN_JOIN = 0.6  # probability that two parts say one thing
MIN_MISSING = 0.4  # probability that a clause says that something is missing
MAYBE_MISSING = 0.2  # the same of a clause that fits no part of the answer well
_EXCEPTION_CERTAINTY = 0.9  # that an exception means the opposite of what it is excepted from

_COURTESIES = (
    r"thanks?|thank you|thx|ty|cheers|please|hi|hello|hey|hiya|dear|all|team|everyone|there|again|a lot|so much"
    r"|very much|in advance|many|regards|kind|best|wishes|sincerely|greetings|good (?:morning|day|evening)|bye"
    r"|goodbye|see you|sorry|hm+|um+|well|so|and|but|overall|in general"
    r"|(?:(?:here|these) (?:is|are) )?my (?:comments?|feedback|thoughts|two cents|review)|some (?:comments|thoughts)"
    r"|comments?|feedback"
    r"|review|notes?|ps|hope (?:this|that|it) helps|hth|for (?:your|the) (?:help|time|work|effort|summary|answer|reply)"
    r"|first(?:ly)?(?: of all)?|secondly|finally"
)
_SAYS_NOTHING = re.compile(rf"(?:[^\w{MASK}]|_|\b(?:{_COURTESIES})\b)+", re.IGNORECASE)

_SUPERLATIVE = re.compile(
    r"\b(?:could(?:n['’]?t|\s+not|\s+hardly|\s+scarcely)|can(?:['’]?t|not|\s+hardly)|(?:does|do)(?:n['’]?t|\s+not))\s+(?:possibly\s+)?(?:be|get|have\s+been)\s+"
    r"(?:(?:any|much)\s+)?(?:(?P<degree>more|less)\s+)?(?P<adjective>(?<=more\s)\w+|(?<=less\s)\w+|\w+er|worse)\b(?!\s+(?:for|to|at)\b)",
    re.IGNORECASE,
)
_SUPERLATIVE_PROBABILITY = 0.95
_SCARCE_PROBABILITY = 0.9
_MAX_SUPERLATIVE = 80  # characters of a clause; longer ones say more


_TRUTH = re.compile(r"(?<![=\w])True\b(?!\s*[,.!;:]|\s+(?:about|that|enough|to|of|for|in)\b)|(?<=\w )True\b")


@dataclass(frozen=True)
class Clause:
    """A part of a comment that says one thing of the answer.

    start, end: its range in the comment. stance: whether it praises, blames, or cannot be told; the probability that
    this is right is calibrated. missing: the words of the comment that name what the answer lacks, if the clause may
    say that something is missing; lacks: the probability that it says so. Whether it really is missing can only be told
    from the answer.
    """

    start: int
    end: int
    stance: ClauseStance
    probability: float
    missing: Range | None = None
    lacks: float = 0.0


def read_clauses(comment: str, document: Document | None = None, prompt: str = "") -> list[Clause]:
    """Return the clauses of a comment in order, without those that say nothing of the answer ("Thanks!").

    A sentence is split where both sides of a contrast, a conjunction or a comma say something of their own, never
    inside quotations or brackets. document, prompt: the answer, where it is known, to which the words of a clause are
    compared. What is excepted ("apart from the ending") has the opposite stance of the rest.
    """
    masked = mask_quotations(comment)
    if document is not None and document.program is not None and "True" in masked:
        masked = _TRUTH.sub(lambda match: MASK * len(match[0]), masked)  # a value, which is no praise

    def relate(piece: Piece) -> list[str]:
        return relate_to_answer(comment[piece.start : piece.end], document, prompt) if document else []

    return _read(masked, relate)


def read_masked(masked: str) -> list[Clause]:
    """Return the clauses of a comment whose quotations are replaced by `MASK`, character by character."""
    return _read(masked, lambda _: [])


def _read(masked: str, relate: Callable[[Piece], list[str]]) -> list[Clause]:
    """Return the clauses. relate: how one relates to the answer."""
    judge = _judge(masked)
    groups = list(_group(masked, split_parts(masked, judge), judge))
    pieces = [_span_pieces(group) if group[0][1] is None else group[0][1] for group in groups]
    texts = [(masked[piece.start : piece.end], piece.before, piece.after) for piece in pieces]
    stances = predict_stances_of_answer(texts, [relate(piece) for piece in pieces])
    return [_read_group(masked, group, judge, found) for group, found in zip(groups, stances, strict=True)]


def split_parts(masked: str, judge: Judge | None = None) -> list[tuple[Piece, Piece | None]]:
    """Return the parts of a comment that say something, and for an exception the part that it is excepted from."""
    return [
        (piece._replace(start=start, end=end), main)
        for piece, main in main_parts(split_clauses(masked, judge or _judge(masked)))
        for start, end in [strip_range(masked, piece.start, piece.end)]
        if start < end and not _SAYS_NOTHING.fullmatch(masked, start, end)
    ]


def _judge(masked: str) -> Judge:
    @cache
    def judge(start: int, end: int, before: str, after: str) -> StanceProbabilities:
        return predict_stance(masked[start:end], before, after)

    return judge


def _group(
    masked: str, parts: Sequence[tuple[Piece, Piece | None]], judge: Judge
) -> Iterator[list[tuple[Piece, Piece | None]]]:
    """Yield the parts, neighbours that say one thing together; what is excepted stays alone."""
    group: list[tuple[Piece, Piece | None]] = []
    for piece, main in parts:
        if group and main is None and group[-1][1] is None:
            last = _span_pieces(group)
            stances = (judge(*last[:4]), judge(*piece[:4]))
            is_other_lack = adds_lack(masked, group[-1][0], piece, judge)
            if not is_other_lack and predict_join(masked, last, piece, stances) >= _MIN_JOIN:
                group.append((piece, main))
                continue
        if group:
            yield group
        group = [(piece, main)]
    if group:
        yield group


def _span_pieces(group: Sequence[tuple[Piece, Piece | None]]) -> Piece:
    """Return the part from the first to the last of a group."""
    return group[0][0]._replace(end=group[-1][0].end, after=group[-1][0].after)


def _read_group(
    masked: str, group: Sequence[tuple[Piece, Piece | None]], judge: Judge, found: StanceProbabilities
) -> Clause:
    """Return the clause of parts that say one thing; one of them names what is missing. found: its stance."""
    piece, main = group[0]
    if main is not None:
        scarce = find_scarce(masked[main.start : main.end])
        return Clause(piece.start, piece.end, *_except(*((scarce, _SCARCE_PROBABILITY) if scarce else decide(found))))
    scarce = find_scarce(masked[piece.start : group[-1][0].end])
    settled = (scarce, _SCARCE_PROBABILITY) if scarce else _read_superlative(masked, group)
    stance, probability = settled or decide(found)
    missing = None
    if stance == "poor" and found.missing >= MAYBE_MISSING and not scarce:
        namer = max((piece for piece, _ in group), key=lambda piece: judge(*piece[:4]).missing)
        missing = find_missing(masked, namer.start, namer.end)
    whole = _span_pieces(group)
    return Clause(whole.start, whole.end, stance, probability, missing, found.missing if missing else 0.0)


def _read_superlative(masked: str, group: Sequence[tuple[Piece, Piece | None]]) -> tuple[ClauseStance, float] | None:
    """Return the stance of "It couldn't be worse", which is that of the adjective."""
    start, end = group[0][0].start, group[-1][0].end
    match = _SUPERLATIVE.search(masked, start, end) if end - start <= _MAX_SUPERLATIVE else None
    letter = "".join(find_roles([match["adjective"].lower()])[0]) if match else ""
    if match is None or letter not in ("P", "F", "B", "S", "m"):
        return None
    is_good = letter in "PF" if letter != "m" else match["adjective"].lower() != "worse"
    is_good = is_good != ((match["degree"] or "").lower() == "less")
    return "good" if is_good else "poor", _SUPERLATIVE_PROBABILITY


def combine_stances(clauses: Sequence[Clause]) -> tuple[ClauseStance, float]:
    """Return the stance that has most weight among clauses, by how far its probability is above even, and its share."""
    weights = {"good": 0.0, "poor": 0.0}
    for clause in clauses:
        if clause.stance != "unsure":
            weights[clause.stance] += clause.probability
    total = sum(weights.values())
    if not total:
        return "unsure", max((clause.probability for clause in clauses), default=1.0)
    stance: ClauseStance = "good" if weights["good"] > weights["poor"] else "poor"
    taken = [clause.probability for clause in clauses if clause.stance == stance]
    return stance, max(taken) * weights[stance] / total


def decide(probabilities: StanceProbabilities) -> tuple[ClauseStance, float]:
    """Return the stance that is taken, and the probability that it is right."""
    good, poor = probabilities.good, probabilities.poor
    if max(good, poor) < MIN_PROBABILITY:
        return "unsure", 1.0 - max(good, poor)
    return ("good", good) if good > poor else ("poor", poor)


def _except(stance: ClauseStance, probability: float) -> tuple[ClauseStance, float]:
    """Return the stance on what is excepted."""
    if stance == "unsure":
        return "unsure", probability
    certainty = probability * _EXCEPTION_CERTAINTY
    if certainty < MIN_PROBABILITY:
        return "unsure", 1.0 - certainty
    return "poor" if stance == "good" else "good", certainty
