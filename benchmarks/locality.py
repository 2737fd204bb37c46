"""Locality of the update: do blamed words become less probable while the others stay unchanged?

200 real (prompt, completion, blamed spans) triples: DeFacto summaries (words that the human correction replaced or
deleted) and ILF programs (code that the human fix replaced or deleted). For each triple separately: token rewards,
advantages, the gradient of the policy loss, and one step of gradient descent on all weights, of the same length for
every setting (STEP_SIZE times the norm of the weights). Reported are the mean absolute change of log-probability inside
the blamed spans over that outside (median over the triples), and how often the blamed spans as a whole became less
probable. Compared are the same total as one reward at the end (lambda .95 and 1), the paper's settings, and the default
estimator.
"""

from __future__ import annotations

from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import islice
from multiprocessing import get_context
from pathlib import Path
from statistics import median

import numpy as np
import torch
from harness import Bar, data_folder, options, report, show
from torch import Tensor

from text2grad.align.tokens import offsets, overlapping
from text2grad.data import defacto, ilf_code
from text2grad.data.debugbench import changed_code
from text2grad.models.batching import TokenBatch, pad_right
from text2grad.models.loading import DEFAULT_MODEL, load_model, load_tokenizer
from text2grad.models.policy import Policy
from text2grad.models.prompts import encode_prompt
from text2grad.rewards.credit import Credit, token_rewards
from text2grad.schema import Example, Feedback, Span
from text2grad.trainer.advantages import normalize, span_advantages
from text2grad.trainer.config import PolicySettings

TRIPLES_PER_SET = 100
STEP_SIZE = 1e-4  # relative to the norm of the weights
SUMMARISE = "{article}\n\nSummarise the text above in one sentence."


@dataclass(frozen=True)
class Setting:
    """Credit mode and non-default policy settings."""

    mode: str
    policy: dict[str, object]


SETTINGS = {
    "scalar, lambda .95": Setting("sequence", {"estimator": "gae", "gamma": 1.0, "lam": 0.95}),
    "scalar, lambda 1": Setting("sequence", {"estimator": "gae", "gamma": 1.0, "lam": 1.0}),
    "the paper's": Setting("uniform", {"estimator": "gae", "gamma": 1.0, "lam": 0.95}),
    "ours": Setting("normalized", {"estimator": "local", "gamma": 0.7, "lam": 0.3}),
}


def main() -> None:
    args = options(__doc__ or "")
    triples = [*summaries(data_folder()), *programs(data_folder())]
    if args.quick:
        triples = [triples[0], triples[-1]]
    rows, figures = [], {"triples": len(triples)}
    ratios: dict[str, list[float]] = {}
    with ProcessPoolExecutor(len(SETTINGS) if args.device != "cpu" else 1, get_context("spawn")) as pool:
        measured = list(pool.map(partial(measure_setting, triples, args.device), SETTINGS.values()))
    for name, changes in zip(SETTINGS, measured, strict=True):
        ratios[name] = [inside / outside for inside, outside, _ in changes]
        down = sum(mean < 0 for *_, mean in changes) / len(changes)
        low, high = interval_of_median(ratios[name])
        key = name.replace(",", "").replace("'s", "").replace(" ", "_")
        figures |= {
            f"{key}_ratio": median(ratios[name]),
            f"{key}_ratio_low": low,
            f"{key}_ratio_high": high,
            f"{key}_down_share": down,
        }
        rows.append([name, f"{median(ratios[name]):.2f}", f"[{low:.2f}, {high:.2f}]", f"{down:.1%}"])
    show("Change inside / outside the blamed spans", ["", "median", "95%", "blamed less likely"], rows)
    scalar = max(median(ratios[name]) for name in SETTINGS if name.startswith("scalar"))
    figures["ours_over_scalar"] = median(ratios["ours"]) / scalar
    bars = {"ours_down_share": Bar(at_least=0.95), "ours_over_scalar": Bar(at_least=3.0)}
    report("locality", figures, bars, args)


def measure_setting(triples: list[Example], device: str, setting: Setting) -> list[tuple[float, float, float]]:
    """Return the changes of all triples under one setting; runs in a process of its own."""
    tokenizer = load_tokenizer(DEFAULT_MODEL)
    policy = Policy(load_model(DEFAULT_MODEL), keep_reference=False).to(device)
    return [measure_changes(policy, tokenizer, example, setting) for example in triples]


