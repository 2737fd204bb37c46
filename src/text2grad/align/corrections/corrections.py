"""Corrections that a comment asks for: which characters of the answer should be replaced, by what, or removed.

`change_requests` reads what a comment asks for; here it is found in the answer. What is not certain is no correction:
the words to replace have to be in the answer, the new ones have to be words to write ("the name of the river" is not),
and what is left after a removal has to read (`cuts`, `learned.removals`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import groupby

from rapidfuzz import fuzz

from text2grad.align.answer.cuts import cut, still_reads
from text2grad.align.answer.document import Document
from text2grad.align.answer.fitting import DETERMINERS, fit_replacement, lower_start
from text2grad.align.answer.program import extract_program
from text2grad.align.corrections.change_requests import ChangeRequest, Term, find_requests
from text2grad.align.corrections.new_words import CLAUSE_END, NAME, WORD, is_wording, word_before, words_alike
from text2grad.align.learned.removals import find_removals
from text2grad.align.quotes.quotes import Match, locate_quote
from text2grad.schema import Range
from text2grad.text.lexicon import ARTICLES, FUNCTION_WORDS
from text2grad.text.whitespace import PUNCTUATION, WhitespaceWord, key_set, split_parts, split_words

MIN_REMOVAL = 0.45  # probability; below it, what should go is not certain
_MIN_LOCATED = 0.9  # confidence in the place of words that are not quoted
_QUOTED = 0.9
_RENAMED = 0.9  # a new name for each use of the old one
_NAME_MARKS = " \t`'\"“”‘’.()"
_UNSUPPORTED = 0.6  # what the source does not say may also be put in other words
_NAMED = 0.8  # confidence in words of a sentence whose extent follows from their kind
_MIN_SPELLING, _MAX_SPELLING_WORDS = 70.0, 4
_MIN_SUPPORT = 0.5  # of the new words' content, in the source or the old words
_MIN_SOURCE_WORDS = 60

_YEAR = re.compile(r"\b(?:1[5-9]|20)\d\d\b")
_WEEKDAY = re.compile(r"\b(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day\b", re.IGNORECASE)
_MONTH = re.compile(r"\b(?:January|February|March|April|May|June|July|August|September|October|November|December)\b")
_ARROW = re.compile(r"->|=>|→")
_LIST_NUMBER = re.compile(r"\s*\d{1,3}[.):]?\s*")
_POSITION = re.compile(
    r"(?:(?:the|your|its)\s+)?(?:very\s+)?(?:first|second|third|last|final|opening|closing|main|only)\s+(?:thing|sentence|line|paragraph|point|step|item|bullet|word|part)s?\b",
    re.IGNORECASE,
)  # where something should stand, not what should stand there
_TWO_WORDS = re.compile(r"(?:it['’]s\s+|it\s+(?:is|was)\s+)?[\w'’-]+,?\s+not\s+[\w'’-]+\W*", re.IGNORECASE)


@dataclass(frozen=True)
class Correction:
    """Replace the characters [start, end) of the answer by `replacement`; "" removes them, start == end inserts.

    `phrase` is the sentence of the comment that asks for it; `confidence` is in (0, 1]. is_quoted: the comment orders
    the change and quotes the words that it is about, so that no other answer can be meant.
    """

    start: int
    end: int
    replacement: str
    confidence: float
    phrase: Range
    is_quoted: bool = False

    def is_asked_by(self, comment: str, bounds: Range | None) -> bool:
        """Whether comment[start:end] is a part of the sentence that asks for it, and has some of the new words."""
        if bounds is None or bounds[1] <= self.phrase[0] or self.phrase[1] <= bounds[0]:
            return False
        words = {key for word in split_words(self.replacement) if word.is_content for key in word.keys}
        text = comment[slice(*bounds)]
        return not words.isdisjoint(key_set(text)) if words else self.replacement.lower() in text.lower()

    def apply(self, completion: str) -> str:
        """Return the completion with the correction made."""
        return completion[: self.start] + self.replacement + completion[self.end :]


def find_corrections(comment: str, completion: str, prompt: str | None = None) -> list[Correction]:
    """Return the corrections that `comment` asks for, in the order of the completion, without overlap.

    prompt: the source of the answer or the question; words that a source does not have are likelier to be meant.
    """
    if not comment.strip() or not completion.strip():
        return []
    found: list[Correction] = []
    for _, alternatives in groupby(find_requests(comment), key=lambda request: request.phrase):
        options = [list(_correct(request, comment, completion, prompt)) for request in alternatives]
        found += max(options, key=_certainty)
    found = [each for each in found if not _is_list_number(each, completion)]
    program = extract_program(completion, prompt or "") if found else None
    if program is not None and program.nodes():  # what breaks a program was not meant so
        found = [each for each in found if _still_parses(each, completion, prompt)]
    return _join_adjacent(_without_overlap(found), completion)


def _is_list_number(correction: Correction, completion: str) -> bool:
    """Whether a removal takes nothing but the number of an item, by which "5 should be removed" names the item."""
    removed = completion[correction.start : correction.end]
    start = correction.start + len(removed) - len(removed.lstrip())
    line = completion.rfind("\n", 0, start) + 1
    return (
        correction.replacement == ""
        and _LIST_NUMBER.fullmatch(removed) is not None
        and not completion[line:start].strip()
    )


def _still_parses(correction: Correction, completion: str, prompt: str | None) -> bool:
    program = extract_program(correction.apply(completion), prompt or "")
    return program is not None and bool(program.nodes())


def _certainty(corrections: Iterable[Correction]) -> tuple[float, int]:
    """Order ways to read one sentence: by confidence, then by how many characters of the answer they account for."""
    return max(((each.confidence, each.end - each.start) for each in corrections), default=(0.0, 0))


def _correct(request: ChangeRequest, comment: str, completion: str, prompt: str | None) -> Iterator[Correction]:
    if request.kind == "remove":
        yield from _removals(request, comment, completion, prompt)
        return
    if renames := _renames(request, comment, completion, prompt):
        yield from renames
        return
    correction = {"replace": _replacement, "insert": _insertion, "spell": _spelling}[request.kind](
        request, comment, completion, _source(prompt)
    )
    if correction is None or correction.apply(completion) == completion:
        return
    if request.kind == "replace" and comment[request.phrase[0] :].startswith(correction.replacement):
        old = completion[correction.start : correction.end]
        correction = replace(correction, replacement=lower_start(correction.replacement, old, f"{completion} {prompt}"))
    if request.kind == "replace" and not _is_supported(correction, completion, prompt):
        return
    quotes = request.is_order and request.old is not None and request.old.is_quoted
    yield replace(correction, is_quoted=quotes and correction.confidence >= _QUOTED)


def _renames(request: ChangeRequest, comment: str, completion: str, prompt: str | None) -> list[Correction]:
    """Return a correction for each use of a name that a program uses more than once and that should be another one."""
    if request.kind != "replace" or not request.is_order or request.old is None or request.new is None:
        return []
    old, new = (comment[term.start : term.end].strip(_NAME_MARKS) for term in (request.old, request.new))
    if not old.isidentifier() or not new.isidentifier() or extract_program(completion, prompt or "") is None:
        return []
    uses, taken = (list(re.finditer(rf"(?<!\w){name}(?!\w)", completion)) for name in (old, new))
    if len(uses) < 2 or taken:
        return []
    return [Correction(*use.span(), new, _RENAMED, request.phrase) for use in uses]


def _removals(request: ChangeRequest, comment: str, completion: str, prompt: str | None) -> Iterator[Correction]:
    """Yield what should go: what the request quotes, else the likeliest words for each part of it."""
    assert request.old is not None
    words = split_words(completion)
    old = comment[request.old.start : request.old.end]
    match = locate_quote(old, completion, context=comment[slice(*request.phrase)]) if request.old.is_quoted else None
    if match is not None and match.confidence < _QUOTED:
        match = None
    if match and (quoted := _whole_words(match, completion, words)):
        certainty = _QUOTED if request.is_order else _UNSUPPORTED
        yield Correction(*cut(completion, words, *quoted), certainty, request.phrase, request.is_order)
        return
    if not request.is_order:
        return
    for part in split_request(old, completion):
        best = next(iter(find_removals(part, completion, _source(prompt))), None)
        if match and best and not _is_hardly_longer(best.first, best.last, match, words):
            continue  # the words that are quoted go, or none
        if best is not None and best.probability >= MIN_REMOVAL and not _leaves_determiner(part, best.first, words):
            yield Correction(*cut(completion, words, best.first, best.last), best.probability, request.phrase)


def _is_hardly_longer(first: int, last: int, match: Match, words: Sequence[WhitespaceWord]) -> bool:
    """Whether words[first:last] are the quoted words with at most one function word beside them."""
    quoted_first, quoted_last = _words_inside(match, words)
    beside = [*words[first:quoted_first], *words[quoted_last:last]]
    is_function = all(word.text.strip(PUNCTUATION).lower() in FUNCTION_WORDS for word in beside)
    return first <= quoted_first and quoted_last <= last and len(beside) <= 1 and is_function


def _words_inside(match: Match, words: Sequence[WhitespaceWord]) -> tuple[int, int]:
    """Return the words that a quotation touches."""
    inside = [i for i, word in enumerate(words) if word.start < match.end and match.start < word.end]
    return inside[0], inside[-1] + 1


def _leaves_determiner(part: str, first: int, words: Sequence[WhitespaceWord]) -> bool:
    """Whether "the hunter" would go, but not the determiner before it: "Then a [hunter] came"."""
    has_determiner = part.split(" ", 1)[0].lower() in ARTICLES
    return has_determiner and len(part.split()) == 2 and first > 0 and words[first - 1].text.lower() in DETERMINERS


def _whole_words(match: Match, completion: str, words: Sequence[WhitespaceWord]) -> tuple[int, int] | None:
    """Return the words that a quotation quotes, if the rest reads without exactly these."""
    first, last = _words_inside(match, words)
    whole = completion[words[first].start : words[last - 1].end].strip(PUNCTUATION)
    is_whole = whole == completion[match.start : match.end].strip(PUNCTUATION)
    return (first, last) if is_whole and still_reads(words, first, last) else None


_AND = re.compile(r",\s*and\s+|,\s+|\s+and\s+|\s+&\s+")
_MAX_PARTS = 4


def split_request(old: str, completion: str) -> list[str]:
    """Split "his age and the length of the flight"; not what the completion has word for word."""
    if not old or _keys(old) in _keys(completion):
        return [old] if old else []
    parts = [part for part in _AND.split(old) if part.strip()]
    return parts if 1 < len(parts) <= _MAX_PARTS else [old]


@lru_cache(maxsize=32)
def _keys(text: str) -> str:
    return f" {' '.join(key for word in split_words(text) for key in word.keys)} "


@lru_cache(maxsize=32)
def _source(prompt: str | None) -> str | None:
    """Return the prompt if it is long enough to be a source."""
    return prompt if prompt and len(prompt.split()) >= _MIN_SOURCE_WORDS else None


def _replacement(request: ChangeRequest, comment: str, completion: str, source: str | None) -> Correction | None:
    old, new = request.old, request.new
    if new is None:
        return None
    if request.is_ambiguous and old is not None:
        straight = _replace_term(old, new, comment, completion, request.phrase, source)
        swapped = _replace_term(new, old, comment, completion, request.phrase, source)
        return straight if swapped is None else swapped if straight is None else None
    correction = _replace_term(old, new, comment, completion, request.phrase, source) if old else None
    if correction is None and old is not None and old.edge == "end":
        return _replace_unique(new, comment, completion, request.phrase)
    return correction


def _replace_term(
    old: Term, new: Term, comment: str, completion: str, phrase: Range, source: str | None
) -> Correction | None:
    """Return the correction where `old` is in the completion and the extent of both terms is clear."""
    located = _locate(old, comment, completion, phrase)
    if located is None:
        return None
    match, words = located
    text = comment[new.start : new.end].strip()
    lead, _, rest = comment[old.start : old.end].partition(" ")
    if lead.lower() in ARTICLES and words == rest and not new.is_quoted and text.lower().startswith(f"{lead.lower()} "):
        text = text[len(lead) :].strip()  # "replace the Thames with the Danube" of "1. Thames"
    certainty = match.confidence
    if new.edge is not None:
        if _POSITION.match(text):
            return None
        text = words_alike(text, words, at_end=new.edge == "end", before=word_before(match, completion))
        certainty *= _NAMED
    original = completion[match.start : match.end]
    replaced = original.lower()
    if {text.lower(), replaced} == {"right", "left"}:
        text = text.lower()  # no description of what is right, and no name
    elif not new.is_quoted and not is_wording(text):
        return None
    if not text or text == original:
        return None
    if text.lower() == replaced:  # who only names the same thing again rarely means its capitals
        is_meant = (old.is_quoted and new.is_quoted) or _ARROW.search(comment, *phrase) is not None
        return Correction(match.start, match.end, text, certainty, phrase) if is_meant else None
    names_both = new.edge is not None and locate_quote(text, completion, threshold=1.0) is not None
    if names_both and not (_TWO_WORDS.fullmatch(comment, *phrase) and _num_uses(words, completion) == 1):
        return None  # the answer says both; which of them is wrong is not certain
    has_determiner = comment[old.start : old.end].split()[0].lower() in DETERMINERS
    place = (match.start, match.end)
    if Document(completion).program is not None:
        return Correction(*place, text, certainty, phrase)  # code has no grammar to fit words to
    start, end, replacement = fit_replacement(*place, text, completion, source, has_determiner=has_determiner)
    return Correction(start, end, replacement, certainty, phrase)


def _num_uses(words: str, completion: str) -> int:
    return len(re.findall(rf"(?<!\w){re.escape(words)}(?!\w)", completion, re.IGNORECASE))


def _locate(term: Term, comment: str, completion: str, phrase: Range) -> tuple[Match, str] | None:
    """Return where the completion has the term and the term's words; of a term with one sure end, the longest part."""
    text, context = comment[term.start : term.end], comment[slice(*phrase)]
    for words in _extents(text, term.edge):
        match = locate_quote(words, completion, context=context)
        sure = _MIN_LOCATED if term.edge is None else 0.95
        if match is not None and match.confidence >= (0.5 if term.is_quoted else sure):
            return match, words
    return None


