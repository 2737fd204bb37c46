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
    header = "| credit | batch 8: steps to 90% | score | batch 32: steps to 90% | score | cut |"
    rows = [header, "|---|---|---|---|---|---|"]
    for arm in figures["arms"]["8"]:
        cells = [cell for batch in ("8", "32") for cell in _learning(figures["arms"][batch][arm])]
        cut = figures["never_stops"].get(arm)
        rows.append(f"| {arm} | {' | '.join(cells)} | {f'{sum(cut) / len(cut):.0%}' if cut else ''} |")
    return "\n".join(rows)


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
    """Every figure that is one number, with its bar where it has one."""
    rows = ["| figure | measured | wanted |", "|---|---|---|"]
    for name, value in figures.items():
        if isinstance(value, int | float):
            limits = ", ".join(f"{limit.replace('_', ' ')} {bound:g}" for limit, bound in bars.get(name, {}).items())
            shown = f"{value:,}" if isinstance(value, int) else f"{value:.4g}"
            rows.append(f"| {name.replace('_', ' ')} | {shown} | {limits} |")
    return "\n".join(rows)


TABLES: dict[str, Callable[[dict[str, Any]], str]] = {
    "quickstart": quickstart,
    "alignment": alignment,
    "freeform": freeform,
    "copy_fields": copy_fields,
}


def filled(match: re.Match[str]) -> str:
    result = json.loads((RESULTS / f"{match[2]}.json").read_text(encoding="utf-8"))
    machine = result["machine"]
    source = f"`benchmarks/{match[2]}.py` on {machine['cpu']}, {machine['cores']} cores, torch {machine['torch']}"
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
