"""Wrong facts: names, numbers, dates, units and words exchanged for others of the same kind."""

from __future__ import annotations

import re
from collections.abc import Iterator
from random import Random

from text2grad.reward_model.corruptions.edits import Edit
from text2grad.reward_model.corruptions.material import (
    FaithfulText,
    Pool,
    is_replaceable,
    name_range,
    names_of,
    pick_new,
)
from text2grad.text.lexicon import CALENDAR_WORDS, DIGITS, NUMBER_WORDS, TENS
from text2grad.text.words import Word

_DIGITS = re.compile(DIGITS)
_WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_MONTHS = ("January", "February", "March", "April", "May", "June", "July", "August", "September", "October",
           "November", "December")  # fmt: skip
_ORDINALS = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth")
_CARDINALS = ("two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve", "fifteen")
_UNITS = tuple(
    tuple(group.split())
    for group in (
        "second minute hour day week month year decade century",
        "seconds minutes hours days weeks months years decades centuries",
        "millimetres centimetres metres kilometres miles feet inches yards",
        "grams kilograms kilogrammes tonnes pounds ounces tons",
        "thousand million billion trillion",
        "mm cm m km",
        "mg g kg",
        "litres gallons pints",
        "dollars pounds euros yen",
        "Celsius Fahrenheit",
        "north south east west",
        "northern southern eastern western",
    )
)
_SHARE_FROM_SOURCE = 0.5


def exchange_name(text: FaithfulText, pool: Pool, rng: Random) -> Edit | None:
    """Exchange a name for another of the source, or for one of another text."""
    parsed = text.completion
    found = [name_range(parsed, words) for words in parsed.names]
    found = [span for span in found if parsed.string[slice(*span)].lower() not in CALENDAR_WORDS]
    if not found:
        return None
    start, end = rng.choice(found)
    name = parsed.string[start:end]
    known = [other for other in sorted(set(names_of(text.source))) if _differ(other, name)]
    if known and rng.random() < _SHARE_FROM_SOURCE:
        alike = [other for other in known if _shape(other) == _shape(name)]
        return Edit(start, end, rng.choice(alike or known), "name")
    for _ in range(8 if pool.names else 0):
        other = rng.choice(pool.names)
        if _shape(other) == _shape(name) and _differ(other, name) and text.is_new(other):
            return Edit(start, end, other, "new name")
    return None


def exchange_number(text: FaithfulText, _: Pool, rng: Random) -> Edit | None:
    """Exchange a number for another of the source that is written alike, or for one close to it."""
    numbers = [word for word in text.completion.words if word.lexeme.is_number]
    if not numbers:
        return None
    word = rng.choice(numbers)
    alike = sorted({w.text for w in text.source.words if w.lexeme.is_number and _number_form(w) == _number_form(word)})
    others = [other for other in alike if other.lower() != word.text.lower()]
    if others and rng.random() < _SHARE_FROM_SOURCE:
        return Edit(word.start, word.end, rng.choice(others), "number")
    changed = _change_digits(word.text, rng) if word.text[0].isdigit() else _change_spelt(word.text, rng)
    return Edit(word.start, word.end, changed, "number") if changed and changed != word.text else None


def exchange_date(text: FaithfulText, _: Pool, rng: Random) -> Edit | None:
    """Exchange a weekday or a month for another."""
    words = [word for word in text.completion.words if word.text in _WEEKDAYS or word.text in _MONTHS]
    if not words:
        return None
    word = rng.choice(words)
    kind = _WEEKDAYS if word.text in _WEEKDAYS else _MONTHS
    return Edit(word.start, word.end, rng.choice([other for other in kind if other != word.text]), "date")


def exchange_unit(text: FaithfulText, _: Pool, rng: Random) -> Edit | None:
    """Exchange a unit, a scale or a compass point for another."""
    found = [(word, group) for word in text.completion.words for group in _UNITS if word.text in group]
    if not found:
        return None
    word, group = rng.choice(found)
    return Edit(word.start, word.end, rng.choice([other for other in group if other != word.text]), "unit")


def exchange_word(text: FaithfulText, pool: Pool, rng: Random) -> Edit | None:
    """Exchange a word of the source for one of another text that ends in the same letters."""
    known = frozenset(text.source.keys)
    words = [word for word in text.completion.words if is_replaceable(word) and word.lexeme.key in known]
    for word in rng.sample(words, min(len(words), 3)):
        other = pick_new(pool.words[word.text[-3:]], text, rng)
        if other is not None:
            return Edit(word.start, word.end, other, "word")
    return None


def exchange_answer(text: FaithfulText, _: Pool, rng: Random) -> Edit | None:
    """Put the answer to another question about the source in the place of the answer (`meta["other_answers"]`)."""
    answers = [text.example.reference] if isinstance(text.example.reference, str) else text.example.reference or []
    wrong = [str(answer) for answer in text.example.meta.get("other_answers", [])]
    places = list(_occurrences(answers, text.example.completion))
    if not places or not wrong:
        return None
    start, end = rng.choice(places)
    right = text.example.completion[start:end]
    others = [other for other in wrong if _differ(other, right)]
    alike = [other for other in others if other[0].isdigit() == right[0].isdigit()]
    return Edit(start, end, rng.choice(alike or others), "answer") if others else None


def _occurrences(answers: list[str], completion: str) -> Iterator[tuple[int, int]]:
    for answer in answers:
        for match in re.finditer(rf"(?<!\w){re.escape(answer)}(?!\w)", completion) if answer else ():
            yield match.span()


def _differ(one: str, other: str) -> bool:
    """Whether two names have no word in common."""
    return not set(one.lower().split()) & set(other.lower().split())


def _shape(name: str) -> tuple[int, bool]:
    return min(len(name.split()), 3), name.isupper()


def _number_form(word: Word) -> str:
    """Return what is left of a number without its digits: "$ million", "%", "," and the length for years."""
    if not word.text[0].isdigit() and not _DIGITS.search(word.text):
        return "ordinal" if word.text.lower() in _ORDINALS else "spelt"
    is_year = len(word.text) == 4 and word.text.isdigit() and word.text[:2] in ("17", "18", "19", "20")
    return "year" if is_year else _DIGITS.sub("0", word.text)


def _change_digits(text: str, rng: Random) -> str | None:
    match = _DIGITS.search(text)
    if match is None:
        return None
    digits = match[0]
    if digits.isdigit() and len(digits) == 4 and digits[:2] in ("17", "18", "19", "20"):
        changed = str(int(digits) + rng.choice([-1, 1]) * rng.randint(1, 12))
    elif digits.isdigit() and len(digits) < 3:
        changed = str(max(1, int(digits) + rng.choice([-3, -2, -1, 1, 2, 3, 5, 10])))
    else:
        places = [i for i, character in enumerate(digits) if character.isdigit()]
        place = rng.choice(places)
        new_digit = rng.choice([d for d in "123456789" if d != digits[place]])
        changed = digits[:place] + new_digit + digits[place + 1 :]
    return text[: match.start()] + changed + text[match.end() :]


def _change_spelt(text: str, rng: Random) -> str | None:
    first, space, rest = text.partition(" ")
    lowered = first.lower()
    kind = _ORDINALS if lowered in _ORDINALS else tuple(TENS) if lowered in TENS else _CARDINALS
    if lowered.split("-")[0] not in NUMBER_WORDS or lowered == "one":  # "one" is more often a pronoun
        return None
    other = rng.choice([word for word in kind if word != lowered])
    return (other.capitalize() if first[0].isupper() else other) + space + rest
