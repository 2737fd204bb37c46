"""References to the parts of an answer: "the last sentence", "the second bullet", "step 3", "the title", "the ending"."""

# ruff: noqa: E501  one pattern per line

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

from text2grad.align.answer.document import Document
from text2grad.align.answer.proposals import Proposal, overlap
from text2grad.schema import Range

_ORDINALS = {
    "first": 0, "1st": 0, "opening": 0, "initial": 0, "second": 1, "2nd": 1, "third": 2, "3rd": 2, "fourth": 3, "4th": 3,
    "fifth": 4, "5th": 4, "sixth": 5, "6th": 5, "seventh": 6, "7th": 6, "eighth": 7, "8th": 7, "ninth": 8, "tenth": 9,
    "last": -1, "final": -1, "closing": -1, "concluding": -1, "bottom": -1, "top": 0, "penultimate": -2,
    "second to last": -2, "second-to-last": -2, "next to last": -2, "second last": -2,
}  # fmt: skip
_NOUNS = (
    "opening",
    "initial",
    "final",
    "closing",
    "concluding",
    "bottom",
    "top",
)  # things by themselves: "the top is fine"
_COUNTS = {"two": 2, "2": 2, "couple of": 2, "three": 3, "3": 3, "few": 3, "four": 4, "4": 4}
_NUMBERS = {
    word: i for i, word in enumerate(["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"], 1)
}
_ORDINAL = "|".join(sorted(map(re.escape, [*_ORDINALS, "middle"]), key=len, reverse=True))
_COUNT = "|".join(_COUNTS)
_NUMBER = rf"\d{{1,3}}|{'|'.join(_NUMBERS)}"


class _Unit(NamedTuple):
    pattern: str
    find: Callable[[Document], list[Range]]
    needs_number: bool  # without an ordinal or number it means nothing, unless there is only one


def _ending(document: Document) -> list[Range]:
    last = document.sentences[-1:]
    return document.paragraphs[-1:] if len(document.paragraphs) > 2 and not document.items else last


def _opening(document: Document) -> list[Range]:
    return document.sentences[:1]


def _introduction(document: Document) -> list[Range]:
    return document.paragraphs[:1] if len(document.paragraphs) > 1 else document.sentences[:1]


def _lines(document: Document) -> list[Range]:
    """Return the lines; of a text in paragraphs the sentences, which people call lines."""
    wrapped = any(sum(line[0] <= start < line[1] for start, _ in document.sentences) > 1 for line in document.lines)
    return document.sentences if wrapped else document.lines


def _words(document: Document) -> list[Range]:
    return [match.span() for match in re.finditer(r"\w[\w'’-]*", document.text)]


