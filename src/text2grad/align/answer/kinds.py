"""References to things of a kind: "the date", "the oven temperature", "the amount of sugar", "the apology"."""

# ruff: noqa: E501  one pattern per line

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import chain
from typing import NamedTuple

from text2grad.align.answer.document import Document
from text2grad.align.answer.proposals import Proposal, overlap
from text2grad.schema import Range
from text2grad.text.whitespace import split_words
from text2grad.text.words import parse_text

_TENS = r"(?:twenty|thirty|forty|fifty|sixty|seventy|eighty|ninety)"
_N = rf"(?:\d+(?:[.,:/]\d+)*|[½¼¾⅓⅔]|\d+\s?[½¼¾⅓⅔]|{_TENS}(?:[ -]\w+)?|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|fifteen|half an?|an?)"
_NUMBER = rf"(?:{_N}(?:\s?(?:-|–|to|or)\s?{_N})?)"
_DIGITS = r"\d+(?:[.,]\d+)*"
MONTH = r"(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)\.?"
WEEKDAY = r"(?:mon|tues|wednes|thurs|fri|satur|sun)day"
_DAY = r"\d{1,2}(?:st|nd|rd|th)?"
_DATE = (
    rf"(?:{WEEKDAY},?\s+)?(?:{MONTH}\s+{_DAY}|{_DAY}\s+(?:of\s+)?{MONTH})(?:,?\s+\d{{4}})?|{WEEKDAY}"
    rf"|{MONTH}\s+\d{{4}}|\d{{4}}-\d\d-\d\d|\d{{1,2}}/\d{{1,2}}/\d{{2,4}}"
)
_YEAR = r"(?<![\d.,$€£])(?:1[0-9]|20)\d\d(?![\d.,]\d)"
_RELATIVE_DAY = (
    rf"yesterday|today|tomorrow|tonight|(?:next|last|this|the coming|the following)\s+(?:{WEEKDAY}|day|week(?:end)?|month|year"
    r"|spring|summer|autumn|fall|winter)"
)  # which is a date where there is no other
_CLOCK = r"\d{1,2}(?:[:.]\d\d)?\s?(?:am|pm|a\.m\.|p\.m\.|o['’]clock)|\d{1,2}:\d\d|noon|midnight"
_DURATION = rf"{_NUMBER}[\s-]?(?:seconds?|secs?|minutes?|mins?|hours?|hrs?|days?|weeks?|months?|years?|decades?|nights?|overnight)"
_SCALE = r"(?:hundred|thousand|million|billion)"
_PRICE = rf"[$€£¥]\s?{_DIGITS}(?:\s?(?:{_SCALE}|k|m|bn))?|{_NUMBER}(?:\s{_SCALE})*\s?(?:dollars|euros?|pounds|cents|pence|USD|EUR|GBP)"
_PERCENT = rf"{_DIGITS}\s?(?:%|percent|per cent)"
_TEMPERATURE = rf"{_DIGITS}\s?(?:°\s?[CF]?|º\s?[CF]?|degrees?(?:\s(?:celsius|fahrenheit|c|f)\b)?|[CF]\b)|gas mark \d"
_MEASURE_UNIT = (
    r"(?:g|grams?|kg|kilos?|mg|ml|cl|dl|l|lit(?:er|re)s?|cups?|tablespoons?|tbsps?|teaspoons?|tsps?|oz|ounces?"
    r"|lbs?|pounds?|pinch(?:es)?|cloves?|slices?|sticks?|cans?|bunch(?:es)?|handfuls?)\b"
)
_LENGTH_UNIT = r"(?:mm|cm|km|m|met(?:er|re)s?|kilomet(?:er|re)s?|centimet(?:er|re)s?|miles?|feet|foot|ft|inch(?:es)?|yards?|km/h|mph|kmh)\b"
_MEASURE, _LENGTH = (rf"{_NUMBER}[\s-]?{unit}" for unit in (_MEASURE_UNIT, _LENGTH_UNIT))
_ANY_NUMBER = rf"[$€£]?{_DIGITS}%?(?:\s(?:million|billion|thousand|hundred))?|(?:two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|dozens?|hundreds?|thousands?|millions?)\b"
_CURRENCY = r"dollars|euros?|pounds|cents|pence|francs?|yen|rupees|crowns|kron(?:or|er|e)|USD|EUR|GBP"
_DEMONYM = (
    r"(?<!\w)(?:(?:afric|americ|asi|europe|mexic|brazili|argentini|canadi|australi|indi|germ|itali|russi|ukraini|austri|belgi"
    r"|norwegi|egypti|nigeri|keny|ethiopi|morocc|tunisi|algeri|irani|syri|romani|bulgari|serbi|croati|sloveni|albani|hungari"
    r"|estoni|latvi|lithuani|armeni|indonesi|malaysi|kore|peruvi|chile|colombi|cub|jamaic|persi)an|french|english|british"
    r"|scottish|welsh|irish|spanish|polish|swedish|danish|finnish|turkish|dutch|greek|swiss|czech|slovak|icelandic|portuguese"
    r"|chinese|japanese|vietnamese|maltese|lebanese|israeli|pakistani|iraqi|thai)(?!\w)"
)
_AFTER_IN = rf"(?:(?<=\bin )|(?<=\bat )|(?<=\bnear )|(?<=\bfrom ))(?!(?:{MONTH}|{WEEKDAY})(?!\w))"
_IN_NAME, _BY_NAME = (
    rf"{lead}(?-i:[A-ZÀ-Þ])[\w'’-]+(?: (?-i:[A-ZÀ-Þ])[\w'’-]+)*" for lead in (_AFTER_IN, r"(?<=\bby )")
)
_TOLL = rf"{_NUMBER}(?:\s{_SCALE})?\s(?:\w+\s)?(?:people|men|women|children|soldiers|civilians|victims|dead|deaths|lives|casualties)\b"
_DIMENSIONS = (
    rf"{_DIGITS}(?:\s?{_LENGTH_UNIT})?\s?(?:x|×|by)\s?{_DIGITS}(?:\s?(?:x|×|by)\s?{_DIGITS})?(?:[\s-]?{_LENGTH_UNIT})?"
)
_AGE = r"\d{1,3}[\s-]years?[\s-]old|aged?\s+\d{1,3}|\d{1,3}(?=,\s)"


