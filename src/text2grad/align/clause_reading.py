"""One clause of a comment: what it says by itself, and where a short comment's clause points.

Quotations are places by themselves, as are values that a clause gives in the place of the answer's. For the other
clauses of a short comment on an answer of several parts, `places` ranks all places that any source proposes. A clause
that fits nothing is refused, with the reason.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from text2grad.align.answer.document import Document
from text2grad.align.answer.kinds import find_kinds
from text2grad.align.answer.parts import find_all_but, find_counted, find_described_edge, find_rest, find_several
from text2grad.align.answer.proposals import Proposal, Source
from text2grad.align.clauses.clauses import MIN_MISSING, Clause
from text2grad.align.clauses.coordination import find_things
from text2grad.align.clauses.denials import find_contrasted, find_denied
from text2grad.align.clauses.lacks import denies_lack, is_needless, welcomes_lack
from text2grad.align.clauses.missing import find_stated_lack
from text2grad.align.clauses.stance import detect_stances
from text2grad.align.clauses.stance_rules import correct_stance, opposite_stance
from text2grad.align.clauses.unfounded import blame_unfounded
from text2grad.align.clauses.whole import is_general, is_verdict, speaks_of_whole
from text2grad.align.corrections.code_values import find_code_value
from text2grad.align.corrections.restated_names import find_restated_name, find_restated_place
from text2grad.align.corrections.restated_values import RestatedValue, find_restated_value
from text2grad.align.corrections.source_values import find_source_value
from text2grad.align.omissions import asks_to_change, is_present, is_removal, is_unwanted, omission_text
from text2grad.align.places.places import rank_places
from text2grad.align.places.targets import find_targets
from text2grad.align.quotes.quotes import Match
from text2grad.schema import Label, Omission, Range

NOT_SURE = "it neither praises nor blames"
NOT_MISSING = "the answer does contain what it says is missing"
NO_PLACE = "it fits no part of the answer"
NO_OPINION = "it says nothing about the answer"
_SURE_PRAISE = 0.9  # probability of praise that another value does not change: "Rounded correctly to 4.99 per cent"
_CERTAIN_PRAISE = 0.97  # the same, of a value that the source has: hardly any such clause praises
_VALUE_PROBABILITY, _VALUE_CONFIDENCE = 0.95, 0.83  # of blame by a clause that gives another value; of that value
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
_SHOULD_BE = re.compile(r"\b(?:should|must|ought\s+to|needs?\s+to|has\s+to)\s+(?:be|read|say)\b", re.IGNORECASE)
_NOT_SAID_PROBABILITY = 0.95
_INTERJECTION = re.compile(r"(?:\W|\b(?:yes|no|well|sure|indeed|really|hm+|oh|ah|right then|anyway)\b)+", re.IGNORECASE)
_INSTRUCTION_PROBABILITY = 0.85
_WELCOME_PROBABILITY = 0.85  # of praise by who is glad of what is left out
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
_ALL_BUT_PROBABILITY = 0.9
_DENIED_PROBABILITY, _DENIED_CONFIDENCE = 0.95, 0.75
_MAX_DOUBT, _QUOTED_PROBABILITY = 0.5, 0.7  # who quotes words without praise or a clear doubt blames them
# Probability of blame on words that are not quoted: praise is taken for blame more often than blame for praise. The
# same bound on praise would refuse five clauses for each that is the wrong way round.
_MIN_BLAME = 0.6
_WELL_PLACED = 0.35  # confidence of a place that a clause is about rather than about what is missing
_MAX_AROUND_MISSING = 8  # words of a clause besides what it says is missing, if it says nothing else
WHOLE_CONFIDENCE, _GENERAL_CONFIDENCE = 0.9, 0.5


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


def settle_stance(comment: str, clause: Clause, label: Label | None, document: Document) -> Clause:
    """Return the clause with the label where one is given; an instruction to change something blames it."""
    bounds = (clause.start, clause.end)
    is_order = is_removal(comment, *bounds)
    is_poor = clause.stance == "poor" or clause.lacks >= MIN_MISSING
    is_welcome = is_poor and (denies_lack(comment[slice(*bounds)]) or welcomes_lack(comment[slice(*bounds)]))
    needless = is_poor and not is_welcome and is_needless(comment[slice(*bounds)])
    is_unmissed = is_welcome or needless or is_order or is_unwanted(comment, *bounds)
    if is_unmissed or asks_to_change(comment, *bounds):
        clause = replace(clause, missing=None, lacks=0.0)
    elif clause.stance == "poor" and (what := find_stated_lack(comment, *bounds)) and not _has(comment, what, document):
        clause = replace(clause, missing=what, lacks=max(clause.lacks, _STATED_LACK))
    if label is not None:
        return replace(clause, stance=label, probability=1.0)
    if is_welcome:
        return replace(clause, stance="good", probability=_WELCOME_PROBABILITY)
    clause = blame_unfounded(comment, correct_stance(comment, clause, document), document)
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


def read_clause(
    comment: str, clause: Clause, document: Document, prompt: str, quotations: Sequence[tuple[Range, Match | None]]
) -> ReadClause:
    """Read what the clause says by itself: what is missing, or what it points at explicitly."""
    bounds = (clause.start, clause.end)
    if denial := _read_denial(comment, clause, document) or _read_all_but(comment, clause, document):
        return denial
    praise = clause.probability if clause.stance == "good" else 0.0
    program = document.program
    if program is not None and praise < _SURE_PRAISE and (code := find_code_value(comment, bounds, program)):
        return _read_values(clause, [code])
    quotes = any(bounds[0] <= start and end <= bounds[1] for (start, end), _ in quotations)
    if praise < _CERTAIN_PRAISE and not quotes and (value := find_source_value(comment, bounds, document, prompt)):
        return _read_values(clause, [value])
    is_stated = not quotes and clause.stance == "poor" and _SHOULD_BE.search(comment, *bounds) is not None
    if is_stated and (values := _restated(comment, bounds, document)):
        return _read_values(clause, values)
    if clause.missing is not None and clause.lacks >= MIN_MISSING and clause.stance != "good":
        text = omission_text(comment, clause.missing)
        rest = comment[clause.start : clause.missing[0]] + comment[clause.missing[1] : clause.end]
        if not is_present(text, document.text):
            return ReadClause(clause, omission=_omission(text, clause.missing, clause.lacks))
        if len(rest.split()) <= _MAX_AROUND_MISSING:
            return ReadClause(clause, refused=NOT_MISSING)
    if praise < _SURE_PRAISE and not quotes and (values := _restated(comment, bounds, document)):
        return _read_values(clause, values)
    found = find_targets(comment, bounds, document, quotations)
    quoted = [proposal.phrase for proposal in found if proposal.source == "quotation"]
    if quoted and clause.stance == "unsure" and clause.probability < _MAX_DOUBT:
        stance: Label = "good" if "good" in detect_stances(comment, quoted, occurs=lambda _: True) else "poor"
        clause = replace(clause, stance=stance, probability=_QUOTED_PROBABILITY)
    return ReadClause(clause, [target for proposal in found for target in targets_of(proposal)])


def _restated(comment: str, bounds: Range, document: Document) -> list[RestatedValue]:
    """Return the value, the name and the place that a clause gives in the place of the answer's."""
    place = find_restated_place(comment, bounds, document)
    value = find_restated_value(comment, bounds, document, place.phrase if place else None)
    value = value or (None if place else find_restated_name(comment, bounds, document))
    return [each for each in (value, place) if each is not None]