_UNITS = (
    _Unit(r"sentences?", lambda d: d.sentences, True),
    _Unit(r"paragraphs?|paras?", lambda d: d.paragraphs, True),
    _Unit(r"lines?", _lines, True),
    _Unit(r"(?:bullet|bulleted|list)(?:\s|-)?(?:points?|items?)?s?|points?|items?|entr(?:y|ies)", lambda d: d.bullets, True),
    _Unit(r"tips?|suggestions?|ideas?|options?|recommendations?|reasons?|examples?|rules?|tasks?|arguments?|stops?|exercises?|gifts?", lambda d: d.items, True),
    _Unit(r"steps?|instructions?", lambda d: d.steps, True),
    _Unit(r"ingredients?", lambda d: d.ingredients, True),
    _Unit(r"numbers?(?=\s+\d)", lambda d: d.items, True),
    _Unit(r"ones?", lambda d: d.items, True),
    _Unit(r"questions?", lambda d: d.questions, True),
    _Unit(r"words?", _words, True),
    _Unit(r"title|headline|heading|header", lambda d: d.title or d.headings[:1] or d.subject_lines, False),
    _Unit(r"subject(?:[\s-]line)?", lambda d: d.subject_lines, False),
    _Unit(r"greeting|salutation", lambda d: d.greeting, False),
    _Unit(r"sign[\s-]?off|valediction|closing(?:\s+(?:words?|phrase|formula|line))?|signing off", lambda d: d.sign_off or _ending(d), False),
    _Unit(r"signature", lambda d: d.signature, False),
    _Unit(r"p\.?\s?s\.?(?=\W)|postscript", lambda d: d.postscript, False),
    _Unit(r"intro(?:duction)?|first part", _introduction, False),
    _Unit(r"opening(?:\s+(?:line|sentence))?|beginning|start", _opening, False),
    _Unit(r"ending|conclusion|end|close|wrap-up|last part|final part|punchline|finale|twist", _ending, False),
    _Unit(r"(?:bulleted\s+|numbered\s+)?list", lambda d: d.lists, False),
    _Unit(r"list of ingredients|ingredients? list|ingredients", lambda d: [(d.ingredients[0][0], d.ingredients[-1][1])] if d.ingredients else [], False),
)  # fmt: skip
_COMPILED = tuple(
    (
        re.compile(
            rf"(?<![\w'’-])(?:(?P<ordinal>{_ORDINAL})[\s-]+(?:(?P<count>{_COUNT})\s+)?)?(?P<unit>{unit.pattern})(?![\w-])"
            rf"(?:\s+(?:number\s+|no\.?\s*|#\s*)?(?P<number>{_NUMBER})(?![\w.]*\d)\b(?:\s*(?:-|–|to)\s*(?P<until>{_NUMBER})\b|(?P<more>(?:\s*(?:,(?:\s*and\b)?|and\b|&)\s*(?:{_NUMBER})\b)+))?)?",
            re.IGNORECASE,
        ),
        unit,
    )
    for unit in _UNITS
)
_ANY_UNIT = re.compile(rf"(?<![\w'’-])(?:{'|'.join(unit.pattern for unit in _UNITS)})(?![\w-])", re.IGNORECASE)
# "the end of the story is nice" and "the start" as nouns, not "in the end", "to start with", "the first time"
_NOUN = re.compile(
    r"\b(?:the|this|that|its|your|my|their|an?|no|both|each|every|nice|good|great|bad|weak)\s+(?:\w+\s+)?$",
    re.IGNORECASE,
)
_NO_NOUN_BEFORE = re.compile(r"\b(?:in|at|by|from|to|until|till)\s+the\s+(?:very\s+)?$", re.IGNORECASE)
_AT_END = re.compile(
    r"\b(?:at|near|towards?)\s+the\s+(?:very\s+)?(?P<side>end|beginning|start|top|bottom)\b", re.IGNORECASE
)
_AMBIGUOUS = re.compile(
    r"start|beginning|end|close|list|points?|items?|lines?|words?|instructions?|subject|header|questions?", re.I
)
_OF_A_TIME = re.compile(
    r"(?<=ing)\s+(?:times?|hours?|dates?|days?)\b|(?:(?<=start)|(?<=end)|(?<=ning))[\s-]+(?:times?|dates?|days?|years?|months?|points?)\b",
    re.IGNORECASE,
)  # "the closing time", "the start date"
_WHOLE_NAME = r"(?:it|this|that|you|they|the\s+(?:whole\s+)?(?:\w+\s+)?(?:letter|mail|e-?mail|message|story|tale|poem|text|answer|summary|post|speech|essay))"
_ENDS = r"(?P<ends>ends?|ended|clos(?:es?|ed)|finish(?:es|ed)?|conclud(?:es?|ed)|signs?\s+off|wraps?\s+up)"
_STARTS = r"(?:starts?|started|begins?|began|open(?:s|ed)?|kicks?\s+off)"
_MANNER = r"(?:far\s+|way\s+|much\s+)?(?:too\s+|so\s+|very\s+|rather\s+|quite\s+|a\s+bit\s+)?(?:\w+ly\b|well\b|strong\b|weak\b|badly\b)"
_HOW = re.compile(
    rf"\b(?:how|the\s+way)\s+{_WHOLE_NAME}\s+(?:{_ENDS}|{_STARTS})\b(?!\s+(?:in|at|on|with|from|to|up|out|the|a)\b)",
    re.IGNORECASE,
)
_DOES = re.compile(
    rf"(?:^|(?<=[,.;]\s))\W*(?:(?:but|and|sadly|also)\s+)*(?:{_WHOLE_NAME}\s+)?(?:{_ENDS}|{_STARTS})\s+{_MANNER}",
    re.IGNORECASE,
)
_TOO = re.compile(
    r"\btoo\s+[\w-]+\s+an?\s+(?:(?P<ends>end(?:ing)?|close|closing|conclusion|sign-?off|goodbye|farewell)|opening|beginning|start|introduction|intro|greeting|salutation)\b",
    re.IGNORECASE,
)
_ANY_EDGE = re.compile(
    rf"(?:^\W*|\b{_WHOLE_NAME}\s+)(?:{_ENDS}|{_STARTS})\b(?!\s+(?:at|from|to|up|out)\b)", re.IGNORECASE
)
_LABEL = re.compile(r"[^\w\n]*(?P<noun>[A-Za-z]+) (?P<number>\d{1,3})\W*[:.)–—-]")
_BARE_NUMBERS = re.compile(
    r"\W*(?:(?:but|and|only)\s+)?#?(?P<numbers>\d{1,2}(?:(?:\s*,(?:\s*and)?|\s+and|\s*&)\s*#?\d{1,2})*)\s+(?:both\s+|also\s+)?(?:is|are|isn['’]t|aren['’]t|was|were|seems?|says?"
    r"|sounds?|repeats?|contradicts?|should|makes?|needs?|could)\b",
    re.IGNORECASE,
)
_COUNTED = "|".join(sorted((re.escape(word) for word in _ORDINALS if word not in _NOUNS), key=len, reverse=True))
_BARE_ORDINALS = re.compile(
    rf"\W*(?:(?:but|and|only|also|while|though|yet)\s+)*the\s+(?P<ordinals>(?:{_COUNTED})(?:(?:\s*,(?:\s*and)?|\s+and|\s*&)\s+(?:the\s+)?(?:{_COUNTED}))*)(?:\s+ones?)?\s+(?:(?:also|really|just|simply|both|all|only)\s+)*"
    r"(?:is|are|was|were|has|have|does|do|can|could|should|would|must|will|needs?|seems?|sounds?|looks?|reads?|feels?|says?|repeats?|contradicts?|makes?|adds?|misses|lacks?|goes|comes|\w+n['’]t)\b",
    re.IGNORECASE,
)
_ALL_BUT = re.compile(
    r"\b(?:everything|all(?:\s+of\s+(?:it|this|that|them))?|all\s+(?:the\s+)?(?:other\s+)?\w+s)\s+(?:but|except(?:\s+for)?|besides|other\s+than|apart\s+from)\s+(?P<what>[^,;]{2,60}?)\s+"
    r"(?:is|are|was|were|looks?|sounds?|seems?|reads?)\s+(?!not\b|never\b)(?P<said>(?:[\w'’-]+\s+){0,4}?[\w'’-]+)[.!\s]*$",
    re.IGNORECASE,
)
_MAX_NUMBERED = 8  # words of a clause that says no more than how some parts are
_CONFIDENCE, _ONLY_ONE = 0.9, 0.75


