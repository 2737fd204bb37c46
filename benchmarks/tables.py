"""Put the figures of docs/results into the pages that quote them.

A page marks the place with `<!-- result NAME -->` and `<!-- end -->`; what stands between is written anew.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from typing import Any

from harness import RESULTS, ROOT, Bar

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
MARKED = re.compile(r"(<!-- result (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)


def quickstart(figures: dict[str, Any]) -> str:
    rows = ["| seed | critic's score | ROUGE-L | blamed spans | minutes | GiB |", "|---|---|---|---|---|---|"]
    for seed, run in figures["runs"].items():
        cells = [
            _change(run["figures"][name], digits)
            for name, digits in (("score", 2), ("rouge_l", 3), ("blamed spans", 2))
        ]
        rows.append(f"| {seed} | {' | '.join(cells)} | {run['minutes']:.1f} | {run['gib']:.1f} |")
    return "\n".join(rows)


def alignment(figures: dict[str, Any]) -> str:
    rows = ["| answers | tokens | wrong, ours | wrong, greedy | times faster |", "|---|---|---|---|---|"]
    for name, group in figures["groups"].items():
        rows.append(
            f"| {name} | {group['tokens']:,} | {group['ours_wrong_share']:.2%} | {group['greedy_wrong_share']:.2%} | "
            f"{group['speedup']:.1f} (cold caches {group['speedup_in_turns']:.1f}) |"
        )
    return "\n".join(rows)


def freeform(figures: dict[str, Any]) -> str:
    rows = ["| DeFacto val | precision | recall | F1 [95%] | ms a comment |", "|---|---|---|---|---|"]
    for name in ("mentioned_words", "novel_words", "letters", "attention"):
        low, high = figures[f"{name}_f1_low"], figures[f"{name}_f1_high"]
        rows.append(
            f"| {name.replace('_', ' ')} | {figures[f'{name}_precision']:.3f} | {figures[f'{name}_recall']:.3f} | "
            f"{figures[f'{name}_f1']:.3f} [{low:.3f}, {high:.3f}] | {figures[f'{name}_ms']:.0f} |"
        )
    return "\n".join(rows)


def copy_fields(figures: dict[str, Any]) -> str:
    header = "| credit | batch 8: steps to 90% | score | batch 32: steps to 90% | score | cut | length |"
    rows = [header, "|---|---|---|---|---|---|---|"]
    for arm in figures["arms"]["8"]:
        cells = [cell for batch in ("8", "32") for cell in _learning(figures["arms"][batch][arm])]
        for trap in ("never_stops", "falls_silent"):
            shares = figures[trap].get(arm)
            cells.append(f"{sum(shares) / len(shares):.0%}" if shares else "")
        rows.append(f"| {arm} | {' | '.join(cells)} |")
    return "\n".join(rows)


def reward_model(figures: dict[str, Any]) -> str:
    best = max(figures["guesses"].values())
    mean, half = figures["average_precision_mean"], figures["average_precision_half_width"]
    all_rows = figures["variants"]["twice, critique first"]["average_precision"]
    tables = [
        _table(
            ["DeFacto val, 486 rows", "average precision of blamed words", "times the best guess"],
            [[name, f"{value:.3f}", f"{value / best:.2f}"] for name, value in figures["guesses"].items()]
            + [
                [f"trained on all sets, seed {seed}", f"{value:.3f}", f"{value / best:.2f}"]
                for seed, value in enumerate(figures["average_precision"])
            ]
            + [["mean of the seeds", f"{mean:.3f} ± {half:.3f}", f"{mean / best:.2f}"]],
        ),
        _table(
            ["held out", "answers", "share blamed", "AP", "precision at recall .25", "ECE", "share praised", "AP"],
            [
                [name, str(row["examples"])]
                + [_number(row["poor"][k]) for k in ("share_of_words", "average_precision", "precision_at_recall_25")]
                + [_number(row["poor"]["ece"])]
                + [_number(row["good"][k] or None) for k in ("share_of_words", "average_precision")]
                for name, row in figures["heldout"].items()
            ],
        ),
        _table(
            ["DeFacto alone, one seed", "AP", "head: P", "R", "F1", "written: P", "R", "F1", "critique's ROUGE-L"],
            [
                [name, _number(row["average_precision"])]
                + [_number(row["head"][k]) for k in ("precision", "recall", "f1")]
                + [_number(row["written"][k]) if "written" in row else "" for k in ("precision", "recall", "f1")]
                + [_number(row.get("critique_rouge_l") or None)]
                for name, row in figures["variants"].items()
            ],
        ),
        _table(
            ["DeFacto alone", *figures["rows"], "all rows"],
            [["AP", *map(_number, figures["rows"].values()), _number(all_rows)]],
        ),
        _table(
            ["seed", *(f"step {step}" for step, _ in figures["steps"]["mix-0"])],
            [[name, *(_number(value) for _, value in curve)] for name, curve in figures["steps"].items()],
        ),
    ]
    return "\n\n".join(tables)


def reward_policy(figures: dict[str, Any]) -> str:
    names = {"score": 2, "rouge_l": 3, "words": 1}
    return _table(
        ["held-out answers", "seed", "reward model's score", "ROUGE-L", "words"],
        [
            [f"{name} ({run['n']})", seed, *(_change(run["figures"][key], digits) for key, digits in names.items())]
            for name, runs in figures.items()
            if isinstance(runs, dict)
            for seed, run in runs.items()
        ],
    )


def trl_speed(figures: dict[str, Any]) -> str:
    runs = {name: run for name, run in figures.items() if isinstance(run, dict)}
    ours = runs["ours"]
    parts = ", ".join(f"{k.removeprefix('seconds_').replace('_', ' ')} {v:.2f}" for k, v in ours["parts"].items())
    rows = [
        [name, f"{run['seconds']:.2f}", f"{ours['seconds'] / run['seconds']:.2f}", f"{run['gib']:.2f}"]
        for name, run in runs.items()
    ]
    return _table(["a step", "seconds", "ours over it", "GiB"], rows) + f"\n\nOurs, in seconds: {parts}."


def locality(figures: dict[str, Any]) -> str:
    names = {
        "scalar_lambda_.95": "one number an answer, lambda .95",
        "scalar_lambda_1": "one number an answer, lambda 1",
        "the_paper": "the paper's settings",
        "ours": "ours",
    }
    rows = []
    for key, name in names.items():
        ratio, low, high = (figures[f"{key}_{part}"] for part in ("ratio", "ratio_low", "ratio_high"))
        rows.append([name, f"{ratio:.2f} [{low:.2f}, {high:.2f}]", f"{figures[f'{key}_down_share']:.1%}"])
    return _table(["credit", "inside over outside", "blamed went down"], rows)


def growth(figures: dict[str, Any]) -> str:
    tables = []
    for name, points in figures.items():
        parts = [part for part in points[0] if part not in ("value", "gib")]
        rows = [[f"{p['value']:,}", *(f"{p[k]:.2f}" for k in (*parts, "gib"))] for p in points]
        tables.append(_table([name, *(part.replace("_", " ") for part in parts), "GiB"], rows))
    return "\n\n".join(tables)


def _table(columns: list[str], rows: list[list[str]]) -> str:
    lines = [columns, ["---"] * len(columns), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.3f}"


def _learning(arm: dict[str, Any]) -> tuple[str, str]:
    """Median steps over the seeds, one that never got there counting as endless; last score with its range."""
    steps = sorted(math.inf if s is None else s for s in arm["steps"])[len(arm["steps"]) // 2]
    last = arm["last"]
    mean = sum(last) / len(last)
    return "never" if math.isinf(steps) else f"{steps:g}", f"{mean:.2f} ({min(last):.2f}–{max(last):.2f})"


def _change(figure: dict[str, float], digits: int) -> str:
    low, high = (f"{figure[key]:+.{digits}f}" for key in ("low", "high"))
    return f"{figure['before']:.{digits}f} → {figure['after']:.{digits}f} [{low}, {high}]"


def plain(figures: dict[str, Any], bars: dict[str, Any]) -> str:
    """Every figure that is one number or a range, with its bar where it has one."""
    rows = ["| figure | measured | wanted |", "|---|---|---|"]
    for name, value in figures.items():
        limits = ", ".join(f"{limit.replace('_', ' ')} {bound:g}" for limit, bound in bars.get(name, {}).items())
        match value:
            case int():
                shown = f"{value:,}"
            case float():
                shown = f"{value:.4g}"
            case [float() as low, float() as high]:
                shown = f"{low:.4g} to {high:.4g}"
            case _:
                continue
        rows.append(f"| {name.replace('_', ' ')} | {shown} | {limits} |")
    return "\n".join(rows)


TABLES: dict[str, Callable[[dict[str, Any]], str]] = {
    "quickstart": quickstart,
    "alignment": alignment,
    "freeform": freeform,
    "copy_fields": copy_fields,
    "reward_model": reward_model,
    "reward_policy": reward_policy,
    "trl_speed": trl_speed,
    "trl_speed_cpu": trl_speed,
    "growth": growth,
    "locality": locality,
}


def filled(match: re.Match[str]) -> str:
    result = json.loads((RESULTS / f"{match[2]}.json").read_text(encoding="utf-8"))
    machine = result["machine"]
    script = match[2].removesuffix("_cpu")
    processor = machine.get("gpu", f"{machine['cpu']}, {machine['cores']} cores")
    source = f"`benchmarks/{script}.py` on {processor}, torch {machine['torch']}"
    missed = [name for name, bar in result["bars"].items() if not Bar(**bar).reached(result["figures"][name])]
    shortfall = f" Bars missed: {', '.join(missed)}." if missed else ""
    measured = result["commit"][:12] + (" with local changes" if result["commit"].endswith("-dirty") else "")
    special = TABLES.get(match[2])
    table = special(result["figures"]) if special else plain(result["figures"], result["bars"])
    return f"{match[1]}{table}\n\n{source}; commit {measured}.{shortfall}\n{match[3]}"


if __name__ == "__main__":
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        page.write_text(MARKED.sub(filled, text), encoding="utf-8")
