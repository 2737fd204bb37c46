"""Are rewards earned? Degenerate answers against honest ones, for programs, summaries and answers to questions.

Scores: the mean score of every kind of the catalogue of `text2grad critic check`, of attempts of the untrained default
model and of references, on real data. Bars: no degenerate kind above the untrained model's average, padded and repeated
attempts not above the same attempts, references first.

Mixed groups: groups of the reference, two attempts and five degenerate answers, and one update step under every
estimator, with the settings of the task presets. Bar: degenerate answers rise less in log-probability than the answers
of their group that earned more. On a GPU the policy is the default model, on a CPU a small random one.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from statistics import fmean
from typing import Any

import torch
from harness import Bar, options, report, show
from mixed_groups import RememberingCritic, compare, make_groups, update_once
from reward_tasks import NUM_ATTEMPTS, TASKS, Task
from small_model import small_model
from torch import Tensor

from text2grad.critics.check.check import CheckResult, check_critic
from text2grad.models.loading import DEFAULT_MODEL
from text2grad.schema import Example
from text2grad.trainer.advantages import ESTIMATORS

NUM_EXAMPLES, NUM_GROUPS = 24, 12


def main() -> None:
    args = options(__doc__ or "")
    tasks = [task for task in TASKS if task.name in ("mbpp", "quickstart", "xquad")] if args.quick else TASKS
    figures: dict[str, Any] = {"scores": {}, "margins": {}, "groups": {}}
    with tempfile.TemporaryDirectory() as folder:
        model = DEFAULT_MODEL if args.device.startswith("cuda") else small_model(Path(folder))
        figures["policy"] = DEFAULT_MODEL if model == DEFAULT_MODEL else "two layers, random"
        for task in tasks:
            examples = task.examples(4 if args.quick else NUM_EXAMPLES, args.device)
            measure_scores(task, examples, figures)
            measure_groups(
                task, examples[: 2 * NUM_ATTEMPTS if args.quick else NUM_GROUPS * NUM_ATTEMPTS], model, figures
            )
    show_scores(figures)
    show_groups(figures)
    bars = {}
    for task, margins in figures["margins"].items():
        for name, value in margins.items():
            figures[f"{task}_{name}"] = value
            bars[f"{task}_{name}"] = Bar(at_least=-1e-6)  # means are rounded
    for estimator, results in figures["groups"].items():
        figures[f"{estimator}_lead"] = min(item["lead_per_token"] for item in results.values())
        figures[f"{estimator}_spearman"] = min(item["spearman"] for item in results.values())
        bars[f"{estimator}_lead"] = Bar(at_least=0.0)
        bars[f"{estimator}_spearman"] = Bar(at_least=0.999)
    report("rewards", figures, bars, args)


def measure_scores(task: Task, examples: list[Example], figures: dict[str, Any]) -> None:
    """Add the mean score per kind, and by how much the closest kind is below honest answers."""
    result = check_critic(task.make_critic(), examples)
    assert result.attempts is not None, task.name
    assert result.references is not None, task.name
    means = {item.kind.name: item.mean for item in result.kinds if item.mean is not None}
    figures["scores"][task.name] = {"references": result.references, "untrained": result.attempts, **means}
    figures["margins"][task.name] = margins(result)


def margins(result: CheckResult) -> dict[str, float]:
    """How far degenerate answers stay below the untrained model's, spoiled below unspoiled ones, and all below the
    references."""
    assert result.attempts is not None
    assert result.references is not None
    means = {item.kind: item.mean for item in result.kinds if item.mean is not None}
    own = [mean for kind, mean in means.items() if not kind.spoils_honest]
    spoiled = [item.limit - item.mean for item in result.kinds if item.kind.spoils_honest and item.mean is not None]
    return {
        "below_untrained": result.attempts - max(own),
        "below_unspoiled": min(spoiled),
        "references_first": result.references - max([result.attempts, *means.values()]),
    }


def measure_groups(task: Task, examples: list[Example], model: str, figures: dict[str, Any]) -> None:
    """Add for every estimator how the log-probabilities of degenerate answers change in mixed groups."""
    groups = make_groups(examples, NUM_ATTEMPTS)
    critic = RememberingCritic(task.make_critic())
    for estimator in ESTIMATORS:
        with tempfile.TemporaryDirectory() as folder:
            step = update_once(model, critic, groups, estimator, task.max_tokens, Path(folder))
        ordered, leads = compare(groups, step, step.per_token)
        ordered_whole, leads_whole = compare(groups, step, step.whole)
        kept = ~step.truncated
        figures["groups"].setdefault(estimator, {})[task.name] = {
            "pairs": len(ordered),
            "ordered_per_token": fmean(ordered),
            "lead_per_token": fmean(leads),
            "ordered_whole": fmean(ordered_whole),
            "lead_whole": fmean(leads_whole),
            "spearman": spearman(step.totals[kept], step.scores[kept]),
        }


def spearman(one: Tensor, other: Tensor) -> float:
    """Rank correlation with mean ranks for ties, to four digits of the values; 1 where both are constant."""
    ranks = torch.stack([_ranks(one), _ranks(other)])
    return float(torch.corrcoef(ranks)[0, 1]) if (ranks.std(1) > 0).all() else 1.0


def _ranks(values: Tensor) -> Tensor:
    rounded = values.double().mul(1e4).round()
    return torch.stack([(rounded < value).sum() + (rounded == value).sum() / 2 for value in rounded]).double()


def show_scores(figures: dict[str, Any]) -> None:
    scores = figures["scores"]
    kinds = list(dict.fromkeys(kind for means in scores.values() for kind in means))
    rows = [[kind, *(f"{means[kind]:.2f}" if kind in means else "" for means in scores.values())] for kind in kinds]
    show("Mean score", ["answers", *scores], rows)


def show_groups(figures: dict[str, Any]) -> None:
    titles = {
        "ordered_per_token": "Mixed groups: pairs in the right order, by the change of log-probability per token",
        "ordered_whole": "Pairs in the right order, by the change of the log-probability of the whole answer",
        "lead_per_token": "How much more better answers rise than degenerate ones, nats per token, times 1000",
    }
    for key, title in titles.items():
        scale, form = (1000, ".2f") if key == "lead_per_token" else (1, ".0%")
        rows = [
            [estimator, *(f"{scale * item[key]:{form}}" for item in results.values())]
            for estimator, results in figures["groups"].items()
        ]
        show(title, ["estimator", *figures["scores"]], rows)


if __name__ == "__main__":
    main()
