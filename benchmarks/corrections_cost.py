"""What corrections cost: seconds of a whole training step with and without them, critics not counted.

The critic blames every fourth word of an answer and says of a third of these spans what it should have been, one or two
words of the prompt. Both arms get the same feedback of the same answers; without corrections their weight is 0. Steps
of the two alternate, and the result is the median. Measured are whole steps: sampling, scoring under the policy and
under the reference, token rewards and the update.

On the CPU the model is a random one of 8 layers, there are 16 answers instead of 128, and seconds are processor time.
"""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any

import torch
from accelerate.state import AcceleratorState
from harness import Bar, options, report, show
from peft import LoraConfig
from transformers import AutoConfig, AutoModelForCausalLM, PreTrainedModel

from text2grad import Text2GradConfig, Text2GradTrainer
from text2grad.data.registry import load_examples
from text2grad.models.loading import DEFAULT_MODEL, load_model, load_tokenizer, resolve
from text2grad.schema import Example, Feedback, Span

ROUNDS, BLAMED, CORRECTED = 7, 4, 3  # every fourth word, every third of these
ARMS = {"without": {"weight": 0.0}, "with": {}}


def clock() -> float:
    """Seconds: of the wall clock with a GPU, else of this process, since other ones may share the cores."""
    return time.perf_counter() if torch.cuda.is_available() else time.process_time()


class ThirdCorrected:
    """Blames every fourth word; every third blame has a replacement. Counts its own seconds."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def critique(self, examples: Sequence[Example]) -> list[Feedback]:
        start = clock()
        feedback = [self.comment(example) for example in examples]
        self.seconds += clock() - start
        return feedback

    def comment(self, example: Example) -> Feedback:
        words = example.prompt_text.split()
        spans = []
        for number, word in enumerate(list(re.finditer(r"\S+", example.completion))[::BLAMED]):
            text = " ".join(words[number % len(words) :][: 1 + number % 2]) if number % CORRECTED == 0 else None
            spans.append(Span(start=word.start(), end=word.end(), label="poor", replacement=text))
        return Feedback(spans=spans, critic="third")


def main() -> None:
    args = options(__doc__ or "")
    on_gpu = args.device.startswith("cuda")
    rounds = 1 if args.quick else ROUNDS
    trainers = {name: make_trainer(settings, on_gpu, args.quick) for name, settings in ARMS.items()}
    seconds: dict[str, list[float]] = {name: [] for name in ARMS}
    metrics: dict[str, Any] = {}
    for step in range(1, rounds + 2):
        for name, trainer in trainers.items():
            took, metrics[name] = time_step(trainer, step)
            if step > 1:  # the first round warms up
                seconds[name].append(took)
    answers, length = metrics["with"]["samples"], metrics["with"]["completions/mean_length"]
    figures: dict[str, Any] = {
        "answers": answers,
        "mean_length": length,
        "corrections": metrics["with"]["corrections/count"],
        "refused": metrics["with"]["corrections/refused"],
        **{f"seconds_{name}": median(of_arm) for name, of_arm in seconds.items()},
    }
    figures["ratio"] = median(a / b for a, b in zip(seconds["with"], seconds["without"], strict=True))
    show(
        f"{answers} answers of {length:.0f} tokens, {figures['corrections']} corrections",
        ["corrections", "seconds per step"],
        [[name, f"{figures[f'seconds_{name}']:.3f}"] for name in ARMS],
    )
    report("corrections_cost" if on_gpu else "corrections_cost_cpu", figures, {"ratio": Bar(at_most=1.15)}, args)


def time_step(trainer: Text2GradTrainer, step: int) -> tuple[float, dict[str, Any]]:
    """Return the seconds of a step without the critic's, and its metrics."""
    critic: Any = trainer.critic
    before, start = critic.seconds, clock()
    metrics, _ = trainer.step(step)
    if trainer.accelerator.device.type == "cuda":
        torch.cuda.synchronize()
    return clock() - start - (critic.seconds - before), metrics


def make_trainer(corrections: dict[str, float], on_gpu: bool, quick: bool) -> Text2GradTrainer:
    AcceleratorState._reset_state(reset_partial_state=True)
    answers = 4 if quick else 128 if on_gpu else 16
    settings: dict[str, Any] = {
        "per_device_train_batch_size": answers,
        "num_generations": 4,
        "max_completion_length": 64 if on_gpu else 32,
        "learning_rate": 1e-6,  # both arms keep sampling the same answers
        "num_logged_completions": 0,
        "bf16": on_gpu,
        "corrections": corrections,
    }
    return Text2GradTrainer(
        load_model(DEFAULT_MODEL) if on_gpu else small_model(),
        ThirdCorrected(),
        Text2GradConfig(output_dir=Path("never written"), **settings),
        list(load_examples("summaries", "train"))[:64],
        processing_class=load_tokenizer(DEFAULT_MODEL),
        peft_config=LoraConfig(r=16, lora_alpha=32, target_modules="all-linear"),
    )


def small_model() -> PreTrainedModel:
    config = AutoConfig.from_pretrained(resolve(DEFAULT_MODEL))
    config.update({"num_hidden_layers": 8, "hidden_size": 256, "intermediate_size": 704})
    config.update({"num_attention_heads": 8, "num_key_value_heads": 4, "head_dim": 32})
    torch.manual_seed(0)
    model: PreTrainedModel = AutoModelForCausalLM.from_config(config).float()
    return model


if __name__ == "__main__":
    main()
