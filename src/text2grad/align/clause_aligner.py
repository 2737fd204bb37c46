"""The places of the clauses of a long comment, or of one on an answer of a single sentence.

They come from `targets` and, where a clause names none, from the learned aligner, which reads all clauses of one stance
together: "The summary says A. The source says B." is one complaint. Then come the whole answer and the sentence that
shares most words.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from text2grad.align.answer.document import Document
from text2grad.align.answer.proposals import Proposal
from text2grad.align.clause_reading import NO_PLACE, NOT_SURE, WHOLE_CONFIDENCE, ReadClause, Target, targets_of
from text2grad.align.clauses.clauses import Clause
from text2grad.align.clauses.whole import speaks_of_whole
from text2grad.align.learned import aligner
from text2grad.align.learned.roles import content_keys, parse_mentions
from text2grad.align.places.targets import MIN_LONG, find_hints
from text2grad.schema import Range
from text2grad.text.whitespace import PUNCTUATION, split_words
from text2grad.text.words import consecutive_runs

if TYPE_CHECKING:
    from text2grad.align.learned.attention_features import Scorer  # imports transformers

_HINT_LOG_ODDS = {"kind": 2.5, "name": 1.0}
_MIN_HINT_CONFIDENCE = 0.5  # of a thing of a kind that is a target by itself where the learned aligner finds nothing
_SENTENCE_CONFIDENCE = 0.5
_EDGES = f"{PUNCTUATION} \t\n"
_MIN_SENTENCE_WORDS, _MIN_SENTENCE_SHARE = 1, 0.34  # content words that the clause shares with a sentence it means


def add_paraphrases(
    comment: str,
    stance: str,
    read: Sequence[ReadClause],
    document: Document,
    prompt: str | None,
    scorer: Scorer | None,
) -> None:
    """Add what the learned aligner finds for the clauses of one stance to those of them that have no target yet."""
    own = [item for item in read if item.clause.stance == stance]
    group = [*own, *(item for item in read if item.clause.stance == "unsure")] if stance == "poor" else own
    open_clauses = [item for item in group if not item.targets and not item.omission and not item.refused]
    open_clauses = [item for item in open_clauses if not _is_whole(comment, item.clause, document)]
    eligible = [item for item in group if not item.omission and not item.refused and not item.is_whole]
    decided = [item for item in open_clauses if item.clause.stance == stance]
    if not open_clauses or (not decided and any(item.targets for item in own)):
        return  # clauses that take no side explain those that do, which have their targets
    is_long = len(comment.split()) >= MIN_LONG
    bounds = [(item.clause.start, item.clause.end) for item in group if not item.omission]
    text = comment if is_long and stance == "poor" else _only(comment, bounds)
    if document.program is not None and aligner.find_program(document.text, prompt) is not None:
        places = aligner.locate_statements(text, document.program)
    else:
        hints = [p for item in eligible for p in _hints(comment, item.clause, document)] if not is_long else []
        odds = [(place, _HINT_LOG_ODDS[hint.source]) for hint in hints for place in hint.places]
        places = aligner.locate_words(text, document.text, prompt, scorer, odds)
    taken = [target.place for item in group for target in item.targets]
    for place, confidence in places:
        for piece in _remainder(place, taken, document.text):
            item, phrase = _owner(comment, piece, eligible, open_clauses, document)
            item.targets.append(Target("paraphrase", piece, phrase, confidence))


def _hints(comment: str, clause: Clause, document: Document) -> list[Proposal]:
    return find_hints(comment, (clause.start, clause.end), document)


def _remainder(place: Range, taken: Sequence[Range], text: str) -> list[Range]:
    """Return the parts of a place that no other range covers, if they have a word, without marks at their ends."""
    free = [i for i in range(*place) if not any(start <= i < end for start, end in taken)]
    pieces = []
    for run in consecutive_runs(free):
        piece = text[run.start : run.stop]
        start = run.start + len(piece) - len(piece.lstrip(_EDGES))
        end = run.stop - (len(piece) - len(piece.rstrip(_EDGES)))
        if any(c.isalnum() for c in text[start:end]):
            pieces.append((start, end))
    return pieces


def _owner(
    comment: str, place: Range, eligible: Sequence[ReadClause], open_clauses: Sequence[ReadClause], document: Document
) -> tuple[ReadClause, Range | None]:
    """Return the clause that shares most words with a place, one that praises or blames before one that may not."""
    keys = {key for word in split_words(document.text[slice(*place)]) if word.is_content for key in word.keys}

    def shared(item: ReadClause) -> list[Range]:
        start, end = item.clause.start, item.clause.end
        words = split_words(comment[start:end])
        return [(start + w.start, start + w.end) for w in words if w.is_content and not keys.isdisjoint(w.keys)]

    decided = [item for item in open_clauses if item.clause.stance != "unsure"] or [
        item for item in eligible if item.clause.stance != "unsure"
    ]
    best = max(decided or open_clauses or eligible, key=lambda item: len(shared(item)))
    words = shared(best)
    return best, (words[0][0], words[-1][1]) if words else None


def _only(comment: str, ranges: Sequence[Range]) -> str:
    """Return the comment with everything outside the ranges replaced by spaces."""
    kept = {position for start, end in ranges for position in range(start, end)}
    return "".join(c if i in kept or c == "\n" else " " for i, c in enumerate(comment))


def finish_clause(comment: str, item: ReadClause, document: Document) -> None:
    """Settle a clause that has no target yet: the whole answer, a sentence, or refused."""
    clause = item.clause
    if item.targets or item.omission or item.refused:
        if clause.stance == "unsure" and not item.omission and not item.refused:
            item.refused = NOT_SURE
        return
    bounds = (clause.start, clause.end)
    is_long = len(comment.split()) >= MIN_LONG
    if _is_whole(comment, clause, document):
        item.targets = [Target("whole", document.whole, bounds, WHOLE_CONFIDENCE)]
    else:
        hints = [] if document.program or is_long else _hints(comment, clause, document)
        hints = [hint for hint in hints if hint.confidence >= _MIN_HINT_CONFIDENCE]
        item.targets = [target for hint in hints for target in targets_of(hint)] or _sentence(comment, clause, document)
    if clause.stance == "unsure":
        item.refused = NOT_SURE
    elif not item.targets and clause.stance == "good" and len(document.sentences) == 1 and not is_long:
        item.targets = [Target("whole", document.whole, bounds, WHOLE_CONFIDENCE)]
    elif not item.targets:
        item.refused = NO_PLACE


def drop_generalities(read: Sequence[ReadClause]) -> None:
    """Drop the whole answer as a target where another clause of the same stance says what is meant.

    If that fits nothing, the comment is about another answer.
    """
    specific = {item.clause.stance for item in read if not item.is_whole and not item.omission}
    for item in read:
        if item.is_whole and item.clause.stance in specific:
            item.targets = []


def _is_whole(comment: str, clause: Clause, document: Document) -> bool:
    """Whether the clause is about the whole answer; praise of a program that names no part of it is praise of all."""
    return speaks_of_whole(comment, clause, document) or (document.program is not None and clause.stance == "good")


def _sentence(comment: str, clause: Clause, document: Document) -> list[Target]:
    """Return the sentence that shares most content words with the clause, if it shares enough."""
    keys = content_keys(parse_mentions(comment[clause.start : clause.end]))
    if not keys or document.program is not None or len(document.sentences) < 2:
        return []
    scored = []
    for place in document.sentences:
        words = split_words(document.text[slice(*place)])
        scored.append((len(keys & {key for word in words if word.is_content for key in word.keys}), place))
    count, place = max(scored, key=lambda pair: pair[0], default=(0, document.whole))
    share = count / len(keys)
    if count < _MIN_SENTENCE_WORDS or share < _MIN_SENTENCE_SHARE:
        return []
    ties = sum(other == count for other, _ in scored)
    return [Target("mention", place, (clause.start, clause.end), _SENTENCE_CONFIDENCE * min(1.0, 0.5 + share) / ties)]
