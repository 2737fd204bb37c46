"""Reading a comment: what each clause says of which part of the answer, what is missing, and what was not understood.

Clauses and their stance come from `clauses`. Quotations are places by themselves. For the clauses of a short comment on
an answer of several parts, `places` ranks all places that any source proposes. Long comments, and those on an
answer of one sentence, have their places from `targets` and, where a clause names none, from the learned aligner, which
reads all clauses of one stance together: "The summary says A. The source says B." is one complaint. A clause that fits
nothing is refused, with the reason.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from text2grad.align.clauses import MIN_MISSING, Clause, ClauseStance, read_clauses
from text2grad.align.comments import cited_quotations
from text2grad.align.corrected_spans import add_corrections
from text2grad.align.corrections import Correction, find_corrections
from text2grad.align.denials import find_contrasted, find_denied
from text2grad.align.document import Document
from text2grad.align.kinds import find_kinds
from text2grad.align.learned import aligner
from text2grad.align.learned.roles import content_keys, parse_mentions
from text2grad.align.missing import find_stated_lack
from text2grad.align.omissions import is_present, is_removal, is_unwanted, omission_text
from text2grad.align.places import rank_places
from text2grad.align.proposals import Proposal, Source
from text2grad.align.quotes import Match
from text2grad.align.restated_values import find_restated_name, find_restated_value
from text2grad.align.restatements import doubt_restatements
from text2grad.align.stance import detect_stances
from text2grad.align.targets import MIN_LONG, find_hints, find_targets
from text2grad.align.whole import is_no_comment, read_marks, speaks_of_whole
from text2grad.schema import Label, MatchKind, Omission, Range, Span
from text2grad.text.whitespace import PUNCTUATION, split_words
from text2grad.text.words import consecutive_runs

if TYPE_CHECKING:
    from text2grad.align.learned.attention_features import Scorer  # imports transformers

NOT_SURE = "it neither praises nor blames"
NOT_MISSING = "the answer does contain what it says is missing"
NO_PLACE = "it fits no part of the answer"
NO_OPINION = "it says nothing about the answer"

_MATCH: dict[Source, MatchKind] = {
    "quotation": "exact", "value": "part", "part": "part", "kind": "part", "structure": "code", "behaviour": "code",
    "name": "exact", "mention": "part", "paraphrase": "freeform", "whole": "whole",
}  # fmt: skip
_HINT_LOG_ODDS = {"kind": 2.5, "name": 1.0}
_MIN_HINT_CONFIDENCE = 0.5  # of a thing of a kind that is a target by itself where the learned aligner finds nothing
_WHOLE_CONFIDENCE = 0.9
_VALUE_PROBABILITY, _VALUE_CONFIDENCE = 0.95, 0.83  # of blame by a clause that gives another value; of that value
_SURE_PRAISE = 0.9  # probability of praise that another value does not change: "Rounded correctly to 4.99 per cent"
_INSTRUCTION = re.compile(
    r"\b(?:Remove|Delete|Replace|Modify|Rewrite)\s+(?:the|this|that|all|any|it)\b"
    r"|\bmakes? up (?:that|the|his|her|its|their|it)\b"
)
_NOT_SAID = re.compile(
    r"^\W*(?:it|the (?:answer|summary|text|response)) (?:does not|doesn['’]t|never) (?:say|mention)s?:"
    r"\s*(?P<what>\S.*)$",
    re.MULTILINE | re.IGNORECASE,
)
_WANTED_AT_EDGE = re.compile(
    r"^\W*(?:please\s+)?(?:(?:it|you|the \w+) (?:should|must|could|needs? to)\s+)?(?:start|begin|open|end|finish|close)"
    r"(?:\s+(?:it|(?:the|your)\s+\w+))?\s+with:?\s+[\"“](?P<what>[^\"”\n]+)[\"”]\W*$",
    re.MULTILINE | re.IGNORECASE,
)
_EVIDENCE = re.compile(r"^\W*\".+?\" (?:\w+ ){1,7}(?:says?|said|states?):(?P<what> .+)$", re.MULTILINE)
_NOT_SAID_PROBABILITY = 0.95
_INTERJECTION = re.compile(r"(?:\W|\b(?:yes|no|well|sure|indeed|really|hm+|oh|ah|right then|anyway)\b)+", re.IGNORECASE)
_INSTRUCTION_PROBABILITY = 0.85
_STATED_LACK = 0.9  # probability that something is missing by a clause that says nothing else
_ENOUGH = re.compile(
    r"\b(?:sentences?|lines?|paragraphs?|bullets?|words?|parts?|one|two|three|alone)\b[^.;]*\bwould\s+(?:have\s+)?(?:be(?:en)?\s+"
    r"(?:quite\s+|more\s+than\s+)?(?:enough|sufficient|plenty)|suffic(?:ed?))\b",
    re.IGNORECASE,
)  # praise of this and blame of the others
_ENOUGH_PROBABILITY = 0.9
_ALL_BUT = re.compile(
    r"\b(?:everything|anything|all|the\s+rest)\s+(?:after|before|but|except|below|above|following)\b", re.IGNORECASE
)
_DENIED_PROBABILITY, _DENIED_CONFIDENCE = 0.95, 0.75
_MAX_DOUBT, _QUOTED_PROBABILITY = 0.5, 0.7  # who quotes words without praise or a clear doubt blames them
_SENTENCE_CONFIDENCE = 0.5
# Probability of blame on words that are not quoted: praise is taken for blame more often than blame for praise.
_MIN_BLAME = 0.6
_WELL_PLACED = 0.35  # confidence of a place that a clause is about rather than about what is missing
_EDGES = f"{PUNCTUATION} \t\n"
_MIN_EXPLAINED = 12  # words of a comment that says what is wrong before it asks for a change: if that fits, so may this
_MAX_AROUND_MISSING = 8  # words of a clause besides what it says is missing, if it says nothing else
_MIN_SENTENCE_WORDS, _MIN_SENTENCE_SHARE = 1, 0.34  # content words that the clause shares with a sentence it means


@dataclass(frozen=True)
class Target:
    """A place in the completion that a clause is about."""

    source: Source
    place: Range
    phrase: Range | None
    confidence: float


@dataclass
class ReadClause:
    """A clause of the comment with its targets, its omission, or the reason why it was refused."""

    clause: Clause
    targets: list[Target] = field(default_factory=list)
    omission: Omission | None = None
    refused: str | None = None

    @property
    def is_whole(self) -> bool:
        """Whether the clause is about the whole answer."""
        return any(target.source == "whole" for target in self.targets)


@dataclass(frozen=True)
class Reading:
    """A comment as it was understood.

    spans: what is praised or blamed, with calibrated confidence. refused: (range of the comment, reason) of the clauses
    that have no effect. unmatched: quotations that the completion does not contain.
    """

    spans: list[Span]
    omissions: list[Omission]
    unmatched: list[str]
    refused: list[tuple[Range, str]]
    clauses: list[ReadClause]


def read_comment(
    comment: str,
    completion: str,
    prompt: str | None = None,
    *,
    scorer: Scorer | None = None,
    label: Label | None = None,
    critic: str = "",
) -> Reading:
    """Read a comment on a completion.

    prompt: the source or the question, where there is one. scorer: attention features for the learned aligner.
    label: overrides the stance of all clauses. A span's confidence is the probability that place and stance are right.
    """
    original, document = comment, Document(completion, prompt or "")
    if completion.strip() and (verdict := read_marks(comment, completion)):
        return _read_verdict(comment, label or verdict, document, critic)
    if comment.strip() and is_no_comment(comment):
        return Reading([], [], [], [((0, len(comment)), NO_OPINION)], [])
    comment = _blank(comment, [match.span("what") for match in _EVIDENCE.finditer(comment)])
    stated = list(_stated_omissions(comment, document)) if completion.strip() else []
    comment = _blank(comment, [(item.clause.start, item.clause.end) for item in stated])
    found = read_clauses(comment, document, prompt or "") if completion.strip() else []
    clauses = [_settle(comment, clause, label, document) for clause in found]
    clauses = doubt_restatements(comment, clauses, document, prompt) if label is None else clauses
    quotations = cited_quotations(comment, completion) if clauses else []
    read = [*stated, *(_read_clause(comment, clause, document, quotations) for clause in clauses)]
    read.sort(key=lambda item: item.clause.start)
    is_ranked = _has_parts(document) and len(comment.split()) < MIN_LONG
    if is_ranked:
        for item in read:
            _rank(comment, item, document, prompt or "", quotations)
    else:
        for stance in ("poor", "good"):
            _add_paraphrases(comment, stance, read, document, prompt, scorer)
        for item in read:
            _finish(comment, item, document)
    if len(comment.split()) >= MIN_LONG:
        _drop_generalities(read)
    spans, omissions = _spans(comment, read, critic), [item.omission for item in read if item.omission]
    if label != "good" and completion.strip():
        explains = len(comment.split()) >= _MIN_EXPLAINED
        corrections = find_corrections(original, completion, prompt)
        corrections += [each for each in _given_values(comment, read) if not _overlaps(each, corrections)]
        if explains and not any(span.label == "poor" for span in spans):
            corrections = [each for each in corrections if each.start == each.end or each.is_quoted]
        keep_rest = explains and not is_ranked  # the ranker places each clause by itself: a correction says it all
        spans, omissions = add_corrections(spans, omissions, corrections, original, critic=critic, keep_rest=keep_rest)
        for item in read:
            bounds = (item.clause.start, item.clause.end)
            if item.refused and any(each.is_asked_by(original, bounds) for each in corrections):
                item.refused = None
    return Reading(
        spans=spans,
        omissions=omissions,
        unmatched=[comment[slice(*phrase)] for phrase, match in quotations if match is None],
        refused=[((item.clause.start, item.clause.end), item.refused) for item in read if item.refused],
        clauses=read,
    )


def _given_values(comment: str, read: Sequence[ReadClause]) -> Iterator[Correction]:
    """Yield the values that clauses give in the place of the answer's."""
    for item in read:
        for target in item.targets:
            if target.source == "value" and target.phrase is not None:
                confidence = target.confidence * item.clause.probability
                bounds = (item.clause.start, item.clause.end)
                yield Correction(*target.place, comment[slice(*target.phrase)], round(confidence, 4), bounds)


