"""From spans to token labels on 2 000 real answers: exactness and speed.

Compared are `text2grad.align.tokens` (offsets from the ids, then the tokens that overlap each span) and the greedy
matcher of the published method, reimplemented: white-space words are matched, in order, to concatenations of decoded
tokens. Both label each token with the sum of the signs of the spans that it overlaps. The reference counts bytes: a
token of a byte-level vocabulary has as many bytes as its entry has characters, and overlaps a span if they share one.

The published method knows a span only by its words and takes their first occurrence. "Told where" gives it the right
occurrence, so that only the errors of its matching remain.

Four groups of 500 answers with three spans each, sampled with a fixed seed:
  plain      prose; spans of 2-8 words that occur once in the answer
  repeated   prose; spans of 2-4 words that have occurred in the answer before
  emoji/CJK  prose with such characters: as written where the data have them (hardly ever), otherwise inserted at random
             after and into words; spans of 1-8 words
  code       Python; spans of 1-8 words

Time is CPU time of one thread, from ids, text and spans to labels, the fastest of several runs; the decoded text of
single tokens is cached for both methods. The bar is for consecutive runs of one method; "in turns" alternates the
methods, so that each run finds cold CPU caches.
"""

from __future__ import annotations

import csv
import gc
import gzip
import json
import random
import re
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness import Bar, data_folder, options, report, show

from text2grad.align.tokens import offsets, overlapping
from text2grad.models.loading import DEFAULT_MODEL, load_tokenizer

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

SEED = 0
SPANS = 3
REPEATS = 7
BATCH = 20
MAX_MATCH = 9  # tokens that greedy concatenates
MAX_SKIP = 5  # tokens that greedy skips to find the next word

INSERTED = ["😀", "👍🏽", "🎉🎉", "👩‍👩‍👧", "🇯🇵", "🤷🏻‍♂️", "日本語", "中文", "한국어", "e\u0301\u0323"]
EMOJI_OR_CJK = re.compile("[\u2600-\u27bf\u3040-\u30ff\u4e00-\u9fff\uac00-\ud7af\U0001f000-\U0001faff]")

Labels = list[int]


@dataclass(frozen=True)
class Mark:
    """A span of whole words and the sign of its reward."""

    start: int
    end: int
    first_word: int
    sign: int


@dataclass(frozen=True)
class Answer:
    group: str
    text: str
    ids: list[int]
    marks: list[Mark]


# The methods


def ours(answer: Answer, tokenizer: PreTrainedTokenizerBase) -> Labels:
    ranges = offsets(answer.ids, tokenizer)
    labels = [0] * len(ranges)
    for mark in answer.marks:
        for token in overlapping(mark.start, mark.end, ranges):
            labels[token] += mark.sign
    return labels


def greedy(answer: Answer, decoded: dict[int, str], told_where: bool = False) -> Labels:
    words = answer.text.split()
    signs = [0] * len(words)
    for mark in answer.marks:
        phrase = answer.text[mark.start : mark.end].split()
        first = mark.first_word if told_where else first_occurrence(phrase, words)
        for place in range(first, first + len(phrase)):
            signs[place] += mark.sign
    tokens = [decoded[token_id] for token_id in answer.ids]
    labels = [0] * len(tokens)
    position = 0
    for word, sign in zip(words, signs, strict=True):
        match = match_word(word, tokens, position)
        if match is not None:
            start, position = match
            if sign:
                labels[start:position] = [sign] * (position - start)
    return labels


def first_occurrence(phrase: list[str], words: list[str]) -> int:
    first = words.index(phrase[0])
    while words[first : first + len(phrase)] != phrase:
        first = words.index(phrase[0], first + 1)
    return first


def match_word(word: str, tokens: list[str], position: int) -> tuple[int, int] | None:
    """Return the first run of tokens, at most MAX_SKIP from `position`, that spells the word up to white space."""
    for start in range(position, min(position + MAX_SKIP + 1, len(tokens))):
        joined = ""
        for end in range(start, min(start + MAX_MATCH, len(tokens))):
            joined += tokens[end]
            spelt = joined.strip()
            if spelt == word:
                return start, end + 1
            if not word.startswith(spelt):
                break
    return None


def truth(answer: Answer, tokenizer: PreTrainedTokenizerBase) -> Labels:
    labels, byte = [], 0
    marked = [
        (len(answer.text[: mark.start].encode()), len(answer.text[: mark.end].encode()), mark.sign)
        for mark in answer.marks
    ]
    for entry in tokenizer.convert_ids_to_tokens(answer.ids):
        ends = byte + len(entry)
        labels.append(sum(sign for start, end, sign in marked if byte < end and start < ends))
        byte = ends
    if byte != len(answer.text.encode()):
        raise ValueError(f"the tokens have {byte} bytes, which is not the size of the answer {answer.text!r}")
    return labels