class _Kind(NamedTuple):
    nouns: str
    patterns: tuple[str, ...]  # tried in order
    sentence: bool = False  # the sentences that match are meant, not the words


_KINDS = (
    _Kind(r"(?:oven |baking |cooking )?temperatures?|oven setting|degrees|heat", (_TEMPERATURE,)),
    _Kind(r"(?:cooking|baking|preparation|prep|resting|waiting|boiling|frying|simmering)[ -]?times?|durations?|minutes|hours", (_DURATION,)),
    _Kind(r"dates?|days?|weekday|deadline", (_DATE, _YEAR, _RELATIVE_DAY)),
    _Kind(r"years?", (_YEAR, r"(?:next|last|this)\s+year")),
    _Kind(r"months?", (rf"(?-i:(?=[A-Z])){MONTH}",)),
    _Kind(r"times?|hour", (_CLOCK, _DURATION)),
    _Kind(r"prices?|costs?|fees?|fares?|salary|rent|budget|sum|amount of money", (_PRICE,)),
    _Kind(r"percentages?|percent|shares?|rates?", (_PERCENT,)),
    _Kind(r"ages?", (_AGE, _DURATION)),
    _Kind(r"currenc(?:y|ies)", (_CURRENCY,)),
    _Kind(r"nationality|citizenship", (_DEMONYM,)),
    _Kind(r"(?:birth)?place|city|town|country|location|venue", (_IN_NAME,)),
    _Kind(r"author|writer|painter|composer|inventor|director|artist", (_BY_NAME,)),
    _Kind(r"death[\s-]toll|casualt(?:y|ies)(?: figures?)?|number of (?:deaths|victims|casualties)", (_TOLL,)),
    _Kind(r"distances?|heights?|lengths?|widths?|speeds?|depths?|size|altitude|elevation|diameter|dimensions?|measurements", (_DIMENSIONS, _LENGTH, _MEASURE)),
    _Kind(r"amounts?|quantit(?:y|ies)|measurements?|weights?", (_MEASURE, _PRICE, _ANY_NUMBER)),
    _Kind(r"numbers?|figures?|statistics?|stats?|totals?|counts?|populations?|scores?|values?", (_ANY_NUMBER,)),
    _Kind(r"e-?mail address|e-?mail", (r"[\w.+-]+@[\w-]+\.[\w.]+\w",)),
    _Kind(r"phone number|telephone number|number to call", (r"\+?\d[\d\s().-]{5,}\d",)),
    _Kind(r"links?|urls?|website", (r"https?://\S+[^\s.,)]|www\.\S+[^\s.,)]",)),
    _Kind(r"exclamation (?:marks?|points?)|exclamations", (r"!+",)),
    _Kind(r"emojis?|emoticons?|smileys?", (r"[\U0001f300-\U0001faff\u2600-\u27bf]+|[:;]-?[)(DP]",)),
    _Kind(r"quotes?|quotations?", (r"[\"“][^\"”]+[\"”]",)),
    _Kind(r"examples?|illustration", (r"\b(?:for example|e\.g\.|such as|for instance|like when|imagine|say,)",), True),
    _Kind(r"apolog(?:y|ies|ising|izing|ise|ize)", (r"\b(?:sorry|apolog\w+|regret\w*|forgive)",), True),
    _Kind(r"thank[\s-]?yous?|thanks|gratitude", (r"\b(?:thank\w*|grateful|appreciat\w+)",), True),
    _Kind(r"requests?|asks?|call to action", (r"\b(?:please|could you|would you|can you|let (?:me|us) know)",), True),
    _Kind(r"warnings?|cautions?|safety (?:note|advice)", (r"\b(?:careful\w*|warning|caution|never|avoid|danger\w*|do not|don['’]t)",), True),
    _Kind(r"definitions?", (r"\b(?:is|are) (?:an?|the|when|where)\b|\b(?:means|refers to|is defined as|is called)",), True),
    _Kind(r"tips?|advice|recommendations?|suggestions?", (r"\b(?:tip|recommend\w*|suggest\w*|should|try|consider|best to)\b",), True),
    _Kind(r"reasons?|cause|motive", (r"\b(?:because|due to|owing to|as a result of|on account of)\b[^.;:!?\n]*",)),
    _Kind(r"reasons?|explanations?|justification", (r"\b(?:because|since|due to|owing to|so that|this is why|as a result)\b",), True),
    _Kind(r"comparisons?|analog(?:y|ies)|metaphors?|similes?", (r"\b(?:like an?|as if|compared|than|similar to|think of)\b",), True),
    _Kind(r"plot(?: summary)?|storyline|synopsis", (r"\b(?:tells? (?:the (?:story|tale)|of|how)|is about|revolves around|is the (?:story|tale) of)\b",), True),
    _Kind(r"invitations?", (r"\b(?:invit\w+|join us|you are welcome|come to)\b",), True),
    _Kind(r"compliments?|praise", (r"\b(?:great|wonderful|excellent|impress\w+|congratulat\w+)\b",), True),
    _Kind(r"dialogue|direct speech", (r"[\"“][^\"”]+[\"”]",)),
)  # fmt: skip
_COMPILED = tuple(
    (
        re.compile(rf"(?<![\w'’-])(?:{kind.nouns})(?![\w-])", re.I),
        tuple(re.compile(p, re.I) for p in kind.patterns),
        kind,
    )
    for kind in _KINDS
)
_ANY_NOUN = re.compile(rf"(?<![\w'’-])(?:{'|'.join(kind.nouns for kind in _KINDS)})(?![\w-])", re.IGNORECASE)
_MONTHS = r"(?:january|february|march|april|may|june|july|august|september|october|november|december)(?!\w)"
_UNIT_START = rf"(?:^|[-\d½¼¾⅓⅔]|{_N})"  # a word that holds a unit starts with it, or has a number before it
_VALUES = tuple(  # with a sign: one word between white space of every match has it
    (re.compile(pattern, re.IGNORECASE), re.compile(sign, re.IGNORECASE))
    for pattern, sign in (
        (_DIMENSIONS, r"\d"),
        (_DATE, r"\d|day"),
        (_YEAR, r"\d"),
        (_CLOCK, r"\d|noon|midnight"),
        (_PRICE, r"[$€£¥]|dollars|euro|pounds|cents|pence|USD|EUR|GBP"),
        (_PERCENT, r"\d"),
        (_TEMPERATURE, r"\d"),
        (_MEASURE, rf"{_UNIT_START}{_MEASURE_UNIT}|{_TENS}"),
        (_LENGTH, rf"{_UNIT_START}{_LENGTH_UNIT}|{_TENS}"),
        (_DURATION, r"sec|min|hour|hr|day|week|month|year|decade|night"),
        (_MONTHS, _MONTHS),
        (_DEMONYM, _DEMONYM),
    )
)
_ANY_NUMBER_PATTERN = re.compile(_ANY_NUMBER, re.IGNORECASE)
_NAME_NOUN = re.compile(r"(?<![\w'’-])(?P<name>names?)(?![\w-])", re.IGNORECASE)
_DETERMINED = re.compile(
    r"\b(?:the|this|that|its|his|her|their|your|wrong|incorrect|right|correct|made-up|invented|both|these|those|all|which|what"
    r"|same|different|other|exact|an?|with|of|more|fewer|many|so much|nice|good|great|lovely|bad|weak|poor)\s+(?:\w+\s+){0,2}$",
    re.IGNORECASE,
)
_MAX_PLACES = 3  # that a kind may mean without words that tell them apart
_CONFIDENCE = {True: 0.75, False: 0.5}  # by whether words of the comment or uniqueness tell which one


