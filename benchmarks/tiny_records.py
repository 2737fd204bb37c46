"""Records told as a line of words, for a model of two layers: exact faults, exact corrections, any number of fields.

    f2 b f5 h f7 a =>      of f2 is b and f5 is h and f7 is a <end>

Each field of a record has one of eight values. An answer tells every field in order with `filler` words around each
value, so its length is set apart from the number of its faults. With `dependent`, the value of the last field must be
the successor of the value that the *answer* gave to the first one: a fault that an earlier choice can cause.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from small_model import small_llama
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import LlamaForCausalLM, PreTrainedTokenizerFast

from text2grad.schema import Example, Feedback, Range, Span

NUM_VALUES = 8
END, ARROW = "<end>", "=>"


@dataclass(frozen=True)
class Task:
    """fields: of every record. filler: words before each value. wrong: share of wrong values in pretraining."""

    fields: int
    filler: int = 1
    wrong: float = 0.5
    dependent: bool = False

    @property
    def answer_length(self) -> int:
        """Tokens of an answer with its end token."""
        return self.fields * (self.filler + 1) + 1

    def tokenizer(self) -> PreTrainedTokenizerFast:
        """One token per word."""
        words = [END, ARROW]
        for i in range(self.fields):
            words += [
                f"f{i}",
                *(f"w{i}.{j}" for j in range(self.filler)),
                *(self.value(i, v) for v in range(NUM_VALUES)),
            ]
        tokenizer = Tokenizer(models.WordLevel({word: i for i, word in enumerate(words)}, unk_token=END))
        tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
        return PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token=END, pad_token=END)

    def value(self, field: int, number: int) -> str:
        return f"v{field}.{number % NUM_VALUES}"

    def draw(self, rng: np.random.Generator) -> list[int]:
        return [int(number) for number in rng.integers(0, NUM_VALUES, self.fields)]

    def prompt(self, record: Sequence[int]) -> str:
        return " ".join([*(w for i, v in enumerate(record) for w in (f"f{i}", self.value(i, v))), ARROW])

    def answer(self, record: Sequence[int]) -> str:
        """The words that tell these values."""
        return " ".join(
            word
            for i, v in enumerate(record)
            for word in (*(f"w{i}.{j}" for j in range(self.filler)), self.value(i, v))
        )

    def examples(self, count: int, seed: int) -> list[Example]:
        rng = np.random.default_rng([11, self.fields, seed])
        records = [self.draw(rng) for _ in range(count)]
        return [
            Example(id=f"{seed}-{i}", prompt=self.prompt(record), meta={"record": record})
            for i, record in enumerate(records)
        ]

    def wanted(self, example: Example) -> list[str]:
        """The right words of an answer, given what it says itself."""
        record = list(example.meta["record"])
        if self.dependent:
            said = example.completion.split()[self.filler : self.filler + 1]
            first = next((v for v in range(NUM_VALUES) if said == [self.value(0, v)]), record[0])
            record[-1] = (first + 1) % NUM_VALUES
        return self.answer(record).split()


def find_faults(task: Task, example: Example) -> list[Span]:
    """Return a span for every word that is not the right one at its place; its replacement is the right word, or none.

    After a word that has no business at its place, an answer is out of step: that word is the last that is named.
    """
    said, wanted = example.completion.split(), task.wanted(example)
    read = said[: words_in_step(task, said) + 1]
    return [
        Span(start=start, end=end, label="poor", replacement=right)
        for (start, end), word, right in zip(_places(said), read, wanted + [""] * len(said), strict=False)
        if word != right
    ]


def words_in_step(task: Task, said: Sequence[str]) -> int:
    """Return how many words are, from the start, a filler where one belongs or any value of the field of its place."""
    for i, word in enumerate(said):
        field, place = divmod(i, task.filler + 1)
        expected = f"w{field}.{place}" if place < task.filler else f"v{field}."
        if field == task.fields or not (word == expected or (place == task.filler and word.startswith(expected))):
            return i
    return len(said)


def share_right(task: Task, example: Example) -> float:
    """Share of the record's values that are told rightly, at their places."""
    said, wanted = example.completion.split(), task.wanted(example)
    step = task.filler + 1
    return sum(said[i : i + 1] == wanted[i : i + 1] for i in range(task.filler, len(wanted), step)) / task.fields


@dataclass(frozen=True)
class RecordCritic:
    """Names faults. mentioned: the share of an answer's faults that is named, at least one; 0: exactly one.

    The score is 1 less twice the faults that are named and the fields that are not told, per field. moved: share of
    critiques whose comments, corrections included, are about other words of the answer than they should be.
    """

    task: Task
    mentioned: float = 1.0
    moved: float = 0.0

    def critique(self, examples: Sequence[Example]) -> list[Feedback]:
        return [self._comment(example) for example in examples]

    def _comment(self, example: Example) -> Feedback:
        rng = np.random.default_rng(_seed_of(example))
        faults = find_faults(self.task, example)
        count = min(len(faults), max(1, round(self.mentioned * len(faults))))
        named = [faults[i] for i in sorted(rng.choice(len(faults), count, replace=False))] if faults else []
        told = words_in_step(self.task, example.completion.split()) // (self.task.filler + 1)
        if named and rng.random() < self.moved:
            places = _places(example.completion.split())
            chosen = sorted(rng.choice(len(places), min(len(named), len(places)), replace=False))
            moved = zip(named, (places[i] for i in chosen), strict=False)
            named = [span.model_copy(update={"start": start, "end": end}) for span, (start, end) in moved]
        score = 1 - 2 * (len(named) + self.task.fields - told) / self.task.fields
        return Feedback(spans=named, score=max(-1.0, score), critic="records")


def pretrain(
    task: Task, tokenizer: PreTrainedTokenizerFast, seed: int, steps: int, batch: int = 64
) -> LlamaForCausalLM:
    """A model of two layers after supervised steps on answers with wrong values."""
    model = small_llama(
        tokenizer, width=64, seed=seed, max_position_embeddings=512, tie_word_embeddings=True, initializer_range=0.1
    )
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    rows = _pretraining_rows(task, tokenizer, seed)
    model.train()
    for _ in range(steps):
        drawn = [next(rows) for _ in range(batch)]
        ids = torch.tensor([prompt + answer for prompt, answer in drawn])
        labels = ids.clone()
        labels[:, : len(drawn[0][0])] = -100
        model(input_ids=ids, labels=labels).loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    return model.eval()


def _pretraining_rows(
    task: Task, tokenizer: PreTrainedTokenizerFast, seed: int
) -> Iterator[tuple[list[int], list[int]]]:
    rng = np.random.default_rng([12, task.fields, seed])
    while True:
        record = task.draw(rng)
        told = [v if rng.random() >= task.wrong else int(rng.integers(NUM_VALUES)) for v in record]
        if task.dependent:
            told[-1] = (told[0] + 1) % NUM_VALUES if rng.random() >= task.wrong else int(rng.integers(NUM_VALUES))
        yield (
            tokenizer(task.prompt(record))["input_ids"],
            [*tokenizer(task.answer(told))["input_ids"], tokenizer.eos_token_id],
        )


def _places(words: Sequence[str]) -> list[Range]:
    ends = np.cumsum([len(word) + 1 for word in words])
    return [(int(end) - len(word) - 1, int(end) - 1) for word, end in zip(words, ends, strict=True)]


def _seed_of(example: Example) -> list[int]:
    return list(hashlib.blake2b(f"{example.id}\n{example.completion}".encode(), digest_size=8).digest())