def measure_changes(
    policy: Policy, tokenizer: object, example: Example, setting: Setting
) -> tuple[float, float, float]:
    """Return the mean |change| of log-probability inside and outside the blamed spans, and the mean change inside."""
    prompt = encode_prompt(example, tokenizer)  # type: ignore[arg-type]
    ids = [*tokenizer(example.completion, add_special_tokens=False)["input_ids"], tokenizer.eos_token_id]  # type: ignore
    ranges = offsets(ids, tokenizer)  # type: ignore[arg-type]
    assert example.feedback is not None
    credit = Credit(mode=setting.mode, total="spans")  # type: ignore[arg-type]
    rewards = token_rewards(example.feedback, ranges, credit=credit).rewards
    args = PolicySettings(**setting.policy)  # type: ignore[arg-type]
    mask = torch.ones(1, len(ids))
    estimated = span_advantages(
        torch.from_numpy(rewards)[None], mask, args.estimator, mask * 0, 1, args.gamma, args.lam
    )
    advantages = normalize(estimated.advantages, mask, "scale")
    padded = pad_right([prompt], [ids], next(policy.parameters()).device)
    before, after = take_gradient_step(policy, padded, advantages)
    blamed = sorted({i for s in example.feedback.spans for i in overlapping(s.start, s.end, ranges)})
    outside = [i for i in range(len(ids)) if i not in set(blamed)]
    change = (after - before)[0].double().cpu()
    return float(change[blamed].abs().mean()), float(change[outside].abs().mean()), float(change[blamed].mean())


def take_gradient_step(policy: Policy, padded: TokenBatch, advantages: Tensor) -> tuple[Tensor, Tensor]:
    """Return log-probabilities before and after one step of gradient descent; restores the weights."""
    policy.zero_grad()
    before = policy(padded, 1.0).logprobs
    (-(before * advantages.to(before.device)).sum()).backward()
    weights = [p for name, p in policy.trainable().items() if not name.startswith("value_head") and p.grad is not None]
    length = torch.linalg.vector_norm(torch.stack([p.grad.norm() for p in weights if p.grad is not None]))
    norm = torch.linalg.vector_norm(torch.stack([p.detach().norm() for p in weights]))
    scale = float(STEP_SIZE * norm / length)
    with torch.no_grad():
        _add_gradients(weights, -scale)
        after = policy(padded, 1.0).logprobs
        _add_gradients(weights, scale)
    return before.detach(), after


def _add_gradients(weights: list[torch.nn.Parameter], scale: float) -> None:
    for weight in weights:
        weight.add_(weight.grad, alpha=scale)  # type: ignore[arg-type]


def interval_of_median(values: list[float]) -> tuple[float, float]:
    """Return the 95% bootstrap interval of the median over the triples."""
    picks = np.random.default_rng(0).integers(len(values), size=(10_000, len(values)))
    low, high = np.percentile(np.median(np.asarray(values)[picks], axis=1), [2.5, 97.5])
    return float(low), float(high)


def summaries(data: Path) -> list[Example]:
    """Return validation rows of DeFacto in which a part of the summary is blamed."""
    rows = defacto.read(data / "defacto" / "val.jsonl.gz")
    usable = (example for example in rows if example.feedback and _partly_blamed(example.feedback, example.completion))
    return [
        example.model_copy(update={"prompt": SUMMARISE.format(article=example.prompt_text)})
        for example in islice(usable, TRIPLES_PER_SET)
    ]


def programs(data: Path) -> list[Example]:
    """Return failing programs of ILF whose fix replaced or deleted a part of them."""
    found = []
    for example in ilf_code.read(data / "ilf_code" / "surge_annotations.jsonl.gz"):
        ranges, _ = changed_code(example.completion, str(example.reference))
        feedback = Feedback(critic="human", spans=[Span(start=a, end=b, label="poor") for a, b in ranges])
        if _partly_blamed(feedback, example.completion):
            found.append(example.model_copy(update={"feedback": feedback}))
    return found[:TRIPLES_PER_SET]


def _partly_blamed(feedback: Feedback, completion: str) -> bool:
    blamed = sum(span.end - span.start for span in feedback.spans)
    return 0 < blamed < 0.7 * len(completion)


if __name__ == "__main__":
    main()