def _read_values(clause: Clause, values: Sequence[RestatedValue]) -> ReadClause:
    """Read a clause that gives other values than the answer: it blames the answer's."""
    if any(value.is_of_other for value in values):
        return ReadClause(clause, refused=NOT_SURE)
    blame = replace(clause, stance="poor", probability=_VALUE_PROBABILITY, missing=None, lacks=0.0)
    targets = [
        Target("value", value.place, value.phrase if value.is_written_alike else None, _VALUE_CONFIDENCE)
        for value in values
    ]
    return ReadClause(blame, targets)


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


def _read_all_but(comment: str, clause: Clause, document: Document) -> ReadClause | None:
    """Read "Everything but the last sentence is right" as blame of that sentence, "is wrong" as blame of the rest."""
    found = find_all_but(comment, clause.start, clause.end, document) if clause.stance == "unsure" else None
    said = opposite_stance(found[2].split()[-1]) if found else None
    if found is None or said is None:
        return None
    places = found[0].places if said == "poor" else found[1]
    blame = replace(clause, stance="poor", probability=_ALL_BUT_PROBABILITY, missing=None, lacks=0.0)
    return ReadClause(blame, [Target("value", place, None, found[0].confidence) for place in places])


def find_stated_omissions(comment: str, document: Document) -> Iterator[ReadClause]:
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