def _overlaps(correction: Correction, others: Sequence[Correction]) -> bool:
    return any(correction.start < other.end and other.start < correction.end for other in others)


def _read_verdict(comment: str, stance: ClauseStance, document: Document, critic: str) -> Reading:
    bounds = (0, len(comment))
    if stance == "unsure":
        read = [ReadClause(Clause(*bounds, stance, 1.0), refused=NOT_SURE)]
        return Reading([], [], [], [(bounds, NOT_SURE)], read)
    target = Target("whole", document.whole, bounds, _WHOLE_CONFIDENCE)
    read = [ReadClause(Clause(*bounds, stance, 1.0), [target])]
    return Reading(_spans(comment, read, critic), omissions=[], unmatched=[], refused=[], clauses=read)


def _settle(comment: str, clause: Clause, label: Label | None, document: Document) -> Clause:
    """Return the clause with the label where one is given; an instruction to change something blames it."""
    bounds = (clause.start, clause.end)
    is_order = is_removal(comment, *bounds)
    if is_order or is_unwanted(comment, *bounds):
        clause = replace(clause, missing=None, lacks=0.0)
    elif clause.stance == "poor" and (what := find_stated_lack(comment, *bounds)) and not _has(comment, what, document):
        clause = replace(clause, missing=what, lacks=max(clause.lacks, _STATED_LACK))
    if label is not None:
        return replace(clause, stance=label, probability=1.0)
    is_order = is_order and "?" not in comment[slice(*bounds)]
    if is_order and _ALL_BUT.search(comment, *bounds):
        return replace(clause, stance="unsure", probability=_ENOUGH_PROBABILITY)
    if clause.stance == "unsure" and (is_order or _INSTRUCTION.search(comment, *bounds)):
        return replace(clause, stance="poor", probability=_INSTRUCTION_PROBABILITY)
    if " would " in comment and _ENOUGH.search(comment, *bounds):
        return replace(clause, stance="unsure", probability=_ENOUGH_PROBABILITY)
    return clause