def find_parts(comment: str, start: int, end: int, document: Document) -> Iterator[Proposal]:
    """Yield the parts of the document that the comment names in comment[start:end]; of nested phrases the longest."""
    taken: list[Range] = []
    compiled = _COMPILED if _ANY_UNIT.search(comment, start, end) else ()  # most clauses name none
    matches = [(match, unit) for pattern, unit in compiled for match in pattern.finditer(comment, start, end)]
    for match, unit in sorted(matches, key=lambda pair: pair[0].start() - pair[0].end()):
        if any(overlap(match.span(), other) for other in taken) or _OF_A_TIME.match(comment, match.end("unit")):
            continue
        places = _resolve(match, unit, document)
        if places:
            taken.append(match.span())
            certain = bool(match["ordinal"] or match["number"]) or not unit.needs_number
            yield Proposal("part", match.span(), tuple(places), _CONFIDENCE if certain else _ONLY_ONE)
    for proposal in _labelled(comment, start, end, document):
        if not any(overlap(proposal.phrase, other) for other in taken):
            taken.append(proposal.phrase)
            yield proposal
    if not taken:
        for match in _AT_END.finditer(comment, start, end):
            find = _ending if match["side"].lower() in ("end", "bottom") else _opening
            if places := find(document):
                yield Proposal("part", match.span(), tuple(places), _ONLY_ONE)