def targets_of(proposal: Proposal) -> list[Target]:
    """Return a target for each place that a proposal names."""
    return [Target(proposal.source, place, proposal.phrase, proposal.confidence) for place in proposal.places]


def rank_clause(
    comment: str,
    item: ReadClause,
    document: Document,
    prompt: str,
    quotations: Sequence[tuple[Range, Match | None]],
) -> None:
    """Settle a clause of a short comment: its quotations, else the place that the ranker finds most likely."""
    if item.omission or item.refused:
        return
    clause = item.clause
    if _INTERJECTION.fullmatch(comment, clause.start, clause.end):
        item.refused = NO_OPINION
        return
    item.targets = [target for target in item.targets if target.source in ("quotation", "value")]
    if not item.targets and clause.stance == "good" and welcomes_lack(comment[clause.start : clause.end]):
        item.targets = [Target("whole", document.whole, (clause.start, clause.end), _GENERAL_CONFIDENCE)]
    item.targets = item.targets or _find_several_things(comment, clause, document, prompt)
    if not item.targets:
        bounds = (clause.start, clause.end)
        if clause.stance == "poor" and clause.probability < _MIN_BLAME:
            clause = item.clause = replace(clause, stance="unsure", probability=1.0 - clause.probability)
        best = _find_place(comment, clause, document, prompt, quotations)
        if best is None or best.confidence < _WELL_PLACED:
            item.omission = _possible_omission(comment, clause, document)
            if item.omission:
                return
        item.targets = targets_of(best) if best else []
        text = comment[slice(*bounds)]
        is_unplaced = best is None or (best.confidence < _WELL_PLACED and is_verdict(text, document))
        if is_unplaced and is_general(text, document):
            item.targets = [Target("whole", document.whole, bounds, _GENERAL_CONFIDENCE)]
        elif best and best.source == "paraphrase" and speaks_of_whole(comment, clause, document):
            item.targets = [Target("whole", document.whole, bounds, best.confidence)]
    if clause.stance == "unsure":
        item.refused = NOT_SURE
    elif not item.targets:
        item.refused = NO_PLACE


def _find_place(
    comment: str, clause: Clause, document: Document, prompt: str, quotations: Sequence[tuple[Range, Match | None]]
) -> Proposal | None:
    """Return the place that the wording of a clause settles, else the one that the ranker finds most likely."""
    bounds = (clause.start, clause.end)
    return (
        find_rest(comment, *bounds, document)
        or find_several(comment, *bounds, document)
        or find_counted(comment, *bounds, document)
        or find_described_edge(comment, *bounds, document)
        or rank_places(comment, bounds, clause.stance, document, prompt, quotations)
        or find_described_edge(comment, *bounds, document, is_loose=True)
    )


def _find_several_things(comment: str, clause: Clause, document: Document, prompt: str) -> list[Target]:
    """Return a place for each of the things of which a clause says the same, if at least two have one of their own."""
    if clause.stance == "unsure" or clause.probability < _MIN_BLAME:
        return []
    found: dict[Range, Target] = {}
    for phrase, alone in find_things(comment, (clause.start, clause.end), document):
        best = _find_place(alone, replace(clause, start=0, end=len(alone)), document, prompt, [])
        if best and best.source != "whole" and best.confidence >= _WELL_PLACED:
            for place in best.places:
                found.setdefault(place, Target(best.source, place, phrase, best.confidence))
    return list(found.values()) if len(found) > 1 else []


def _possible_omission(comment: str, clause: Clause, document: Document) -> Omission | None:
    """Return what a clause that fits no part of the answer well may say is missing, unless the answer has it."""
    if clause.missing is None or clause.stance == "good":
        return None
    text = omission_text(comment, clause.missing)
    return None if is_present(text, document.text) else _omission(text, clause.missing, clause.lacks)