def _has(comment: str, what: Range, document: Document) -> bool:
    """Whether the answer is a program, or has something of the kind that these words of a comment name."""
    return document.program is not None or any(True for _ in find_kinds(comment, *what, document))


def _read_clause(
    comment: str, clause: Clause, document: Document, quotations: Sequence[tuple[Range, Match | None]]
) -> ReadClause:
    """Read what the clause says by itself: what is missing, or what it points at explicitly."""
    bounds = (clause.start, clause.end)
    if denial := _read_denial(comment, clause, document):
        return denial
    if clause.missing is not None and clause.lacks >= MIN_MISSING and clause.stance != "good":
        text = omission_text(comment, clause.missing)
        rest = comment[clause.start : clause.missing[0]] + comment[clause.missing[1] : clause.end]
        if not is_present(text, document.text):
            return ReadClause(clause, omission=_omission(text, clause.missing, clause.lacks))
        if len(rest.split()) <= _MAX_AROUND_MISSING:
            return ReadClause(clause, refused=NOT_MISSING)
    if not any(bounds[0] <= start and end <= bounds[1] for (start, end), _ in quotations):
        value = find_restated_value(comment, bounds, document) or find_restated_name(comment, bounds, document)
        if value is not None and (clause.stance != "good" or clause.probability < _SURE_PRAISE):
            if value.is_of_other:
                return ReadClause(clause, refused=NOT_SURE)
            blame = replace(clause, stance="poor", probability=_VALUE_PROBABILITY)
            return ReadClause(blame, [Target("value", value.place, value.phrase, _VALUE_CONFIDENCE)])
    found = find_targets(comment, bounds, document, quotations)
    quoted = [proposal.phrase for proposal in found if proposal.source == "quotation"]
    if quoted and clause.stance == "unsure" and clause.probability < _MAX_DOUBT:
        stance: Label = "good" if "good" in detect_stances(comment, quoted, occurs=lambda _: True) else "poor"
        clause = replace(clause, stance=stance, probability=_QUOTED_PROBABILITY)
    return ReadClause(clause, [target for proposal in found for target in _targets(proposal)])