_AFTER = re.compile(
    r"\b(?:everything|all(?: that comes)?|anything|the rest|what comes)\s+(?:that (?:comes|follows)\s+)?(?P<side>after|below|following|before|above|up to)\s+",
    re.IGNORECASE,
)


def _labelled(comment: str, start: int, end: int, document: Document) -> Iterator[Proposal]:
    """Yield the lines whose label a comment gives: "Day 2" of a plan with "Day 1: ...", "Day 2: ..."."""
    labels = [(_LABEL.match(document.text, *line), line) for line in document.lines]
    lines = {(match["noun"].lower(), int(match["number"])): line for match, line in labels if match}
    if len(lines) < 2:
        return
    for noun in dict.fromkeys(noun for noun, _ in lines):
        pattern = rf"\b{noun}s?\s+(?P<first>\d{{1,3}})(?P<more>(?:\s*(?:,(?:\s*and\b)?|and\b|&)\s*\d{{1,3}}\b)*)"
        for match in re.compile(pattern, re.IGNORECASE).finditer(comment, start, end):
            numbers = map(int, re.findall(r"\d+", match["first"] + match["more"]))
            if places := tuple(lines[noun, number] for number in numbers if (noun, number) in lines):
                yield Proposal("part", match.span(), places, _CONFIDENCE)


def find_rest(comment: str, start: int, end: int, document: Document) -> Proposal | None:
    """Return the sentences before or after a part: "everything after the second sentence"."""
    match = _AFTER.search(comment, start, end)
    part = next(find_parts(comment, match.end(), end, document), None) if match else None
    if match is None or part is None:
        return None
    if match["side"].lower() in ("after", "below", "following"):
        places = [place for place in document.sentences if place[0] >= part.places[-1][1]]
    else:
        places = [place for place in document.sentences if place[1] <= part.places[0][0]]
    return Proposal("part", (match.start(), part.phrase[1]), tuple(places), _CONFIDENCE) if places else None


def find_counted(comment: str, start: int, end: int, document: Document) -> Proposal | None:
    """Return the parts of "The third is wrong" and "The first two are": of the kind that the comment named last.

    Without one, those of a list, else the sentences, if the answer has no ordinal that may be meant.
    """
    match = _BARE_ORDINALS.match(comment, start, end)
    if match is None or document.program is not None:
        return None
    ordinals = re.findall(rf"\b(?:{_COUNTED})\b", match["ordinals"].lower())
    named = [
        (found.start(), unit)
        for pattern, unit in _COMPILED
        for found in pattern.finditer(comment, 0, start)
        if unit.needs_number and (found["ordinal"] or found["number"]) and unit.find is not _words
    ]
    if not named and any(re.search(rf"\b{ordinal}\b", document.text, re.IGNORECASE) for ordinal in ordinals):
        return None
    last = max(named, key=lambda pair: pair[0])[1].find(document) if named else []
    parts = last or document.items or document.sentences
    numbers = [_ORDINALS[re.sub(r"\s+", " ", ordinal)] for ordinal in ordinals]
    if len(parts) < 2 or not all(-len(parts) <= number < len(parts) for number in numbers):
        return None
    return Proposal("part", match.span("ordinals"), tuple(dict.fromkeys(parts[n] for n in numbers)), _CONFIDENCE)


def find_all_but(
    comment: str, start: int, end: int, document: Document
) -> tuple[Proposal, tuple[Range, ...], str] | None:
    """Return the part of "Everything but the third sentence is right", the sentences that it leaves, and "right"."""
    match = _ALL_BUT.search(comment, start, end)
    if match is None or document.program is not None:
        return None
    parts = list(find_parts(comment, *match.span("what"), document))
    if len(parts) != 1 or parts[0].phrase[1] != match.end("what"):
        return None
    rest = [place for place in document.sentences if not any(overlap(place, other) for other in parts[0].places)]
    return parts[0], tuple(rest), match["said"]