# The answers


def json_lines(path: Path) -> Iterator[Any]:
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        yield from map(json.loads, lines)


def prose(data: Path) -> Iterator[str]:
    for split in ("train", "val"):
        yield from (row["candidate"] for row in json_lines(data / "defacto" / f"{split}.jsonl.gz"))
    with gzip.open(data / "haluquestqa" / "HaluQuestQA.csv.gz", "rt", encoding="utf-8", newline="") as table:
        for row in csv.DictReader(table, delimiter="\t"):
            yield from (row["ans1_text"], row["ans2_text"])
    with gzip.open(data / "fgrlhf_qa_feedback" / "dev_feedback.json.gz", "rt", encoding="utf-8") as whole:
        for row in json.load(whole):
            yield from (row[f"prediction {number}"] for number in (1, 2, 3, 4))


def code(data: Path) -> Iterator[str]:
    yield from (
        row["original_model_completion"] for row in json_lines(data / "ilf_code" / "surge_annotations.jsonl.gz")
    )
    yield from (row["buggy_code"] for row in json_lines(data / "debugbench_python" / "debugbench_python.jsonl.gz"))
    yield from (row["code"] for row in json_lines(data / "mbpp" / "mbpp.jsonl.gz"))


def shuffle(texts: Iterable[str], rng: random.Random) -> list[str]:
    distinct = sorted(set(texts))
    return rng.sample(distinct, len(distinct))


