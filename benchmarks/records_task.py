"""Records to paragraphs: two to sixteen fields of a record told as prose, with a critic that is never wrong.

    Name: the Salt Fair / Town: Ghent / Day: Tuesday / ...   ->   The Salt Fair takes place in Ghent on Tuesday ...

Every field has a closed set of values, and no value belongs to two fields, so a value in the text can only mean its
field. A field is told if its value is in the text outside a list of fields. The critic praises nothing: it blames
values that are not the record's, with the right value as their correction, and names the fields that are missing.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from text2grad.schema import Example, Feedback, Omission, Span

VALUES = {
    "Name": "the Salt Fair, the Lantern Walk, the Harbour Run, the Kite Festival, the Seed Swap, the Book Night, "
    "the Bread Contest, the Repair Café, the Chess Open, the Choir Weekend, the Apple Feast, the Robot Derby",
    "Town": "Ghent, Lund, Porto, Bergen, Trieste, Galway, Bruges, Tartu, Gdansk, Malaga, Graz, Utrecht",
    "Venue": "the old mill, the town library, the rowing club, the fish market, the north pier, the glass house, "
    "the fire station, the tram depot, the castle yard, the music school, the brick works, the village hall",
    "Day": "Monday, Tuesday, Wednesday, Thursday, Friday, Saturday, Sunday",
    "Month": "January, February, March, April, June, July, August, September, October, November, December",
    "Time": "9 am, 10 am, 11 am, noon, 2 pm, 3 pm, 4 pm, 5 pm, 6 pm, 7 pm, 8 pm, midnight",
    "Price": "$4, $6, $9, $12, $15, $18, $22, $25, $30, $35, $40, $55",
    "Host": "Ada Brandt, Omar Haddad, Lena Fischer, Ivo Novak, Grace Okoro, Mina Sato, Paul Lindqvist, Rosa Marin, "
    "Tom Ashby, Yara Costa, Nils Dahl, Eve Carter",
    "Guest": "a beekeeper, a sailor, a violinist, a glazier, a magician, a botanist, a blacksmith, a pilot, a poet, "
    "a weaver, a diver, a clockmaker",
    "Seats": "20 seats, 35 seats, 48 seats, 60 seats, 75 seats, 90 seats, 110 seats, 130 seats, 160 seats, 200 seats, "
    "240 seats, 300 seats",
    "Language": "Dutch, Swedish, Portuguese, Norwegian, Italian, Irish, Estonian, Polish, Spanish, German, French, "
    "Finnish",
    "Food": "lentil soup, fish pie, plum cake, onion tart, rice balls, pea stew, cheese rolls, nut bread, corn salad, "
    "apple fritters, potato pancakes, fig jam",
    "Prize": "a silver cup, a red bicycle, a wool blanket, a copper bell, a fountain pen, a leather bag, a wall clock, "
    "a straw hat, a pocket radio, a chess set, a tea service, a wooden boat",
    "Sponsor": "Orbit Bank, Delta Dairy, Nordlight, Pine Press, Quarry Tools, Sunfleet, Bluebird Travel, Cobalt Paint, "
    "Harrow Seeds, Ember Coffee, Vela Optics, Tundra Wool",
    "Transport": "by ferry, by tram, by bicycle, by bus, by train, on foot, by canoe, by cable car, by taxi, "
    "by sledge, by horse, by funicular",
    "Rule": "no dogs, no phones, no cameras, no umbrellas, no drinks, no bags, no shoes, no drums, no balloons, "
    "no whistles, no stickers, no ladders",
}
VOCABULARY = {field: values.split(", ") for field, values in VALUES.items()}
# How a field is told, in the order of the record; a sentence that is missing is its correction, at its place.
SENTENCES = {
    "Name": "This is {}.",
    "Town": "It takes place in {}.",
    "Venue": "The venue is {}.",
    "Day": "It is held on a {}.",
    "Month": "It is planned for {}.",
    "Time": "Doors open at {}.",
    "Price": "Tickets cost {}.",
    "Host": "Your host is {}.",
    "Guest": "The special guest is {}.",
    "Seats": "There are {}.",
    "Language": "The language is {}.",
    "Food": "Visitors are served {}.",
    "Prize": "The winner receives {}.",
    "Sponsor": "It is sponsored by {}.",
    "Transport": "It is best reached {}.",
    "Rule": "The house allows {}.",
}
# Faults of the starting model. A habit is the value after the right one in the list, more often than the right one:
# sampling less at random does not cure it.
WRONG_SHARE, MISSING_SHARE, EXTRA_SHARE, HABIT_SHARE = 0.3, 0.15, 0.3, 0.65
HABITS = frozenset(list(VOCABULARY)[1::3])
PROMPT = "Write one paragraph that announces this event. Mention every detail and nothing else.\n\n{record}"
_LISTED = re.compile(rf"(?:{'|'.join(VALUES)})\s*[:=-]\s*", re.IGNORECASE)


class Found(NamedTuple):
    """A value in a text. listed: written after the name of its field and a colon, which are part of it, not told."""

    start: int
    end: int
    field: str
    value: str
    listed: bool


def make_examples(count: int, fields: int, seed: int) -> list[Example]:
    """Return prompts with `fields` fields each; the record is in `meta`."""
    rng = np.random.default_rng([7, fields, seed])
    examples = []
    for i in range(count):
        chosen = sorted(rng.choice(list(VOCABULARY)[1:], size=fields - 1, replace=False), key=list(VOCABULARY).index)
        record = {field: str(rng.choice(VOCABULARY[field])) for field in ["Name", *chosen]}
        lines = "\n".join(f"{field}: {value}" for field, value in record.items())
        examples.append(Example(id=f"{fields}-{seed}-{i}", prompt=PROMPT.format(record=lines), meta={"record": record}))
    return examples


def faulty_paragraphs(count: int, fields: int, seed: int) -> list[Example]:
    """Return records told with wrong, missing and invented fields: what the starting model learns to write."""
    rng = np.random.default_rng([8, fields, seed])
    told = []
    for example in make_examples(count, fields, seed):
        record: dict[str, str] = example.meta["record"]
        said = {field: _told(field, value, rng) for field, value in record.items() if rng.random() >= MISSING_SHARE}
        others = [field for field in VOCABULARY if field not in record]
        if others and rng.random() < EXTRA_SHARE:
            field = str(rng.choice(others))
            said[field] = str(rng.choice(VOCABULARY[field]))
        told.append(example.model_copy(update={"completion": tell(said) or tell(record)}))
    return told


def _told(field: str, value: str, rng: np.random.Generator) -> str:
    values = VOCABULARY[field]
    if field in HABITS:
        return values[(values.index(value) + 1) % len(values)] if rng.random() < HABIT_SHARE else value
    return str(rng.choice(values)) if rng.random() < WRONG_SHARE else value


def tell(record: dict[str, str]) -> str:
    """Return a paragraph with a sentence per field."""
    return " ".join(SENTENCES[field].format(value) for field, value in record.items())


def find_values(text: str) -> list[Found]:
    """Return the values of all fields that occur in a text, in order."""
    found = []
    for field, pattern in _PATTERNS.items():
        for match in pattern.finditer(text):
            value = _CANONICAL[field][" ".join(match[0].lower().split())]
            label = next(
                (m.start() for m in _LISTED.finditer(text, 0, match.start()) if m.end() == match.start()), None
            )
            start = match.start() if label is None else label
            found.append(Found(start, match.end(), field, value, label is not None))
    return sorted(found)


def slots_right(example: Example) -> float:
    """Share of the record's fields that are told with the right value and with no other one."""
    record: dict[str, str] = example.meta["record"]
    told: dict[str, set[str]] = {}
    for item in find_values(example.completion):
        if not item.listed:
            told.setdefault(item.field, set()).add(item.value)
    return sum(told.get(field) == {value} for field, value in record.items()) / len(record)