def find_kinds(comment: str, start: int, end: int, document: Document) -> Iterator[Proposal]:
    """Yield the places of the kinds that comment[start:end] names, near its other words where there are several."""
    taken: list[Range] = []
    compiled = _COMPILED if _ANY_NOUN.search(comment, start, end) else ()  # most clauses name none
    matches = [(m, found, kind) for noun, found, kind in compiled for m in noun.finditer(comment, start, end)]
    for match, patterns, kind in sorted(matches, key=lambda each: each[0].start() - each[0].end()):
        if any(overlap(match.span(), other) for other in taken):
            continue
        if not _DETERMINED.search(comment[start : match.start()]) and match.start() - start > 2:
            continue
        places = next((p for pattern in patterns if (p := _places(pattern, kind, document))), [])
        if not places:
            continue
        taken.append(match.span())
        chosen, certain = _nearest(places, comment, (start, end), match.span(), document)
        if chosen:
            yield Proposal("kind", match.span(), tuple(chosen), _CONFIDENCE[certain])
    yield from find_contradicted_values(comment, (start, end), document, taken)
    for match in _NAME_NOUN.finditer(comment, start, end):
        if not any(overlap(match.span(), other) for other in taken) and document.program is None:
            chosen, certain = _nearest(_names(document), comment, (start, end), match.span(), document)
            if chosen:
                yield Proposal("kind", match.span(), tuple(chosen), _CONFIDENCE[certain])