def _read_denial(comment: str, clause: Clause, document: Document) -> ReadClause | None:
    """Read a clause that says nothing but that something in the answer is not so, if it was not read as blame."""
    bounds = (clause.start, clause.end)
    if clause.stance == "poor" and clause.lacks < MIN_MISSING:
        return None
    if clause.stance != "poor" and len(uses := find_contrasted(comment, bounds, document)) > 1:
        return ReadClause(replace(clause, stance="unsure"), refused=NOT_SURE)
    denied = uses[0] if clause.stance != "poor" and uses else find_denied(comment, bounds, document)
    if denied is None:
        return None
    blame = replace(clause, stance="poor", probability=_DENIED_PROBABILITY, missing=None, lacks=0.0)
    return ReadClause(blame, [Target("value", denied, None, _DENIED_CONFIDENCE)])


def _stated_omissions(comment: str, document: Document) -> Iterator[ReadClause]:
    """Yield the lines that state what the answer lacks ("It does not say: ..."), however many sentences that has."""
    for match in [*_NOT_SAID.finditer(comment), *_WANTED_AT_EDGE.finditer(comment)]:
        clause = Clause(*match.span(), "poor", _NOT_SAID_PROBABILITY, match.span("what"), lacks=1.0)
        text = omission_text(comment, match.span("what"))
        if is_present(text, document.text):
            yield ReadClause(clause, refused=NOT_MISSING)
        else:
            yield ReadClause(clause, omission=_omission(text, match.span("what"), clause.probability))


def _omission(text: str, phrase: Range, confidence: float) -> Omission:
    return Omission(text=text, phrase=phrase, confidence=round(confidence, 4))


def _blank(comment: str, ranges: Sequence[Range]) -> str:
    """Return the comment with these ranges replaced by spaces."""
    for start, end in ranges:
        comment = comment[:start] + " " * (end - start) + comment[end:]
    return comment


