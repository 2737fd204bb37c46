"""A task with known ground truth: copy the fields of a prompt into a sentence.

    name Ada day Friday colour red =>      meet Ada on Friday wearing red

The critic knows the right sentence, so it blames exactly the wrong words and names exactly what is missing. The model
is a tiny random one, pretrained on sentences with many errors.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher

import numpy as np
import torch
from small_model import small_llama
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import LlamaForCausalLM, PreTrainedTokenizerFast

from text2grad.schema import Example, Feedback, Omission, Range, Span

VALUES = {
    "name": ["Ada", "Ben", "Cleo", "Dan", "Eva", "Finn", "Gus", "Hal"],
    "place": ["Athens", "Bonn", "Cairo", "Delhi", "Eton", "Florence", "Ghent", "Hull"],
    "day": ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday", "today"],
    "number": ["one", "two", "three", "four", "five", "six", "seven", "eight"],
    "colour": ["red", "orange", "yellow", "green", "blue", "violet", "black", "white"],
}
LEADS = {"name": "meet", "place": "in", "day": "on", "number": "at", "colour": "wearing"}
END, ARROW = "<end>", "=>"
LONGEST_ANSWER = 14  # tokens; the longest right completion has 11 with its end token
BLAME_SHARE = 0.3  # share of the words that the random critic blames
WRONG_SHARE, MISSING_SHARE, EXTRA_SHARE = 0.5, 0.15, 0.2  # errors in the pretraining data

Fields = dict[str, str]


def draw_fields(rng: np.random.Generator) -> Fields:
    """Two to five kinds of field, each with a value."""
    kinds = sorted(rng.choice(list(VALUES), size=rng.integers(2, 6), replace=False), key=list(VALUES).index)
    return {kind: str(rng.choice(VALUES[kind])) for kind in kinds}


def sentence(fields: Fields) -> list[str]:
    """The words of the right completion."""
    return [word for kind, value in fields.items() for word in (LEADS[kind], value)]


def faulty_sentence(fields: Fields, rng: np.random.Generator) -> list[str]:
    """The words of a completion with wrong, missing and superfluous fields."""
    said = {kind: str(rng.choice(VALUES[kind])) if rng.random() < WRONG_SHARE else v for kind, v in fields.items()}
    said = {kind: value for kind, value in said.items() if rng.random() >= MISSING_SHARE}
    words = sentence(said)
    while rng.random() < EXTRA_SHARE:
        kind = str(rng.choice(list(VALUES)))
        words += [LEADS[kind], str(rng.choice(VALUES[kind]))]
    return words


def make_examples(count: int, seed: int) -> list[Example]:
    """Prompts with the right sentence as reference."""
    rng = np.random.default_rng([2, seed])
    return [_example(str(i), draw_fields(rng)) for i in range(count)]


def _example(name: str, fields: Fields) -> Example:
    prompt = " ".join([*(word for field in fields.items() for word in field), ARROW])
    return Example(id=name, prompt=prompt, reference=" ".join(sentence(fields)))


class CopyCritic:
    """Blames every word that is not in the right sentence at its place, and names every word that is missing."""

    def critique(self, examples: Sequence[Example]) -> list[Feedback]:
        return [comment(example) for example in examples]


class CorrectingCritic:
    """Says of every fault, or of one at random, what should have been there. No score.

    A wrong word is a fault, and so is a run of superfluous or of missing words.
    """

    def __init__(self, one_fault: bool = False) -> None:
        self.one_fault = one_fault

    def critique(self, examples: Sequence[Example]) -> list[Feedback]:
        return [self.correct(example) for example in examples]

    def correct(self, example: Example) -> Feedback:
        found = list(faults(example))
        if self.one_fault and found:
            rng = np.random.default_rng(zlib.crc32(f"{example.id} {example.completion}".encode()))
            found = [found[rng.integers(len(found))]]
        spans = [fault for fault in found if isinstance(fault, Span)]
        omissions = [fault for fault in found if isinstance(fault, Omission)]
        return Feedback(spans=spans, omissions=omissions, critic="correcting")


class NeverSatisfiedCritic:
    """Always finds an omission, and does not blame words after the right sentence.

    Every end token is charged, and continuing costs nothing until the completion is truncated.
    """

    def critique(self, examples: Sequence[Example]) -> list[Feedback]:
        return [self.add_omission(example, comment(example)) for example in examples]

    def add_omission(self, example: Example, feedback: Feedback) -> Feedback:
        wanted = len(str(example.reference).split())
        judged = len(" ".join(example.completion.split()[:wanted]))
        spans = [span for span in feedback.spans if span.end <= judged]
        omissions = [*feedback.omissions, Omission(text="more")]
        return feedback.model_copy(update={"spans": spans, "omissions": omissions})


class RandomCritic:
    """Blames words at random and finds no omission: no choice of words is better than another."""

    def critique(self, examples: Sequence[Example]) -> list[Feedback]:
        return [self.blame_at_random(example) for example in examples]

    def blame_at_random(self, example: Example) -> Feedback:
        rng = np.random.default_rng(zlib.crc32(f"{example.id} {example.completion}".encode()))
        places = [place for place in _places(example.completion.split()) if rng.random() < BLAME_SHARE]
        return Feedback(spans=[Span(start=start, end=end, label="poor") for start, end in places], critic="random")


def comment(example: Example) -> Feedback:
    """Feedback on a completion; `score` is 2 * right / (written + expected) words, 1 for the right sentence alone."""
    said, wanted = example.completion.split(), str(example.reference).split()
    places = _places(said)
    spans: list[Span] = []
    omissions: list[Omission] = []
    right = 0
    for kind, i, j, k, end in SequenceMatcher(None, said, wanted, autojunk=False).get_opcodes():
        if kind == "equal":
            right += j - i
            continue
        spans += [Span(start=s, end=e, label="poor") for s, e in places[i:j]]
        # A wrong word in the place of a right one is blamed, so what it replaced is not charged again.
        omissions += [Omission(text=word) for word in wanted[k:end][j - i :]]
    score = 2 * right / (len(said) + len(wanted))
    words = ", ".join(example.completion[span.start : span.end] for span in spans)
    return Feedback(critique=f"Wrong: {words}.", spans=spans, omissions=omissions, score=score, critic="copy")


def faults(example: Example) -> Iterator[Span | Omission]:
    """Yield the wrong words, superfluous runs and missing runs of a completion, each with its correction."""
    said, wanted = example.completion.split(), str(example.reference).split()
    places = _places(said)
    for kind, i, j, k, end in SequenceMatcher(None, said, wanted, autojunk=False).get_opcodes():
        if kind == "equal":
            continue
        both = min(j - i, end - k)
        for (start, stop), word in zip(places[i:j], wanted[k:end], strict=False):
            yield Span(start=start, end=stop, label="poor", replacement=word)
        if j - i > both:
            yield Span(start=places[i + both][0], end=places[j - 1][1], label="poor", replacement="")
        if end - k > both:
            missing = " ".join(wanted[k + both : end])
            insertion = f" {missing}" if j else f"{missing} " if said else missing
            yield Omission(text=missing, insert_at=places[j - 1][1] if j else 0, insertion=insertion)


def _places(words: Sequence[str]) -> list[Range]:
    """Character ranges of words that are joined by single spaces."""
    ends = np.cumsum([len(word) + 1 for word in words])
    return [(int(end) - len(word) - 1, int(end) - 1) for word, end in zip(words, ends, strict=True)]


def make_tokenizer() -> PreTrainedTokenizerFast:
    """One token per word."""
    words = [END, ARROW, *VALUES, *LEADS.values(), *(value for values in VALUES.values() for value in values)]
    tokenizer = Tokenizer(models.WordLevel({word: i for i, word in enumerate(words)}, unk_token=END))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token=END, pad_token=END)


def make_model(tokenizer: PreTrainedTokenizerFast, seed: int) -> LlamaForCausalLM:
    """Two random layers of width 64."""
    return small_llama(
        tokenizer,
        width=64,
        seed=seed,
        max_position_embeddings=64,
        tie_word_embeddings=True,
        initializer_range=0.1,  # at the usual 0.02 so small a model needs five times as many steps
    )


def pretrain(
    model: LlamaForCausalLM, tokenizer: PreTrainedTokenizerFast, seed: int, steps: int = 100, batch: int = 32
) -> None:
    """Supervised steps on faulty sentences; every prompt is new."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    examples = _pretraining_rows(tokenizer, seed)
    model.train()
    for _ in range(steps):
        rows = [next(examples) for _ in range(batch)]
        width = max(len(prompt) + len(completion) for prompt, completion in rows)
        ids, labels = torch.zeros(batch, width, dtype=torch.long), torch.full((batch, width), -100)
        for i, (prompt, completion) in enumerate(rows):
            end = len(prompt) + len(completion)
            ids[i, :end] = torch.tensor(prompt + completion)
            labels[i, len(prompt) : end] = torch.tensor(completion)
        model(input_ids=ids, labels=labels).loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    model.eval()


def _pretraining_rows(tokenizer: PreTrainedTokenizerFast, seed: int) -> Iterator[tuple[list[int], list[int]]]:
    rng = np.random.default_rng([1, seed])
    while True:
        fields = draw_fields(rng)
        prompt = tokenizer(_example("", fields).prompt_text)["input_ids"]
        completion = tokenizer(" ".join(faulty_sentence(fields, rng)))["input_ids"]
        yield prompt, [*completion, tokenizer.eos_token_id]