def find_values(document: Document) -> list[Range]:
    """Return the numbers with their units, dates, prices and names of a text."""
    found = [place for _, places in _values_by_kind(document.text) for place in places]
    numbers = _whole_words(_ANY_NUMBER_PATTERN, document.text)
    return list(dict.fromkeys([*found, *numbers, *_names(document)]))


def find_contradicted_values(
    comment: str, clause: Range, document: Document, found: Sequence[Range] = ()
) -> Iterator[Proposal]:
    """Yield the values that stand where the clause gives another one of the same kind: "They visit in August.".

    found: words of the comment that are known to mean something else.
    """
    taken = list(found)
    for pattern, places in _values_by_kind(document.text):
        for match in pattern.finditer(comment, *clause):
            if not _is_whole_word(comment, *match.span()):
                continue
            if match[0] in document.text or any(overlap(match.span(), other) for other in taken):
                continue
            if not any(document.text[slice(*place)] in comment[slice(*clause)] for place in places):
                taken.append(match.span())
                chosen, certain = _nearest(list(places), comment, clause, match.span(), document)
                if chosen:
                    yield Proposal("kind", match.span(), tuple(chosen), _CONFIDENCE[certain])


@lru_cache(maxsize=32)  # an answer is read for each clause of a comment
def _values_by_kind(text: str) -> tuple[tuple[re.Pattern[str], tuple[Range, ...]], ...]:
    """Return the kinds of values that a text has, by their patterns, and where they are."""
    shown = set(chain.from_iterable(map(_shown_values, text.split())))
    patterns = [pattern for i, (pattern, _) in enumerate(_VALUES) if i in shown]
    found = [(pattern, tuple(_whole_words(pattern, text))) for pattern in patterns]
    return tuple((pattern, places) for pattern, places in found if places)


