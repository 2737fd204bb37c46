"""Helpers that tests import by name."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import torch

from text2grad import Text2GradTrainer
from text2grad.schema import Example, Feedback, Span
from text2grad.trainer.callbacks import Callback, Metrics

PROMPTS = [Example(id=str(i), prompt=f"Write the word number {i}.") for i in range(6)]
PASSAGE = (
    "The lighthouse at Skarv was built in 1871 by Ingrid Moe, an engineer from Bergen. It stands 24 metres high on a "
    "granite islet, and its lamp burned paraffin until 1952, when a cable from Hovden brought electricity. Two keepers "
    "and their families lived there through the winters, with a cow and 11 sheep. Since 1984 the light has been "
    "automatic; the keepers' house is now a hostel with 9 beds, which the municipality of Fedje runs from May to "
    "September."
)


class VowelCritic:
    """Blames every vowel and praises every z; fails for the examples at the positions `failing`."""

    def __init__(self, failing: Sequence[int] = ()) -> None:
        self.failing = set(failing)

    def critique(self, examples: Sequence[Example]) -> list[Feedback]:
        return [
            Feedback.failure("vowels", "planted") if i in self.failing else self.comment(example)
            for i, example in enumerate(examples)
        ]

    def comment(self, example: Example) -> Feedback:
        labels = {"z": "good"} | dict.fromkeys("aeiou", "poor")
        spans = [
            Span.model_validate({"start": i, "end": i + 1, "label": labels[c]})
            for i, c in enumerate(example.completion)
            if c in labels
        ]
        return Feedback(critique="Too many vowels.", spans=spans, critic="vowels")


class Broken:
    """Raises whatever it is asked."""

    def critique(self, examples: Sequence[Example]) -> list[Feedback]:
        raise LookupError("no such style")


class OddError(Exception):
    """One that pickle cannot make again: it takes other arguments than it keeps."""

    def __init__(self, code: int, text: str) -> None:
        super().__init__(f"{code}: {text}")


class Odd:
    """Raises an exception that pickle cannot make again."""

    def critique(self, examples: Sequence[Example]) -> list[Feedback]:
        raise OddError(3, "no such style")


def _only_here() -> Unloadable:
    raise OddError(4, "only here")


class Unloadable(VowelCritic):
    """Can be pickled, but not loaded again."""

    def __reduce__(self) -> tuple[Callable[[], Unloadable], tuple[()]]:
        return _only_here, ()


class SlowVowelCritic(VowelCritic):
    """Takes long enough to be killed in the middle of a step."""

    def critique(self, examples: Sequence[Example]) -> list[Feedback]:
        time.sleep(0.4)
        return super().critique(examples)


class Seen(Callback):
    """Records the metrics of every step."""

    def __init__(self) -> None:
        self.steps: list[Metrics] = []

    def on_step(self, metrics: Metrics) -> None:
        self.steps.append(metrics)


class Silent(Callback):
    """A display that shows nothing."""

    def on_phase(self, name: str) -> None:
        pass

    def on_progress(self, done: int, total: int) -> None:
        pass

    def on_finish(self, evaluation: Metrics | None, report: Path, num_examples: int) -> None:
        pass


def weights(trainer: Text2GradTrainer) -> dict[str, torch.Tensor]:
    """Return a copy of the trainable weights."""
    return {name: p.detach().clone() for name, p in trainer.policy.trainable().items()}


def restore_sigint() -> None:
    """For `preexec_fn`: child processes inherit that a shell ignores SIGINT for background jobs."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


MakeTrainer = Callable[..., Text2GradTrainer]