def _extents(text: str, edge: str | None) -> Iterator[str]:
    """Yield the words that a term may mean: itself, without its article; with one sure end, shorter and shorter."""
    if edge is None:
        yield text
        first, _, rest = text.partition(" ")
        if first.lower() in DETERMINERS and rest:
            yield rest
        return
    if edge == "start" and (clause := CLAUSE_END.search(text)):
        text = text[: clause.start()]
    words = list(WORD.finditer(text))[: 8 if edge == "start" else None]
    if edge == "end":
        words = words[-8:]
    for count in range(len(words), 0, -1):
        chosen = words[:count] if edge == "start" else words[len(words) - count :]
        run = text[chosen[0].start() : chosen[-1].end()]
        if _MONTH.fullmatch(run) or any(part not in FUNCTION_WORDS for part in split_parts(run)):
            yield run


def _replace_unique(new: Term, comment: str, completion: str, phrase: Range) -> Correction | None:
    """Return the correction of "the year should be 1998": of the only year, weekday or month of the completion."""
    text = comment[new.start : new.end]
    for pattern in (_YEAR, _WEEKDAY, _MONTH):
        wanted = pattern.match(text)
        places = list(pattern.finditer(completion))
        if wanted and len(places) == 1:
            start, end = places[0].span()
            return Correction(start, end, wanted[0], _NAMED, phrase)
    return None