class RecordCritic:
    """Names every fault, or as many as `max_faults`, drawn with a fixed seed.

    The score knows what is named and nothing else: 1 less 2 / fields per named fault, not below -1.
    """

    def __init__(self, max_faults: int | None = None, holistic: bool = False) -> None:
        self.max_faults = max_faults
        self.holistic = holistic

    def critique(self, examples: Sequence[Example]) -> list[Feedback]:
        return [self._comment(example) for example in examples]

    def _comment(self, example: Example) -> Feedback:
        faults = find_faults(example)
        named = faults
        if self.max_faults is not None and len(faults) > self.max_faults:
            rng = np.random.default_rng(_seed_of(example))
            named = [faults[i] for i in sorted(rng.choice(len(faults), self.max_faults, replace=False))]
        counted = faults if self.holistic else named
        return Feedback(
            critique=" ".join(_sentence(fault, example.completion) for fault in named),
            spans=[fault for fault in named if isinstance(fault, Span)],
            omissions=[fault for fault in named if isinstance(fault, Omission)],
            score=max(-1.0, 1 - 2 * len(counted) / len(example.meta["record"])),
            critic="records",
        )


def find_faults(example: Example) -> list[Span | Omission]:
    """Return the values that are not the record's, in order, then the fields that are not told."""
    record: dict[str, str] = example.meta["record"]
    values = find_values(example.completion)
    told = {item.field for item in values if not item.listed and record.get(item.field) == item.value}
    wrong = [item for item in values if item.listed or record.get(item.field) != item.value]
    spans = [
        Span(
            start=item.start,
            end=item.end,
            label="poor",
            reason=_reason(item, record),
            replacement=None if item.listed else record.get(item.field),
        )
        for item in wrong
    ]
    known = told | {item.field for item in wrong}
    omissions = []
    for field, value in record.items():
        if field not in known:
            place, insertion = _where_missing(field, value, values, example.completion)
            omissions.append(Omission(text=f"{field}: {value}", insert_at=place, insertion=insertion))
    return [*spans, *omissions]


