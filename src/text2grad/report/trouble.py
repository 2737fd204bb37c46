"""Signs of failure and of reward hacking in the records of a run, one check each, with the samples that show it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import fmean
from typing import Any

from text2grad.report.metrics_table import TITLES, describe_change
from text2grad.report.read import Run, Sample
from text2grad.trainer.monitor import LENGTH, MAX_LENGTH_RATIO, length_ratio

MAX_SHOWN = 8  # samples, reasons or sentences per check
MAX_FAILED, MAX_CUT, MAX_EMPTY, MAX_REPETITION = 0.05, 0.1, 0.02, 0.2  # shares above which a check warns
UNSEEN = ("rouge", "bleu", "chrf", "exact", "f1", "pass")  # metrics that no critic sees; more is better


@dataclass(frozen=True)
class Check:
    """One kind of trouble: whether there is any, in one sentence, with counted details and samples by their index."""

    title: str
    ok: bool
    sentence: str
    details: list[tuple[str, int]] = field(default_factory=list)
    samples: list[int] = field(default_factory=list)


def find_trouble(run: Run) -> list[Check]:
    """Return all checks that the records allow."""
    checks = [failed_critiques(run), lengths(run), repeated_answers(run), unseen_metrics(run), updates(run)]
    return [check for check in checks if check is not None]


def failed_critiques(run: Run) -> Check | None:
    """Critiques that failed, by reason: of the logged samples, else the last error of each step."""
    total, failed = (_total(run.metrics, name) for name in ("samples", "critic/failed"))
    if not total or run.is_foreign:
        return None
    places = [i for i, s in enumerate(run.samples) if s.feedback is not None and s.feedback.status == "failed"]
    errors = [str(_error(run.samples[i])) for i in places] or [
        str(m["critic/error"]) for m in run.metrics if m.get("critic/error")
    ]
    reasons = Counter(error.partition(":")[0] for error in errors).most_common(MAX_SHOWN)
    share = f"{failed:,} of {total:,} critiques failed ({failed / total:.1%}); their completions taught nothing"
    sentence = f"{share}." if failed else f"None of {total:,} critiques failed."
    return Check("Failed critiques", failed <= MAX_FAILED * total, sentence, reasons, places[:MAX_SHOWN])


def lengths(run: Run) -> Check | None:
    """Empty and truncated completions, and lengths that have drifted away from those of the start."""
    samples = run.samples
    if not samples:
        return None
    empty = [i for i, s in enumerate(samples) if not s.completion.strip()]
    cut = [i for i, s in enumerate(samples) if s.truncated]
    ratio = length_ratio([float(m[LENGTH]) for m in run.metrics if isinstance(m.get(LENGTH), int | float)])
    drifted = not 1 / MAX_LENGTH_RATIO <= ratio <= MAX_LENGTH_RATIO
    late = samples[-max(1, len(samples) // 3) :]
    ok = not drifted and fmean(s.truncated for s in late) <= MAX_CUT and len(empty) <= MAX_EMPTY * len(samples)
    sentence = f"Of {len(samples):,} logged completions {len(empty):,} are empty"
    if not run.is_foreign:  # other trainers do not record it
        sentence += (
            f" and {len(cut):,} cut at the length limit; "
            f"in the last third of the run {fmean(s.truncated for s in late):.0%} are cut"
        )
    sentence += "."
    if drifted:
        sentence += f" Completions became {ratio:.2f} times as long as at the start."
    return Check("Degenerate lengths", ok, sentence, [], [*empty, *reversed(cut)][:MAX_SHOWN])


def repeated_answers(run: Run) -> Check | None:
    """The same answer to different prompts, and answers that go round in circles."""
    samples = run.samples
    if not samples:
        return None
    prompts: dict[str, set[str]] = {}
    first: dict[str, int] = {}
    for i, sample in enumerate(samples):
        text = " ".join(sample.completion.split())
        prompts.setdefault(text, set()).add(str(sample.prompt))
        first.setdefault(text, i)
    repeated = [(text, len(seen)) for text, seen in prompts.items() if len(seen) > 1 and text]
    repeated.sort(key=lambda item: (-item[1], first[item[0]]))
    inside = [m["completions/repetition"] for m in run.metrics if m.get("completions/repetition") is not None]
    late = fmean(inside[-max(1, len(inside) // 3) :]) if inside else None
    same = (
        f"{len(repeated):,} answers were given to several prompts" if repeated else "No answer was given to two prompts"
    )
    circles = (
        ""
        if late is None
        else (f"; in the last third of the run {late:.0%} of the 4-grams of a completion repeat earlier ones")
    )
    sentence = f"{same}{circles}."
    details = [(f"“{text[:120]}” (prompts)", count) for text, count in repeated[:MAX_SHOWN]]
    places = [first[text] for text, _ in repeated[:MAX_SHOWN]]
    return Check("Repeated answers", not repeated and (late or 0.0) <= MAX_REPETITION, sentence, details, places)


def unseen_metrics(run: Run) -> Check | None:
    """The critic's score against metrics that the training never saw, and the warnings of the run."""
    warnings = [str(w) for m in run.metrics for w in m.get("warnings") or () if "the reward has risen" in str(w)]
    metrics = run.evaluation.metrics if run.evaluation else {}
    unseen = {name: metric for name, metric in metrics.items() if name.startswith(UNSEEN)}
    if not unseen and not warnings:
        return None
    rose = "score" in metrics and describe_change(metrics["score"]) == "rose"
    fell = [TITLES.get(name, name) for name, metric in unseen.items() if describe_change(metric) == "fell"]
    if rose and fell:
        sentence = f"The critic’s score rose while {', '.join(fell)} fell: the policy may be gaming the critic."
    elif unseen:
        verb = "rose" if rose else "did not rise"
        sentence = f"The critic’s score {verb}; of {len(unseen)} metrics that it does not see, {len(fell)} fell."
    else:
        sentence = "The run warned of reward hacking."
    details = Counter(warnings).most_common(MAX_SHOWN)
    return Check("Score against unseen metrics", not warnings and not (rose and fell), sentence, details)


def updates(run: Run) -> Check | None:
    """Updates that were skipped or had no gradient."""
    if not any("grad_norm" in m or "skipped" in m for m in run.metrics):
        return None
    skipped = sum(bool(m.get("skipped")) for m in run.metrics)
    idle = sum(m.get("grad_norm") == 0 for m in run.metrics)
    errors = Counter(str(m["update_error"]) for m in run.metrics if m.get("update_error")).most_common(MAX_SHOWN)
    steps = len(run.metrics)
    sentence = f"Of {steps:,} updates {skipped:,} were skipped, and {idle:,} had nothing to learn from."
    return Check("Skipped and idle updates", not skipped and not idle, sentence, errors)


def _error(sample: Sample) -> str | None:
    return sample.feedback.error if sample.feedback is not None else None


def _total(metrics: Sequence[dict[str, Any]], name: str) -> int:
    return sum(int(m.get(name) or 0) for m in metrics)