def insert_foreign(text: str, rng: random.Random) -> str:
    """Insert emoji or CJK characters after or into about one word in eight."""
    words = text.split(" ")
    for index in rng.sample(range(len(words)), 1 + len(words) // 8):
        word, foreign = words[index], rng.choice(INSERTED)
        at = rng.randint(0, len(word))
        words[index] = rng.choice([f"{word[:at]}{foreign}{word[at:]}", f"{word} {foreign}"])
    return " ".join(words)


def occurrences(words: list[str], length: int) -> list[list[int]]:
    """Return, per distinct phrase of this many words, the indices of the words at which it begins."""
    found = defaultdict(list)
    for first in range(len(words) - length + 1):
        found[tuple(words[first : first + length])].append(first)
    return list(found.values())


def unique_phrases(words: list[str], rng: random.Random) -> list[range]:
    lengths = [rng.randint(2, 8) for _ in range(SPANS)]
    return [range(at[0], at[0] + n) for n in lengths for at in occurrences(words, n) if len(at) == 1]


def later_occurrences(words: list[str], rng: random.Random) -> list[range]:
    return [range(first, first + n) for n in (2, 3, 4) for at in occurrences(words, n) for first in at[1:]]


def any_phrases(words: list[str], rng: random.Random) -> list[range]:
    return [range(first, min(first + rng.randint(1, 8), len(words))) for first in range(len(words))]


def draw_marks(text: str, phrases: Callable[[list[str], random.Random], list[range]], rng: random.Random) -> list[Mark]:
    """Sample up to SPANS phrases that share no word."""
    places = [match.span() for match in re.finditer(r"\S+", text)]
    candidates = phrases([text[start:end] for start, end in places], rng)
    taken: set[int] = set()
    marks: list[Mark] = []
    for span in rng.sample(candidates, len(candidates)):
        if len(marks) < SPANS and taken.isdisjoint(span):
            taken.update(span)
            marks.append(Mark(places[span[0]][0], places[span[-1]][1], span[0], rng.choice((-1, 1))))
    return marks


def draw_answers(data: Path, per_group: int, tokenizer: PreTrainedTokenizerBase) -> tuple[list[Answer], int]:
    """Sample the answers of all groups without repetition; also return how many emoji/CJK answers are as written."""
    rng = random.Random(SEED)
    texts = shuffle(prose(data), rng)
    as_written = [text for text in texts if EMOJI_OR_CJK.search(text)][:per_group]
    rest = (text for text in texts if not EMOJI_OR_CJK.search(text))
    answers: list[Answer] = []
    for group, candidates, phrases in (
        ("repeated", rest, later_occurrences),
        ("plain", rest, unique_phrases),
        ("emoji/CJK", chain(as_written, (insert_foreign(text, rng) for text in rest)), any_phrases),
        ("code", shuffle(code(data), rng), any_phrases),
    ):
        marked = ((text, draw_marks(text, phrases, rng)) for text in candidates)
        full = islice(((text, marks) for text, marks in marked if len(marks) == SPANS), per_group)
        answers += [Answer(group, text, tokenizer(text)["input_ids"], marks) for text, marks in full]
    return answers, len(as_written)


# The results


def count_wrong(labels: Iterable[Labels], expected: list[Labels]) -> int:
    return sum(a != b for label, right in zip(labels, expected, strict=True) for a, b in zip(label, right, strict=True))


def measure_times(
    methods: dict[str, Callable[[Answer], Labels]], answers: list[Answer], warm: bool
) -> dict[str, float]:
    """Return the CPU seconds of each method: the fastest of REPEATS runs per batch of answers, summed over batches.

    warm: run each method consecutively, as `timeit` does; otherwise alternate them, so that each run finds cold CPU
    caches. The garbage collector is off.
    """
    total = dict.fromkeys(methods, 0.0)
    gc.disable()
    for first in range(0, len(answers), BATCH):
        batch = answers[first : first + BATCH]
        order = [name for name in methods for _ in range(REPEATS)] if warm else [*methods] * REPEATS
        taken = [(name, seconds(methods[name], batch)) for name in order]
        for name in methods:
            total[name] += min(duration for method, duration in taken if method == name)
    gc.enable()
    return total


def seconds(method: Callable[[Answer], Labels], answers: list[Answer]) -> float:
    began = time.thread_time()
    for answer in answers:
        method(answer)
    return time.thread_time() - began


def measure(answers: list[Answer], tokenizer: PreTrainedTokenizerBase) -> dict[str, float]:
    decoded = {token_id: str(tokenizer.decode([token_id])) for answer in answers for token_id in answer.ids}
    methods: dict[str, Callable[[Answer], Labels]] = {
        "ours": lambda answer: ours(answer, tokenizer),
        "greedy": lambda answer: greedy(answer, decoded),
        "greedy_told_where": lambda answer: greedy(answer, decoded, told_where=True),
    }
    expected = [truth(answer, tokenizer) for answer in answers]
    errors = {name: count_wrong(map(method, answers), expected) for name, method in methods.items()}
    timed = {name: methods[name] for name in ("ours", "greedy")}
    warm, cold = measure_times(timed, answers, warm=True), measure_times(timed, answers, warm=False)
    tokens = sum(map(len, expected))
    return {
        "answers": len(answers),
        "tokens": tokens,
        "marked_share": sum(label != 0 for labels in expected for label in labels) / tokens,
        **{f"{method}_wrong_share": count / tokens for method, count in errors.items()},
        **{f"{method}_ns_per_token": taken / tokens * 1e9 for method, taken in warm.items()},
        "speedup": warm["greedy"] / warm["ours"],
        "speedup_in_turns": cold["greedy"] / cold["ours"],
    }


COLUMNS = [
    *("group", "answers", "tokens", "marked", "ours", "greedy", "told where"),
    *("ours ns", "greedy ns", "ratio", "in turns"),
]


def table(measured: dict[str, dict[str, float]]) -> list[list[str]]:
    return [
        [
            group,
            *(f"{row[name]:,}" for name in ("answers", "tokens")),
            *(f"{row[name]:.2%}" for name in row if name.endswith("_share")),
            *(f"{row[name]:.0f}" for name in row if name.endswith("_ns_per_token")),
            *(f"{row[name]:.1f}" for name in row if name.startswith("speedup")),
        ]
        for group, row in measured.items()
    ]


def main() -> None:
    args = options(__doc__)
    tokenizer = load_tokenizer(DEFAULT_MODEL)
    answers, as_written = draw_answers(data_folder(), 50 if args.quick else 500, tokenizer)
    groups = {answer.group: [other for other in answers if other.group == answer.group] for answer in answers}
    measured = {group: measure(members, tokenizer) for group, members in groups.items()}
    measured["all"] = measure(answers, tokenizer)
    show("Token labels: share wrong, nanoseconds per token, and greedy's time by ours", COLUMNS, table(measured))
    figures = {
        "answers": len(answers),
        "ours_wrong": measured["all"]["ours_wrong_share"],
        "greedy_wrong": measured["all"]["greedy_wrong_share"],
        "speedup": measured["all"]["speedup"],
        "speedup_in_turns": measured["all"]["speedup_in_turns"],
        "emoji_as_written_share": as_written / len(groups["emoji/CJK"]),
        "groups": measured,
    }
    report("alignment", figures, {"ours_wrong": Bar(at_most=0), "speedup": Bar(at_least=5)}, args)


if __name__ == "__main__":
    main()