def _where_missing(field: str, value: str, values: Sequence[Found], text: str) -> tuple[int, str]:
    """Return where the sentence of a field belongs, and the text to insert: after the sentences of earlier fields.

    values: all that are told, in order.
    """
    order, sentence = list(VOCABULARY), SENTENCES[field].format(value)
    earlier = [item.end for item in values if order.index(item.field) < order.index(field)]
    if not earlier:
        return 0, f"{sentence} " if text else sentence
    stop = text.find(".", max(earlier))
    return stop + 1 or len(text.rstrip()), f" {sentence}"


def kind_of(span: Span) -> str:
    """What is wrong with a span of `find_faults`."""
    reason = span.reason or ""
    return "listed" if "listed" in reason else "wrong value" if reason.startswith("The record has") else "invented"


def _reason(item: Found, record: dict[str, str]) -> str:
    if item.listed:
        return f"{item.field} is listed, not told."
    right = record.get(item.field)
    return f"The record has {right}, not {item.value}." if right else f"The record does not say {item.value}."


def _sentence(fault: Span | Omission, completion: str) -> str:
    return fault.reason or "" if isinstance(fault, Span) else f"Missing: {fault.text}."


def _seed_of(example: Example) -> list[int]:
    return list(hashlib.blake2b(f"{example.id}\n{example.completion}".encode(), digest_size=8).digest())


def _pattern(values: Sequence[str]) -> re.Pattern[str]:
    longest_first = sorted(values, key=len, reverse=True)
    spelled = "|".join(r"\s+".join(re.escape(word) for word in value.split()) for value in longest_first)
    return re.compile(rf"(?<![\w$])(?:{spelled})(?!\w)", re.IGNORECASE)


_PATTERNS = {field: _pattern(values) for field, values in VOCABULARY.items()}
_CANONICAL = {field: {value.lower(): value for value in values} for field, values in VOCABULARY.items()}