def _is_supported(correction: Correction, completion: str, prompt: str | None) -> bool:
    """Whether a source, if there is one, or the answer has enough of the new words."""
    source = _source(prompt)
    if source is None:
        return True
    known = key_set(source) | key_set(completion)
    content = [word for word in split_words(correction.replacement) if word.is_content]
    supported = sum(known.issuperset(word.keys) for word in content)
    return supported >= _MIN_SUPPORT * len(content)


def _insertion(request: ChangeRequest, comment: str, completion: str, source: str | None) -> Correction | None:
    assert request.new is not None
    assert request.place is not None
    located = _locate(request.place, comment, completion, request.phrase)
    text = comment[request.new.start : request.new.end].strip()
    if located is None or not (request.new.is_quoted or is_wording(text)) or not text:
        return None
    match, _ = located
    at = match.end if request.side == "after" else match.start
    while request.side == "after" and at > match.start and completion[at - 1] in ".!?":
        at -= 1
    glued = text[0] in ".,;:!?)" if request.side == "after" else False
    inserted = text if glued else f" {text}" if request.side == "after" else f"{text} "
    return Correction(at, at, inserted, match.confidence, request.phrase)


def _spelling(request: ChangeRequest, comment: str, completion: str, source: str | None) -> Correction | None:
    """Return the correction of the words of the completion that look most like the right spelling."""
    assert request.new is not None
    right = comment[request.new.start : request.new.end]
    if request.new.edge is not None:
        clause = CLAUSE_END.search(right)
        names = NAME.match(right)
        right = names[0] if names else (right[: clause.start()] if clause else right).split(" ")[0]
    right = right.strip().rstrip(".,;:")
    count = len(right.split())
    words = list(re.finditer(r"[^\W_]+(?:['’-][^\W_]+)*", completion))
    if not right or count > _MAX_SPELLING_WORDS or locate_quote(right, completion, threshold=1.0) is not None:
        return None
    best, place = 0.0, (0, 0)
    for i in range(len(words) - count + 1):
        bounds = words[i].start(), words[i + count - 1].end()
        ratio = fuzz.ratio(right.lower(), completion[slice(*bounds)].lower())
        if ratio > best:
            best, place = ratio, bounds
    if best < _MIN_SPELLING:
        return None
    return Correction(*place, right, best / 100, request.phrase)


def _without_overlap(corrections: Iterable[Correction]) -> list[Correction]:
    """Return the corrections in order; of two that overlap, the more certain one."""
    kept: list[Correction] = []
    for correction in sorted(corrections, key=lambda each: -each.confidence):
        if all(correction.end <= other.start or correction.start >= other.end for other in kept):
            kept.append(correction)
    return sorted(kept, key=lambda each: (each.start, each.end))


def _join_adjacent(corrections: Sequence[Correction], completion: str) -> list[Correction]:
    """Join removals that follow each other directly: what comes after both is what should be written."""
    joined: list[Correction] = []
    for correction in corrections:
        last = joined[-1] if joined else None
        if last is not None and last.end == correction.start and last.replacement == correction.replacement == "":
            certainty = min(last.confidence, correction.confidence)
            joined[-1] = replace(last, end=correction.end, confidence=certainty)
        else:
            joined.append(correction)
    return joined