@lru_cache(maxsize=1 << 14)
def _shown_values(word: str) -> tuple[int, ...]:
    """Return the numbers of the values of which a word between white space has the sign."""
    return tuple(i for i, (_, sign) in enumerate(_VALUES) if sign.search(word))


def _places(pattern: re.Pattern[str], kind: _Kind, document: Document) -> list[Range]:
    found = [match.span() for match in pattern.finditer(document.text) if match[0].strip()]
    if kind.sentence:
        return list(dict.fromkeys(document.sentence_at(start) for start, _ in found))
    return _whole_words(pattern, document.text)


def _whole_words(pattern: re.Pattern[str], text: str) -> list[Range]:
    found = [match.span() for match in pattern.finditer(text) if match[0].strip()]
    return [place for place in found if _is_whole_word(text, *place)]


def _is_whole_word(text: str, start: int, end: int) -> bool:
    return not (start and text[start - 1].isalnum()) and not text[end : end + 1].isalnum()


def _names(document: Document) -> list[Range]:
    text = parse_text(document.text)
    return [(text.words[name[0]].start, text.words[name[-1]].end) for name in text.names]


def _nearest(
    places: list[Range], comment: str, clause: Range, noun: Range, document: Document
) -> tuple[list[Range], bool]:
    """Return the places whose sentence shares most words with the clause, and whether that tells them apart."""
    said = comment[clause[0] : noun[0]] + " " + comment[noun[1] : clause[1]]
    keys = {key for word in split_words(said) if word.is_content for key in word.keys}
    scores = []
    for place in places:
        line = document.sentence_at(place[0])
        words = split_words(document.text[slice(*line)])
        shared = {key for word in words for key in word.keys} & keys
        hits = [w for w in words if shared.intersection(w.keys)]
        distance = min((abs(line[0] + w.start - place[1]) for w in hits), default=999)
        scores.append((len(shared), -distance))
    best = max(scores, default=(0, 0))
    if not best[0]:
        return (places, len(places) == 1) if len(places) <= _MAX_PLACES else ([], False)
    chosen = [place for place, score in zip(places, scores, strict=True) if score == best]
    return chosen, len(chosen) == 1
