"""Shared rows against one row per completion: seconds, tokens and memory of a step, with the same results.

Random completions of 20 to 40 tokens, four per prompt of 200 to 300, go through everything that follows sampling in a
step: scoring under the policy and under the reference, then two passes of one optimiser step each. The two layouts
alternate; the result is the median. Their log-probabilities are compared in float32, before and after the update.

On the CPU the model is a random one of 8 layers, whose output layer has the same share of the work as the default
model's, and there are 32 completions instead of 192.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

import torch
from accelerate.state import AcceleratorState
from harness import Bar, options, report, show
from torch import Tensor
from transformers import AutoConfig, AutoModelForCausalLM, PreTrainedModel

from text2grad import Text2GradConfig, Text2GradTrainer
from text2grad.distributed.learner import Learner
from text2grad.models.loading import DEFAULT_MODEL, load_model, load_tokenizer, resolve
from text2grad.models.policy import Scores
from text2grad.schema import Example, Feedback
from text2grad.trainer.advantages import normalize
from text2grad.trainer.batch import Batch, Rollout
from text2grad.trainer.update import update

GENERATIONS, PASSES, ROUNDS = 4, 2, 5
VOCABULARY = 8192  # of the random model; the default one's is larger
LAYOUTS = {"shared": True, "apart": False}


def main() -> None:
    args = options(__doc__ or "")
    on_gpu = args.device.startswith("cuda")
    if args.quick:
        answers, rounds = 8, 1
    else:
        answers, rounds = (192 if on_gpu else 32), ROUNDS
    rollout = random_rollout(answers)
    with tempfile.TemporaryDirectory() as folder:
        figures: dict[str, Any] = {"answers": answers, **compare_layouts(rollout, folder, on_gpu)}
        trainers = {name: trainer(folder, share, on_gpu, bf16=on_gpu) for name, share in LAYOUTS.items()}
        seconds: dict[str, list[float]] = {name: [] for name in LAYOUTS}
        gib = dict.fromkeys(LAYOUTS, 0.0)
        for number in range(rounds + 1):
            for name, one in trainers.items():
                took, peak = time_step(one, rollout)
                gib[name] = max(gib[name], peak)
                if number:  # the first round warms up
                    seconds[name].append(took)
    tokens = {name: padded_tokens(rollout, one) for name, one in trainers.items()}
    show(
        f"{answers} completions, {GENERATIONS} per prompt",
        ["layout", "seconds", "padded tokens", "GiB"],
        [[name, f"{median(seconds[name]):.3f}", f"{tokens[name]}", f"{gib[name]:.2f}"] for name in LAYOUTS],
    )
    for name in LAYOUTS:
        figures |= {f"seconds_{name}": median(seconds[name]), f"tokens_{name}": tokens[name], f"gib_{name}": gib[name]}
    figures["share_of_tokens"] = tokens["shared"] / tokens["apart"]
    figures["share_of_seconds"] = figures["seconds_shared"] / figures["seconds_apart"]
    bars = {
        "share_of_seconds": Bar(at_most=0.6),
        "largest_difference": Bar(at_most=1e-4),
        "largest_difference_after_update": Bar(at_most=1e-3),
    }
    report("packing" if on_gpu else "packing_cpu", figures, bars, args)


def compare_layouts(rollout: Rollout, folder: str, on_gpu: bool) -> dict[str, float]:
    """Return the largest difference of a log-probability between the layouts, before and after an update."""
    before, after = [], []
    for share in LAYOUTS.values():
        one = trainer(folder, share, on_gpu, bf16=False)
        before.append(one.score(rollout).logprobs)
        step(one, rollout)
        after.append(one.score(rollout).logprobs)
    return {
        "largest_difference": _largest(before[0] - before[1]),
        "largest_difference_after_update": _largest(after[0] - after[1]),
        "largest_change_of_the_update": _largest(after[0] - before[0]),
    }


def time_step(one: Text2GradTrainer, rollout: Rollout) -> tuple[float, float]:
    """Return the seconds of everything after sampling, and the peak GPU memory in GiB."""
    if one.accelerator.device.type == "cuda":
        torch.cuda.reset_peak_memory_stats()
    start = time.perf_counter()
    step(one, rollout)
    if one.accelerator.device.type == "cuda":
        torch.cuda.synchronize()
        return time.perf_counter() - start, torch.cuda.max_memory_allocated() / 2**30
    return time.perf_counter() - start, 0.0


def step(one: Text2GradTrainer, rollout: Rollout) -> None:
    now, reference = one.score(rollout), one.score(rollout, reference=True)
    outcome = update(
        Learner(one.policy, one.optimizer, one.accelerator), rollout, batch(rollout, now, reference), one.args
    )
    assert outcome.error is None, outcome.error


def batch(rollout: Rollout, now: Scores, reference: Scores) -> Batch:
    noise = torch.randn(rollout.mask.shape, generator=torch.Generator().manual_seed(1))
    return Batch(
        mask=rollout.mask,
        old_logprobs=now.logprobs,
        reference_logprobs=reference.logprobs,
        old_values=now.values,
        advantages=normalize(noise, rollout.mask, "whiten"),
        returns=noise * rollout.mask,
        explained_variance=0.0,
    )


def padded_tokens(rollout: Rollout, one: Text2GradTrainer) -> int:
    """Return the tokens of one pass over all completions, padding included."""
    samples = range(len(rollout.completions))
    batches = one.learner.micro_batches(rollout.prompts, rollout.completions, samples, one.args.tokens_per_batch)
    return sum(rows.ids.numel() for _, rows in batches)


def random_rollout(count: int) -> Rollout:
    generator = torch.Generator().manual_seed(0)

    def ids(least: int, most: int) -> list[int]:
        length = int(torch.randint(least, most + 1, (), generator=generator))
        return torch.randint(3, VOCABULARY, (length,), generator=generator).tolist()

    prompts = [ids(200, 300) for _ in range(count // GENERATIONS)]
    return Rollout(
        prompts=[prompt for prompt in prompts for _ in range(GENERATIONS)],
        completions=[ids(20, 40) for _ in range(count)],
        ended=[True] * count,
        offsets=[[]] * count,
        examples=[Example(id=str(i), prompt="") for i in range(count)],
    )


def trainer(folder: str, share_prompts: bool, on_gpu: bool, bf16: bool) -> Text2GradTrainer:
    AcceleratorState._reset_state(reset_partial_state=True)  # it keeps the precision of the first trainer
    return Text2GradTrainer(
        model=load_model(DEFAULT_MODEL) if on_gpu else small_model(),
        critic=Silent(),
        args=Text2GradConfig(
            output_dir=Path(folder),
            per_device_train_batch_size=GENERATIONS,
            num_generations=GENERATIONS,
            num_iterations=PASSES,
            learning_rate=1e-5,
            share_prompts=share_prompts,
            bf16=bf16,
        ),
        train_dataset=[Example(id="0", prompt="unused")],
        processing_class=load_tokenizer(DEFAULT_MODEL),
    )


def small_model() -> PreTrainedModel:
    config = AutoConfig.from_pretrained(resolve(DEFAULT_MODEL))
    config.update({"num_hidden_layers": 8, "hidden_size": 256, "intermediate_size": 704, "vocab_size": VOCABULARY})
    config.update({"num_attention_heads": 8, "num_key_value_heads": 4, "head_dim": 32})
    torch.manual_seed(0)
    model: PreTrainedModel = AutoModelForCausalLM.from_config(config).float()
    return model


class Silent:
    """A critic without comments."""

    def critique(self, examples: list[Example]) -> list[Feedback]:
        return [Feedback(critic="silent") for _ in examples]


def _largest(difference: Tensor) -> float:
    return float(difference.abs().max())


if __name__ == "__main__":
    main()
