"""What a comment asks to change, as it is worded: replace A by B, remove A, add B after A.

People write the same request in many ways: "Monday, not Friday", '"Friday" should be "Monday"', "change Friday to
Monday", "it was Monday rather than Friday". A request holds the wording of its parts as ranges of the comment;
`corrections` finds them in the answer. Where a sentence says which of two things is wrong only by what the answer says
("A instead of B"), the request is marked as ambiguous.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from text2grad.align.quotes.quotations import find_quotations
from text2grad.schema import Range

RequestKind = Literal["replace", "remove", "insert", "spell"]
Side = Literal["after", "before"]

_MASK = "\ue000"  # stands for each character of a quotation and its marks
_MAX_SENTENCE = 600  # characters; longer ones are no requests, and slow to read as such
_MARKS = "\"'`“”‘’„«»「」"
_SENTENCE_END = re.compile(
    r"(?<=[.!?])[\"'”’)]*\s+(?=[\"'“‘(]*(?-i:[A-Z0-9\ue000]))|[;\n]+|,?\s+and\s+(?=(?:remove|delete|replace|change|add|insert)\b)",
    re.IGNORECASE,
)

_CUES = tuple(
    re.compile(cue, re.IGNORECASE) for cue in (r"\b(?:should|must|ought\s+to)\s+(?:be|read|say)\b", r"->|=>|→")
)
_JOINT = re.compile(r"\s*,\s+(?:and\s+)?|\s+and\s+", re.IGNORECASE)


@dataclass(frozen=True)
class Term:
    """A part of a request: its range in the comment without quotation marks, and whether it is quoted.

    `edge` says which end is sure where words around a part of the sentence belong to it or not: "start" for what
    follows "not", "end" for what precedes it; None if the range is the whole part.
    """

    start: int
    end: int
    is_quoted: bool
    edge: Literal["start", "end"] | None = None


@dataclass(frozen=True)
class ChangeRequest:
    """One request. `phrase` is its sentence.

    replace: `old` by `new`; old is None where only the right words are given. spell: `new` is the right spelling.
    remove: `old`. insert: `new` after or before `place`. is_ambiguous: old and new may be the other way round.
    is_order: the comment asks for it, rather than states what is true.
    """

    kind: RequestKind
    phrase: Range
    old: Term | None = None
    new: Term | None = None
    place: Term | None = None
    side: Side = "after"
    is_ambiguous: bool = False
    is_order: bool = True


# The parts: (?P<old>...) and (?P<new>...) are taken whole, old_start and new_end are sure at one end only.
_LEAD = r"(?:^|(?<=[\s(,:]))"
_ABOUT = (
    r"(?:the\s+|any\s+|all\s+)?(?:(?:information|mentions?|parts?|facts?|references?|details?|claims?|statements?|bits?"
    r"|words?|phrases?|terms?|sentences?)\s+(?:about|of|that|to|on|regarding|saying|concerning)\s+)+(?:the\s+fact\s+that\s+)?"
)
_IN_TEXT = (
    r"(?:\s+(?:from|in|of|to)\s+(?:the\s+|this\s+|your\s+)?(?:original\s+)?(?:summary|answer|text|response|sentence|"
    r"reply|output|article))?"
)
_REASON = r"(?:,?\s+(?:because|since|as\s+(?:it|this|that|there|they)|which\s+(?:is|was|are)\s+not|but\s+keep)\b.*)?"
_TAIL = rf"{_IN_TEXT}{_REASON}(?:,?\s+(?:please|instead|here|there|then|too|thanks))?[\s.,;:!?)\"'”’]*$"
_NEG = (
    r"(?<!do not )(?<!don't )(?<!not )(?<!never )(?<!no need to )(?<!not need to )(?<!n't need to )(?<!n’t need to )"
    r"(?<!needn't )(?<!n't have to )(?<!not have to )(?<!nobody should )(?<!no one should )"
)
_GLAD = re.compile(
    r"\b(?<!would be )(?<!not )(?<!n't )(?<!n’t )(?:good|great|nice|right|glad|happy|pleased|relieved)\s+"
    r"(?:that\b|to\s+see\b|(?:you|it)\s+(?!should|could|would))",
    re.IGNORECASE,
)  # what follows is praised as it is
_REMOVE = (
    r"remov(?:e|ing)|delet(?:e|ing)|drop(?:ping)?|omit(?:ting)?|leav(?:e|ing)\s+out|tak(?:e|ing)\s+out|eras(?:e|ing)|"
    r"get(?:ting)?\s+rid\s+of|eliminat(?:e|ing)|strik(?:e|ing)(?:\s+out)?|cut(?:ting)?(?:\s+out)?|scrap(?:ping)?"
)
_SHOULD = r"(?:should|must|ought\s+to|needs?\s+to|has\s+to|have\s+to)"
_PROPER = rf"{_MASK}+|(?-i:[A-ZÀ-Þ0-9])[\w'’.,-]*(?:\s(?-i:[A-ZÀ-Þ0-9])[\w'’-]*)*"
# What follows "should be" and is no wording: "should be removed", "should be clearer".
_NO_WORDING = (
    r"spel|remov|delet|left|omit|cut|more|less|clear|able|a\s+bit|chang|replac|rewri|correct|includ|mention|add|writ|stat|"
    r"fix|in\s+the\s+(?:summary|answer)|is\b|are\b|to\b|not\b|no\b"
)
_CHANGES = "chang modify correct renam turn convert updat edit alter fix"
_REMOVES = "remov delet drop omit leav tak eras get eliminat strik cut scrap"
_OUGHT = "should must ought need has have"
_PATTERNS: tuple[tuple[RequestKind, str, str], ...] = (  # the second: one of these is in every match
    (
        "replace",
        "-> => →",
        rf"(?P<old>{_MASK}+|[^\s{_MASK}][^{_MASK},:]*?)\s*(?:->|=>|→|-->)\s*(?P<new>{_MASK}+|[^{_MASK}]+?)[\s.,;:!?]*$",
    ),
    (
        "replace",
        "replac swap",
        rf"{_NEG}\b(?:replac(?:e|ing)|swap(?:ping)?(?:\s+out)?)\s+(?P<old>.+?)\s+(?:with|by|for)\s+(?P<new>.+?){_TAIL}",
    ),
    ("replace", "substitut", rf"{_NEG}\bsubstitut(?:e|ing)\s+(?P<new>.+?)\s+for\s+(?P<old>.+?){_TAIL}"),
    (
        "replace",
        _CHANGES,
        rf"{_NEG}\b(?:chang(?:e|ing)|modify|correct|renam(?:e|ing)|turn|convert|updat(?:e|ing)|edit|alter|fix)\s+"
        rf"(?:.*?\sfrom\s+)?(?P<old>.+?)\s+(?:to(?:\s+(?:be|say|read|become))?|into)\s+(?P<new>.+?){_TAIL}",
    ),
    (
        "replace",
        "instead",
        rf"\binstead\s+of\s+(?:saying\s+|writing\s+|using\s+)?(?P<old>{_MASK}+|[^,{_MASK}]+?),\s+"
        r"(?:it|this|that|there|the\s+\w+|you)?\s*(?:should(?:\s+have)?|must|ought\s+to)?\s*"
        rf"(?:say|write|use|put|be(?:en)?|read|said|it['’]?s|is|was|try)\s+(?P<new>.+?){_TAIL}",
    ),
    (
        "remove",
        _REMOVES,
        rf"^(?:(?:please|also|and|then|you\s+should|i\s+would|just)\s+)*(?:{_REMOVE})\s+(?P<old>.+?){_TAIL}",
    ),
    (
        "remove",
        _MASK,
        rf"(?P<old>{_MASK}+)(?P<stated>\s+(?:is|are|was|were)(?:\s+not|n['’]t|\s+never|\s+nowhere)(?:\s+actually|\s+even)?\s+"
        r"(?:mentioned|stated|said|supported|given|found|in)\b(?:\s+(?:anywhere\s+)?(?:in|by)?\s*(?:the\s+)?"
        r"(?:source|article|text|passage|document|original)(?:\s+text)?)?)[\s.!]*$",
    ),
    (
        "replace",
        "confus mix",
        rf"\b(?:confus(?:es?|ed|ing)|mix(?:es|ed|ing)?(?:\s+up)?)\s+(?:the\s+)?(?P<old>{_PROPER})\s+(?P<ambiguous>with|and|for)\s+"
        rf"(?:the\s+)?(?P<new>{_PROPER})(?:\s+up)?{_TAIL}",
    ),
    (
        "replace",
        "but",
        rf"\bnot\s+(?P<old>{_MASK}+|[^,.;{_MASK}]+?),?\s+but\s+(?:rather\s+|instead\s+)?(?P<new_start>.+)$",
    ),
    (
        "replace",
        "not",
        r"(?P<new_end>.*?\S),?\s+(?:and\s+)?(?<!\bdo )not\s+"
        r"(?P<old_start>(?!(?:only|just|to|be|so|at\s+all|remove|delete|replace|change)\b).+)$",
    ),
    (
        "replace",
        "rather instead place opposed",
        r"(?P<new_end>.*\S),?\s+(?P<ambiguous>rather\s+than|instead\s+of|in\s+place\s+of|as\s+opposed\s+to)\s+"
        r"(?P<old_start>.+)$",
    ),
    (
        "remove",
        _OUGHT,
        rf"^(?P<old>.+?)\s+{_SHOULD}\s+(?:really\s+|just\s+|all\s+)?(?:go\b|not\s+be\s+(?:there|here|included|mentioned|in\b.*)"
        rf"|be\s+(?:removed|deleted|left\s+out|omitted|cut|dropped|taken\s+out|erased|struck)){_TAIL}",
    ),
    (
        "replace",
        _OUGHT,
        rf"^(?P<old_end>.*?\S)\s+{_SHOULD}\s+(?:really\s+|actually\s+|probably\s+|instead\s+|rather\s+)?"
        rf"(?:be|read|say|have\s+been|have\s+said|have\s+read)\s+(?!{_NO_WORDING})(?P<new_start>.+)$",
    ),
    (
        "remove",
        _REMOVES,
        rf"{_NEG}\b(?:{_REMOVE})\s+(?P<old>.+?){_TAIL}",
    ),
    (
        "insert",
        "after before",
        rf"{_NEG}\b(?:add|insert|put|include|write)\s+(?P<new>.+?)\s+(?P<side>after|before)\s+(?P<place>.+?){_TAIL}",
    ),
    (
        "insert",
        "after before",
        rf"\b(?:missing|omits|omitted|lacks|lacking|leaves\s+out|forgot|needs)\b:?\s+(?:the\s+words?\s+|a\s+|the\s+)?(?P<new>.+?)\s+"
        rf"(?P<side>after|before)\s+(?P<place>.+?){_TAIL}",
    ),
    (
        "insert",
        "after before",
        rf"^(?P<new>.+?)\s+(?:is\s+missing|is\s+lacking|should\s+(?:come|stand|be\s+added|follow)|belongs)\s+(?P<side>after|before)\s+(?P<place>.+?){_TAIL}",
    ),
    (
        "spell",
        "spel",
        r"\b(?:spell?ed|spelt|spelling\s+is|spelling\s+should\s+be|spell\s+it)\s+(?:correctly\s+)?(?:as\s+)?(?P<new_start>.+)$",
    ),
)
_ANY_OLD = "(?P<old>.+?)"
_COMPILED = tuple(
    (kind, tuple(cues.split()), re.compile(pattern, re.IGNORECASE | re.DOTALL)) for kind, cues, pattern in _PATTERNS
)
_ABOUT_START = re.compile(_ABOUT, re.IGNORECASE)
_FILLER_START = re.compile(r"(?:just|simply|only|instead|rather)\s+", re.IGNORECASE)
_QUOTED, _QUOTED_END = re.compile(f"{_MASK}+"), re.compile(f"{_MASK}+$")
_LABELLED_QUOTE = re.compile(rf"(?:[\w'’]+\s+){{1,3}}(?={_MASK}+$)")
_LABEL_START = re.compile(
    r"(?:the\s+)?(?:words?|phrases?|names?|terms?|numbers?|dates?|years?|sentence|first\s+name|value|figure)\s+(?=\ue000)",
    re.IGNORECASE,
)


_MEANT = re.compile(
    rf"(?:^|(?<=[.!?]\s))(?P<old>{_MASK}+|[^.!?,;:{_MASK}]{{1,40}})\?[\"'”’]*\s+(?:(?:i|we)\s+(?:think|guess|suppose|believe|assume)\s+|surely\s+"
    rf"|presumably\s+)?you\s+(?:must\s+|probably\s+)?(?:mean|meant)\s+(?P<new>{_MASK}+|[^.!?,;{_MASK}]{{1,40}})[.!]*(?=\s|$)",
    re.IGNORECASE,
)


def find_requests(comment: str) -> list[ChangeRequest]:
    """Return the requests of a comment in order; the first pattern that fits a sentence decides."""
    masked = _mask(comment)
    found = list(_meant(comment, masked))
    for start, end in _sentences(masked):
        if end - start > _MAX_SENTENCE or _GLAD.search(masked, start, end):
            continue
        lower = masked[start:end].lower()
        for kind, cues, pattern in _COMPILED:
            if not any(cue in lower for cue in cues):
                continue
            requests = list(_read(kind, pattern, comment, masked, (start, end)))
            if requests:
                found += requests
                break
    return found


def _meant(comment: str, masked: str) -> Iterator[ChangeRequest]:
    """Yield the requests of "Salt? I think you mean sugar."."""
    if "mean" not in masked.lower():
        return
    for match in _MEANT.finditer(masked):
        old, new = (_term(comment, masked, *match.span(name), name) for name in ("old", "new"))
        yield ChangeRequest("replace", match.span(), old, new)


def _mask(comment: str) -> str:
    masked = comment
    for start, end in find_quotations(comment):
        while start and comment[start - 1] in _MARKS:
            start -= 1
        while end < len(comment) and comment[end] in _MARKS:
            end += 1
        masked = masked[:start] + _MASK * (end - start) + masked[end:]
    return masked


def _sentences(masked: str) -> Iterator[Range]:
    start = 0
    for match in _SENTENCE_END.finditer(masked):
        yield from _coordinates(masked, start, match.start())
        start = match.end()
    yield from _coordinates(masked, start, len(masked))


def _coordinates(masked: str, start: int, end: int) -> Iterator[Range]:
    """Yield the requests of "A should be B, C should be D and E should be F", else the sentence."""
    for cue in _CUES:
        if len(places := [match.start() for match in cue.finditer(masked, start, end)]) > 1:
            for joint in _JOINT.finditer(masked, start, end):
                before = sum(start <= place < joint.start() for place in places)
                if before == 1 and any(place >= joint.end() for place in places):
                    yield start, joint.start()
                    start = joint.end()
            break
    yield start, end


def _read(
    kind: RequestKind, pattern: re.Pattern[str], comment: str, masked: str, sentence: Range
) -> Iterator[ChangeRequest]:
    text = masked[slice(*sentence)].rstrip()
    for match in _all_splits(pattern, text):
        groups = match.groupdict()
        terms = {
            name: _term(comment, masked, sentence[0] + match.start(name), sentence[0] + match.end(name), name)
            for name in groups
            if groups[name] is not None and name not in ("side", "ambiguous", "stated")
        }
        old = terms.get("old") or terms.get("old_start") or terms.get("old_end")
        new = terms.get("new") or terms.get("new_start") or terms.get("new_end")
        phrase = (sentence[0], sentence[0] + len(text))
        side: Side = "before" if (groups.get("side") or "").lower() == "before" else "after"
        is_order = ("old" in terms or "place" in terms) and groups.get("stated") is None
        yield ChangeRequest(
            kind, phrase, old, new, terms.get("place"), side, groups.get("ambiguous") is not None, is_order
        )


def _all_splits(pattern: re.Pattern[str], text: str) -> Iterator[re.Match[str]]:
    """Yield the first match; where the connecting word occurs again ("come up with a plan with"), later ones too."""
    match = pattern.search(text)
    while match:
        yield match
        if not {"old", "new"} <= pattern.groupindex.keys() or match.start("new") < match.start("old"):
            return
        connection = _connection(pattern)
        if connection is None or not connection.search(text, match.end("old") + 1):
            return  # no longer `old` fits: to compile a pattern for each length is slow
        following = _with_longer_old(pattern, match.end("old") - match.start("old") + 1).search(text)
        if following is None or following.end("old") <= match.end("old"):
            return
        match = following


@lru_cache(maxsize=64)
def _connection(pattern: re.Pattern[str]) -> re.Pattern[str] | None:
    """Return what a pattern has between `old` and `new`; None if `old` is not words of any kind and number."""
    _, old, rest = pattern.pattern.partition(_ANY_OLD)
    between, new, _ = rest.partition("(?P<new>")
    return re.compile(between, pattern.flags) if old and new else None


@lru_cache(maxsize=1024)
def _with_longer_old(pattern: re.Pattern[str], length: int) -> re.Pattern[str]:
    return re.compile(pattern.pattern.replace(_ANY_OLD, f"(?P<old>.{{{length},}}?)"), pattern.flags)


def _term(comment: str, masked: str, start: int, end: int, name: str) -> Term:
    """Return the term without what only introduces it, white space, end punctuation and quotation marks."""
    leads = [_ABOUT_START, _LABEL_START, *([_FILLER_START, _LABELLED_QUOTE] if name == "new" else [])]
    for lead in leads:
        if introduced := lead.match(masked, start, end):
            start = introduced.end()
    while start < end and comment[start].isspace():
        start += 1
    while start < end and (comment[end - 1].isspace() or comment[end - 1] in ".,;:!?") and masked[end - 1] != _MASK:
        end -= 1
    edge: Literal["start", "end"] | None = None
    if name.endswith("_start"):
        edge = "start"
        if quoted := _QUOTED.match(masked, start, end):
            start, end, edge = *quoted.span(), None
    elif name.endswith("_end"):
        edge = "end"
        if quoted := _QUOTED_END.search(masked[:end], start):
            start, end, edge = *quoted.span(), None
    is_quoted = start < end and set(masked[start:end]) == {_MASK}
    if is_quoted:
        while start < end and comment[start] in _MARKS:
            start += 1
        while start < end and comment[end - 1] in _MARKS:
            end -= 1
    return Term(start, end, is_quoted, edge)
