"""The shipped summaries are sound: sizes, facts that the documents support, and nothing shared between the splits."""

import json
import re
from importlib.resources import files
from itertools import pairwise

import pytest

SIZES = {"train": 96, "heldout": 48}
DOCUMENT_WORDS = range(55, 86)
DOCUMENT_SENTENCES = range(3, 7)
REFERENCE_WORDS = range(15, 29)

NUMBER = re.compile(r"\d+(?:[.,]\d+)*")
NUMBER_WORD = re.compile(
    r"\b(?:one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|thirteen|fourteen|fifteen|sixteen|seventeen"
    r"|eighteen|nineteen|twenty|thirty|forty|fifty|sixty|seventy|eighty|ninety|hundred|thousand|million|billion"
    r"|half|third|quarter|fifth|tenth|twice|double)\b"
)
WORD = re.compile(r"[^\W\d_]+")
WORD_OR_BREAK = re.compile(r"[^\W_]+(?:['’-][^\W_]+)*|[^\w\s]")
SENTENCE_END = re.compile(r"(?<=[.!?])\s+")

CALENDAR = {"January", "February", "March", "April", "May", "June", "July", "August", "September", "October"}
CALENDAR |= {"November", "December", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"}
PARTS_OF_MANY_NAMES = {"Council", "Lane", "Road", "Saint", "Santa", "Town"}

Record = dict[str, str]


def load(split: str) -> list[Record]:
    path = files("text2grad").joinpath("data", "quickstart_texts", f"{split}.jsonl")
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


RECORDS = {split: load(split) for split in SIZES}
EVERY_RECORD = [record for records in RECORDS.values() for record in records]
ORDINARY_WORDS = {word for record in EVERY_RECORD for word in WORD.findall(record["document"]) if word.islower()}
each_record = pytest.mark.parametrize("record", EVERY_RECORD, ids=lambda record: record["id"])


def sentences(text: str) -> list[str]:
    return SENTENCE_END.split(text)


def numbers(text: str) -> set[str]:
    return {*NUMBER.findall(text), *NUMBER_WORD.findall(text.lower())}


def capitalised_after_the_first_word(sentence: str) -> set[str]:
    return {word for word in WORD.findall(sentence)[1:] if word[0].isupper()}


def facts(text: str) -> set[str]:
    return numbers(text) | capitalised_after_the_first_word(text)


def single_names(split: str) -> set[str]:
    """Capitalised words inside the sentences; initials such as the "E" of "line E7" name nothing by themselves."""
    found = (capitalised_after_the_first_word(s) for record in RECORDS[split] for s in sentences(record["document"]))
    return {word for words in found for word in words if len(word) > 1}


def multiword_names(split: str) -> set[tuple[str, str]]:
    """Neighbouring capitalised words with only a space between them, so that "Wexcombe Parish Council" gives two pairs.

    A first word counts unless it also occurs in lower case: "On Monday" is no name, "Zinnia Holdings" is one.
    """
    pairs = set()
    for sentence in (s for record in RECORDS[split] for s in sentences(record["document"])):
        tokens = WORD_OR_BREAK.findall(sentence)
        if tokens[0].lower() in ORDINARY_WORDS:
            tokens = tokens[1:]
        pairs |= {(a, b) for a, b in pairwise(tokens) if a[0].isupper() and b[0].isupper()}
    return pairs


@pytest.mark.parametrize("split", SIZES)
def test_ids_count_up_from_one_to_the_size_of_the_split(split: str) -> None:
    assert [record["id"] for record in RECORDS[split]] == [f"{split}-{n:03d}" for n in range(1, SIZES[split] + 1)]


def test_no_document_or_reference_occurs_twice() -> None:
    for field in ("document", "reference"):
        assert len({record[field] for record in EVERY_RECORD}) == sum(SIZES.values())


@each_record
def test_a_record_has_the_three_fields_and_the_promised_lengths(record: Record) -> None:
    assert set(record) == {"id", "document", "reference"}
    assert len(record["document"].split()) in DOCUMENT_WORDS
    assert len(sentences(record["document"])) in DOCUMENT_SENTENCES
    assert len(record["reference"].split()) in REFERENCE_WORDS
    assert len(sentences(record["reference"])) == 1
    assert record["reference"].endswith(".")


@each_record
def test_the_document_supports_every_number_and_name_of_the_reference(record: Record) -> None:
    assert numbers(record["reference"]) <= numbers(record["document"])
    assert capitalised_after_the_first_word(record["reference"]) <= set(WORD.findall(record["document"]))


@each_record
def test_a_reference_repeats_no_whole_sentence(record: Record) -> None:
    reference = record["reference"].lower()
    assert not [s for s in sentences(record["document"]) if s.rstrip(".!?").lower() in reference]


def test_the_first_sentence_is_a_poor_summary() -> None:
    """Copying the lead must not be a winning policy, so few leads may hold half of the reference's facts."""
    telling = [
        record["id"]
        for record in EVERY_RECORD
        if 2 * len(facts(record["reference"]) & facts(sentences(record["document"])[0]))
        >= len(facts(record["reference"]))
    ]
    assert len(telling) <= 0.1 * len(EVERY_RECORD), telling


def test_the_splits_share_no_name() -> None:
    assert single_names("train") & single_names("heldout") <= CALENDAR | PARTS_OF_MANY_NAMES


def test_the_splits_share_no_multiword_name() -> None:
    train, heldout = multiword_names("train"), multiword_names("heldout")
    assert {("Parish", "Council"), ("Zinnia", "Holdings")} <= train
    assert {("Derwent", "Rovers"), ("Okun", "Data")} <= heldout
    assert not train & heldout
