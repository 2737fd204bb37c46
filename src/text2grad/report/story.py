"""The story of a run in plain words: what was criticised, what got better and worse, and examples picked by rule."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from statistics import fmean

from text2grad.evaluation.metrics import critic_score
from text2grad.evaluation.significance import paired_bootstrap
from text2grad.report.metrics_table import TITLES, describe_change
from text2grad.report.read import Comparison, Run, Sample
from text2grad.schema import Feedback

MISSING = "something is missing"
NO_REASON = "no reason given"
MAX_REASONS = 6
RESAMPLES, SEED = 2_000, 0
MIN_STANDARD_ERRORS = 2.0


@dataclass(frozen=True)
class ReasonRow:
    """How often something is criticised, before and after, in words of the table."""

    reason: str
    before: str
    after: str
    change: str


@dataclass(frozen=True)
class Story:
    """Sentences; the most frequent criticisms in training and on held-out prompts; examples as (title, index)."""

    sentences: list[str] = field(default_factory=list)
    training: list[ReasonRow] = field(default_factory=list)
    heldout: list[ReasonRow] = field(default_factory=list)
    examples: list[tuple[str, int]] = field(default_factory=list)


def tell_story(run: Run) -> Story:
    """Return the story of a run, as far as its records tell one."""
    comparisons = run.evaluation.examples if run.evaluation else []
    judged = [
        i for i, example in enumerate(comparisons) if _ok(example.before.feedback) and _ok(example.after.feedback)
    ]
    training, heldout = training_rows(run.samples), heldout_rows([comparisons[i] for i in judged])
    sentences = [*_volume(run), *_most_criticised(run.samples), *_trend("In training", training)]
    sentences += [*_metrics(run), *_trend("On held-out prompts", heldout), *_counts(comparisons, judged)]
    return Story(sentences, training, heldout, pick_examples(comparisons, judged))


def reasons_of(feedback: Feedback) -> Counter[str]:
    """Count what a critique criticises, by its reasons; omissions have one of their own."""
    found = Counter(span.reason or NO_REASON for span in feedback.spans if span.label == "poor")
    return found + Counter({MISSING: len(feedback.omissions)})


def training_rows(samples: Sequence[Sample]) -> list[ReasonRow]:
    """Return the shares of logged completions with each criticism, in the first and the last third of the steps."""
    criticised = [(s.step, reasons_of(s.feedback)) for s in samples if s.feedback is not None and _ok(s.feedback)]
    steps = sorted({step for step, _ in criticised})
    if len(steps) < 3:
        return []
    third = len(steps) // 3
    early, late = set(steps[:third]), set(steps[-third:])
    sides = [[found for step, found in criticised if step in part] for part in (early, late)]
    rows = []
    for reason in _frequent(found for _, found in criticised):
        first, last = (fmean(reason in found for found in side) for side in sides)
        error = math.sqrt(sum(p * (1 - p) / len(side) for p, side in zip((first, last), sides, strict=True)))
        change = _direction(last - first, MIN_STANDARD_ERRORS * error)
        rows.append(ReasonRow(reason, f"{first:.0%}", f"{last:.0%}", change))
    return rows


def heldout_rows(comparisons: Sequence[Comparison]) -> list[ReasonRow]:
    """Return the criticisms per held-out completion before and after, judged by the paired 95% interval."""
    sides = [[reasons_of(_feedback(c, after)) for c in comparisons] for after in (False, True)]
    rows = []
    for reason in _frequent(found for side in sides for found in side):
        before, after = ([found[reason] for found in side] for side in sides)
        interval = paired_bootstrap(before, after, RESAMPLES, SEED)
        change = "rarer" if interval.high < 0 else "more frequent" if interval.low > 0 else "no clear change"
        rows.append(ReasonRow(reason, f"{fmean(before):.2f}", f"{fmean(after):.2f}", change))
    return rows


def pick_examples(comparisons: Sequence[Comparison], judged: Sequence[int]) -> list[tuple[str, int]]:
    """Return the held-out prompts with the largest rise, the median change and the largest fall of the score."""
    if not judged:
        return []
    ranked = sorted(judged, key=lambda i: (-_gain(comparisons[i]), i))
    titles = {"The largest rise": ranked[0], "The median": ranked[len(ranked) // 2], "The largest fall": ranked[-1]}
    kept: dict[int, str] = {}
    for title, i in titles.items():
        is_fall = title == "The largest fall"
        if i not in kept and (not is_fall or _gain(comparisons[i]) < 0):
            kept[i] = f"{title} of the critic’s score" if title != "The median" else "The median change of the score"
    return [(f"{title}: {_signed(_gain(comparisons[i]))}", i) for i, title in kept.items()]


def _volume(run: Run) -> list[str]:
    if not run.metrics:
        return []
    if run.is_foreign:  # whose records do not say who rewarded the completions, nor that these are all
        return [f"Another trainer has logged {_count(run.num_samples_recorded, 'completion')} of this run."]
    total, failed = (sum(int(m.get(name) or 0) for m in run.metrics) for name in ("samples", "critic/failed"))
    if not total:
        return [f"The model was trained for {_count(len(run.metrics), 'step')}."]
    commented = f"the critic commented on {'all of them' if not failed else f'{total - failed:,} of them'}"
    return [f"In {_count(len(run.metrics), 'step')} the model learned from {_count(total, 'completion')}; {commented}."]


def _most_criticised(samples: Sequence[Sample]) -> list[str]:
    found = [reasons_of(s.feedback) for s in samples if s.feedback is not None and _ok(s.feedback)]
    top = _frequent(found)[:3]
    if not top:
        return []
    shares = [f"“{reason}” ({fmean(reason in one for one in found):.0%})" for reason in top]
    return [f"What was criticised most, and in how many of the logged completions: {', '.join(shares)}."]


def _trend(where: str, rows: Sequence[ReasonRow]) -> list[str]:
    sentences = []
    for change in ("rarer", "more frequent"):
        named = [f"“{row.reason}” ({row.before} → {row.after})" for row in rows if row.change == change]
        if named:
            sentences.append(f"{where}, {', '.join(named)} became {change}.")
    return sentences


def _metrics(run: Run) -> list[str]:
    if run.evaluation is None:
        return []
    changed = []
    for name, metric in run.evaluation.metrics.items():
        if (change := describe_change(metric)) in ("rose", "fell"):
            title = TITLES.get(name, name.replace("_", " "))
            changed.append(f"{title} {change} from {_number(metric.before)} to {_number(metric.after)}")
    if not changed:
        return [f"On {_count(run.evaluation.n, 'held-out prompt')} no metric changed significantly."]
    return [f"On {_count(run.evaluation.n, 'held-out prompt')}: {'; '.join(changed)}."]


def _counts(comparisons: Sequence[Comparison], judged: Sequence[int]) -> list[str]:
    gains = [_gain(comparisons[i]) for i in judged]
    if not gains:
        return []
    up, down = sum(gain > 0 for gain in gains), sum(gain < 0 for gain in gains)
    same = len(gains) - up - down
    return [f"Held-out answers, by the critic’s score: {up} better than before, {down} worse, {same} the same."]


def _frequent(found: Iterable[Counter[str]]) -> list[str]:
    """Return the reasons that occur at least twice, most frequent first."""
    total = sum(found, Counter[str]())
    return [reason for reason, count in total.most_common(MAX_REASONS) if count > 1]


def _direction(change: float, margin: float) -> str:
    if abs(change) <= margin:
        return "no clear change"
    return "rarer" if change < 0 else "more frequent"


def _ok(feedback: Feedback | None) -> bool:
    return feedback is not None and feedback.status == "ok"


def _feedback(comparison: Comparison, after: bool) -> Feedback:
    feedback = (comparison.after if after else comparison.before).feedback
    assert feedback is not None
    return feedback


def _gain(comparison: Comparison) -> float:
    return critic_score(_feedback(comparison, after=True)) - critic_score(_feedback(comparison, after=False))


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.3g}".replace("-", "−")


def _signed(value: float) -> str:
    return f"{value:+.2f}".replace("-", "−")
