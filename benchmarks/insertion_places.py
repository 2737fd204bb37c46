"""Where missing words should be inserted: at their place, at the end of the answer, or nowhere.

A tiny model tells records of eight fields in their order, leaves out a quarter of them, and tells three of ten values
wrongly. The critic names every fault, with a score, or one fault per answer, without one. What it says of wrong values
is the same in all arms; they differ in what they do about missing fields. 60 steps of 8 answers, each arm with the
better of two learning rates, chosen with another seed. Bars: lower ends of intervals of differences at the end.
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean
from typing import Any, Literal, NamedTuple

import numpy as np
import torch
from harness import Bar, options, report, show
from small_model import small_llama
from tiny_records import NUM_VALUES, Task
from transformers import PreTrainedTokenizerBase

from text2grad import Text2GradConfig, Text2GradTrainer
from text2grad.schema import Example, Feedback, Omission, Span

Place = Literal["where they belong", "at the end", "nowhere"]
FIELDS, WRONG, MISSING = 8, 0.3, 0.25
STEPS, BATCH, EVERY, HELDOUT, PRETRAINING = 60, 8, 20, 128, 400
TUNING_SEED, SEEDS, RATES = 0, range(1, 6), (1e-3, 3e-3)
NO_CORRECTIONS: dict[str, Any] = {"corrections": {"weight": 0.0}}
AT_PLACE, AT_END = "corrections, missing words where they belong", "corrections, missing words at the end"
SPANS_AT_PLACE = "spans, missing words charged where they belong"
ARMS: dict[str, tuple[dict[str, Any], Place]] = {
    "number": ({"estimator": "rloo", "credit": {"mode": "sequence"}, **NO_CORRECTIONS}, "nowhere"),
    "spans": ({"estimator": "local", **NO_CORRECTIONS}, "nowhere"),
    SPANS_AT_PLACE: ({"estimator": "local", **NO_CORRECTIONS}, "where they belong"),
    AT_PLACE: ({"estimator": "local"}, "where they belong"),
    AT_END: ({"estimator": "local"}, "at the end"),
    "corrections, wrong words only": ({"estimator": "local"}, "nowhere"),
}
BARS = {
    "place_over_end_all": Bar(at_least=0.0),
    "place_over_end_one": Bar(at_least=0.0),
    "place_over_spans_one": Bar(at_least=0.0),
    "spans_at_place_over_spans_one": Bar(at_least=0.0),
}


class Faults(NamedTuple):
    """Faults of an answer. right: share of the fields that are told once, with the right value."""

    spans: list[Span]
    omissions: list[Omission]
    right: float


def find_faults(task: Task, example: Example, place: Place) -> Faults:
    """Blame wrong values and words that are out of place, and name the fields that are missing."""
    record: list[int] = example.meta["record"]
    spans: list[Span] = []
    told: dict[str, tuple[int, bool]] = {}  # field -> where its value ends, whether it is right
    words, at = example.completion.split(), 0
    for i, word in enumerate(words):
        kind, field = word[0], word[1:].partition(".")[0]
        neighbour = words[i - 1 : i] if kind == "v" else words[i + 1 : i + 2]
        other = {"v": "w", "w": "v"}.get(kind, "no such word")
        if field in told or not neighbour or not neighbour[0].startswith(f"{other}{field}."):
            spans.append(Span(start=at, end=at + len(word), label="poor", replacement=""))
        elif kind == "v":
            right = task.value(int(field), record[int(field)])
            told[field] = (at + len(word), word == right)
            if word != right:
                spans.append(Span(start=at, end=at + len(word), label="poor", replacement=right))
        at += len(word) + 1
    omissions = []
    for field in range(task.fields):
        if str(field) in told:
            continue
        said = f"w{field}.0 {task.value(field, record[field])}"
        earlier = [end for other, (end, _) in told.items() if int(other) < field]
        if place == "nowhere":
            omissions.append(Omission(text=said))
        elif place == "at the end" or earlier:
            stop = len(example.completion) if place == "at the end" else max(earlier)
            omissions.append(Omission(text=said, insert_at=stop, insertion=f" {said}" if words else said))
        else:
            omissions.append(Omission(text=said, insert_at=0, insertion=f"{said} " if words else said))
    return Faults(spans, omissions, sum(right for _, right in told.values()) / task.fields)


class MissingFieldsCritic(NamedTuple):
    """Names every fault and scores the answer by their number, or names one fault, drawn with a fixed seed.

    scored: whether that one comment comes with a number too.
    """

    task: Task
    place: Place
    one: bool
    scored: bool

    def critique(self, examples: Sequence[Example]) -> list[Feedback]:
        return [self._comment(example) for example in examples]

    def _comment(self, example: Example) -> Feedback:
        spans, omissions, _ = find_faults(self.task, example, self.place)
        count = len(spans) + len(omissions)
        if self.one and count > 1:
            chosen = int(np.random.default_rng(_seed_of(example)).integers(count))
            spans, omissions = (
                spans[chosen : chosen + 1],
                omissions[max(0, chosen - len(spans)) :][: chosen >= len(spans)],
            )
        score = max(-1.0, 1 - 2 * (len(spans) + len(omissions)) / self.task.fields)
        return Feedback(spans=spans, omissions=omissions, score=score if self.scored else None, critic="records")


def _seed_of(example: Example) -> list[int]:
    return list(hashlib.blake2b(f"{example.id}\n{example.completion}".encode(), digest_size=8).digest())


@functools.cache
def pretrain(seed: int, steps: int) -> dict[str, torch.Tensor]:
    """Return the weights of a model after supervised steps on records with wrong and missing fields."""
    task = Task(FIELDS)
    tokenizer = task.tokenizer()
    model, rng = new_model(tokenizer, seed), np.random.default_rng([12, FIELDS, seed])
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    for _ in range(steps):
        rows = []
        for record in (task.draw(rng) for _ in range(64)):
            kept = [(i, v) for i, v in enumerate(record) if rng.random() >= MISSING]
            said = [(i, v if rng.random() >= WRONG else int(rng.integers(NUM_VALUES))) for i, v in kept]
            answer = " ".join(f"w{i}.0 {task.value(i, v)}" for i, v in said)
            rows.append((tokenizer(task.prompt(record))["input_ids"], tokenizer(answer)["input_ids"]))
        longest = max(len(prompt) + len(answer) for prompt, answer in rows) + 1
        ids = torch.full((len(rows), longest), tokenizer.eos_token_id)
        labels = torch.full_like(ids, -100)
        for line, (prompt, answer) in enumerate(rows):
            end = len(prompt) + len(answer)
            ids[line, :end] = torch.tensor(prompt + answer)
            labels[line, len(prompt) : end + 1] = ids[line, len(prompt) : end + 1]
        model(input_ids=ids, labels=labels).loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    return {name: value.detach().clone() for name, value in model.state_dict().items()}


def new_model(tokenizer: PreTrainedTokenizerBase, seed: int) -> Any:
    settings = {"max_position_embeddings": 512, "tie_word_embeddings": True, "initializer_range": 0.1}
    return small_llama(tokenizer, width=64, seed=seed, **settings).train()


def learn(arm: str, one: bool, seed: int, rate: float, quick: bool) -> list[float]:
    """Train once; return the share of fields told rightly before training and every `EVERY` steps."""
    task, (changes, place) = Task(FIELDS), ARMS[arm]
    tokenizer = task.tokenizer()
    model = new_model(tokenizer, seed)
    model.load_state_dict(pretrain(seed, 20 if quick else PRETRAINING))
    steps, every, heldout = (2, 1, 8) if quick else (STEPS, EVERY, HELDOUT)
    args = Text2GradConfig(
        output_dir=Path("never written"),
        seed=seed,
        max_steps=steps,
        per_device_train_batch_size=BATCH,
        num_generations=4,
        max_completion_length=2 * FIELDS + 6,
        learning_rate=rate,
        beta=0.01,
        temperature=1.0,
        bf16=False,
        num_logged_completions=0,
        **changes,
    )
    critic = MissingFieldsCritic(task, place, one, scored=not one or arm == "number")
    prompts = task.examples(BATCH * steps // 4, seed)
    trainer = Text2GradTrainer(model, critic, args, prompts, processing_class=tokenizer, plain_prompts=True)
    unseen = task.examples(heldout, 1000 + seed)

    def right() -> float:
        answers = trainer.generate(unseen, 1.0, batch_size=heldout)
        return fmean(find_faults(task, answer, "nowhere").right for answer in answers)

    curve = [right()]
    for step in range(1, steps + 1):
        trainer.step(step)
        if step % every == 0:
            curve.append(right())
    return curve


def lower_bound(ours: Sequence[Sequence[float]], theirs: Sequence[Sequence[float]]) -> float:
    """Return the lower end of the 95% interval (t, paired by seed) of the difference at the end."""
    gains = np.array([a[-1] - b[-1] for a, b in zip(ours, theirs, strict=True)])
    quantile = {2: 12.706, 3: 4.303, 4: 3.182, 5: 2.776}.get(len(gains), float("nan"))
    return float(gains.mean() - quantile * gains.std(ddof=1) / len(gains) ** 0.5) if len(gains) > 1 else float("nan")


def main() -> None:
    args = options(__doc__ or "")
    torch.set_num_threads(1)
    seeds = SEEDS[:1] if args.quick else SEEDS
    rows, curves = [], {}
    for said in ("all", "one"):
        for arm in ARMS:
            tuning = {rate: fmean(learn(arm, said == "one", TUNING_SEED, rate, args.quick)[1:]) for rate in RATES}
            rate = max(tuning, key=lambda rate: tuning[rate])
            found = curves[said, arm] = [learn(arm, said == "one", seed, rate, args.quick) for seed in seeds]
            rows.append({"said": said, "arm": arm, "rate": rate, "curves": found})
            print(said, arm, rate, [round(fmean(point), 3) for point in zip(*found, strict=True)], flush=True)
    figures = {
        "rows": rows,
        "place_over_end_all": lower_bound(curves["all", AT_PLACE], curves["all", AT_END]),
        "place_over_end_one": lower_bound(curves["one", AT_PLACE], curves["one", AT_END]),
        "place_over_spans_one": lower_bound(curves["one", AT_PLACE], curves["one", SPANS_AT_PLACE]),
        "spans_at_place_over_spans_one": lower_bound(curves["one", SPANS_AT_PLACE], curves["one", "spans"]),
    }
    table = [
        [row["said"], row["arm"], *(f"{fmean(point):.2f}" for point in zip(*row["curves"], strict=True))]
        for row in rows
    ]
    show("Share of fields told rightly", ["faults named", "learned from", *map(str, range(0, STEPS + 1, EVERY))], table)
    report("insertion_places", figures, {} if args.quick else BARS, args)


if __name__ == "__main__":
    main()