def find_several(comment: str, start: int, end: int, document: Document) -> Proposal | None:
    """Return the parts that a short clause names by number: "Steps 1 and 3 are wrong", "Number 3 is odd", "Day 2"."""
    if len(comment[start:end].split()) > _MAX_NUMBERED or not any(char.isdigit() for char in comment[start:end]):
        return None
    labelled = list(_labelled(comment, start, end, document))
    if labelled:
        return labelled[0] if len(labelled) == 1 else None
    if bare := _find_bare_numbers(comment, start, end, document):
        return bare
    parts = list(find_parts(comment, start, end, document))
    if len(parts) != 1 or not comment[parts[0].phrase[1] - 1].isdigit():
        return None
    is_plain = comment[slice(*parts[0].phrase)].lower().startswith("number")
    return parts[0] if is_plain or len(parts[0].places) > 1 else None


def _find_bare_numbers(comment: str, start: int, end: int, document: Document) -> Proposal | None:
    """Return the items of a numbered list of "3 and 5 are bad", if the answer has no such numbers elsewhere."""
    match = _BARE_NUMBERS.match(comment, start, end)
    if match is None:
        return None
    numbers = re.findall(r"\d+", match["numbers"])
    for number in numbers:
        uses = re.findall(rf"(?<![\d.,]){number}(?![\d]|[.,]\d)", document.text)
        labels = re.findall(rf"^\W*{number}[.):]\s", document.text, re.MULTILINE)
        if len(uses) != 1 or len(labels) != 1 or not 0 < int(number) <= len(document.items):
            return None
    places = tuple(dict.fromkeys(document.items[int(number) - 1] for number in numbers))
    return Proposal("part", match.span("numbers"), places, _CONFIDENCE)


def find_described_edge(
    comment: str, start: int, end: int, document: Document, *, is_loose: bool = False
) -> Proposal | None:
    """Return the beginning or the ending where comment[start:end] says how the answer begins or ends.

    "I love how it closes", "It ends too abruptly", "Too blunt a start for a letter". is_loose: "It ends with a lie" is
    enough, which may also be about the words of the lie.
    """
    if document.program is not None or len(document.sentences) < 2:
        return None
    for pattern in (_ANY_EDGE,) if is_loose else (_HOW, _DOES, _TOO):
        if match := pattern.search(comment[start:end]):
            places = _ending(document) if match["ends"] else _opening(document)
            if "sign" in match[0].lower():
                places = document.sign_off or places
            phrase = (start + match.start(), start + match.end())
            return Proposal("part", phrase, tuple(places), _ONLY_ONE) if places else None
    return None


def _resolve(match: re.Match[str], unit: _Unit, document: Document) -> list[Range]:
    comment, (start, _) = match.string, match.span()
    if match["number"]:
        first = _number(match["number"])
        last = _number(match["until"]) if match["until"] else first
        places = unit.find(document)
        if match["more"]:
            numbers = [first, *map(_number, re.findall(rf"\b(?:{_NUMBER})\b", match["more"], re.IGNORECASE))]
            return [places[number - 1] for number in numbers if 0 < number <= len(places)]
        return places[first - 1 : last] if 0 < first <= last else []
    if match["ordinal"] is None:
        if _AMBIGUOUS.fullmatch(match["unit"]):
            before = comment[max(0, start - 30) : start]
            if not _NOUN.search(before) or _NO_NOUN_BEFORE.search(before):
                return []
        places = unit.find(document)
        return places if not unit.needs_number or len(places) == 1 else []
    places = unit.find(document)
    if match["ordinal"].lower() == "middle":
        return [places[len(places) // 2]] if len(places) % 2 and len(places) > 1 else []
    number = _ORDINALS[re.sub(r"\s+", " ", match["ordinal"].lower())]
    if match["count"]:
        count = _COUNTS[match["count"].lower()]
        return places[-count:] if number < 0 else places[:count]
    if unit.find is _words and number > 0:
        return []  # "the second word" is rare, "the second words" nonsense
    if not unit.needs_number:
        return places
    return [places[number]] if -len(places) <= number < len(places) else []


def _number(text: str) -> int:
    return int(text) if text.isdigit() else _NUMBERS[text.lower()]