def _targets(proposal: Proposal) -> list[Target]:
    return [Target(proposal.source, place, proposal.phrase, proposal.confidence) for place in proposal.places]


def _has_parts(document: Document) -> bool:
    """Whether the answer has parts among which the ranker can choose."""
    return document.program is not None or len(document.sentences) > 1


def _rank(
    comment: str, item: ReadClause, document: Document, prompt: str, quotations: Sequence[tuple[Range, Match | None]]
) -> None:
    """Settle a clause of a short comment: its quotations, else the place that the ranker finds most likely."""
    clause = item.clause
    if item.omission or item.refused:
        return
    if _INTERJECTION.fullmatch(comment, clause.start, clause.end):
        item.refused = NO_OPINION
        return
    item.targets = [target for target in item.targets if target.source in ("quotation", "value")]
    if not item.targets:
        if clause.stance == "poor" and clause.probability < _MIN_BLAME:
            clause = item.clause = replace(clause, stance="unsure", probability=1.0 - clause.probability)
        best = rank_places(comment, (clause.start, clause.end), clause.stance, document, prompt, quotations)
        if best is None or best.confidence < _WELL_PLACED:
            item.omission = _possible_omission(comment, clause, document)
            if item.omission:
                return
        item.targets = _targets(best) if best else []
        if best and best.source == "paraphrase" and speaks_of_whole(comment, clause, document):
            item.targets = [Target("whole", document.whole, (clause.start, clause.end), best.confidence)]
    if clause.stance == "unsure":
        item.refused = NOT_SURE
    elif not item.targets:
        item.refused = NO_PLACE


def _possible_omission(comment: str, clause: Clause, document: Document) -> Omission | None:
    """Return what a clause that fits no part of the answer well may say is missing, unless the answer has it."""
    if clause.missing is None or clause.stance == "good":
        return None
    text = omission_text(comment, clause.missing)
    return None if is_present(text, document.text) else _omission(text, clause.missing, clause.lacks)


def _add_paraphrases(
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


def _finish(comment: str, item: ReadClause, document: Document) -> None:
    """Settle a clause that has no target yet: the whole answer, a sentence, or refused."""
    clause = item.clause
    if item.targets or item.omission or item.refused:
        if clause.stance == "unsure" and not item.omission and not item.refused:
            item.refused = NOT_SURE
        return
    bounds = (clause.start, clause.end)
    if _is_whole(comment, clause, document):
        item.targets = [Target("whole", document.whole, bounds, _WHOLE_CONFIDENCE)]
    else:
        is_long = len(comment.split()) >= MIN_LONG
        hints = [] if document.program or is_long else _hints(comment, clause, document)
        hints = [hint for hint in hints if hint.confidence >= _MIN_HINT_CONFIDENCE]
        item.targets = [target for hint in hints for target in _targets(hint)] or _sentence(comment, clause, document)
    if clause.stance == "unsure":
        item.refused = NOT_SURE
    elif not item.targets:
        item.refused = NO_PLACE


def _drop_generalities(read: Sequence[ReadClause]) -> None:
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


def _spans(comment: str, read: Sequence[ReadClause], critic: str) -> list[Span]:
    """Return the targets of the clauses that praise or blame as spans, in order, each place and label once."""
    spans: dict[tuple[int, int, str], Span] = {}
    for item in read:
        clause = item.clause
        if clause.stance == "unsure" or item.refused:
            continue
        reason = re.sub(r"^(?:but|and|however|yet)\s+", "", comment[clause.start : clause.end].strip(" ,;"))
        for target in item.targets:
            (start, end), confidence = target.place, target.confidence * clause.probability
            span = Span(
                start=start,
                end=end,
                label=clause.stance,
                phrase=target.phrase,
                reason=reason or None,
                critic=critic,
                match=_MATCH[target.source],
                confidence=round(min(1.0, confidence), 4),
            )
            key = (start, end, clause.stance)
            if key not in spans or spans[key].confidence < span.confidence:
                spans[key] = span
    return sorted(spans.values(), key=lambda span: (span.start, span.end))
