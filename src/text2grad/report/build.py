"""The report of a run: `report.html`, one self-contained HTML file."""

from pathlib import Path
from typing import Any

from text2grad.files import replace_text
from text2grad.report.html import embed_json, render_page
from text2grad.report.metrics_table import metric_rows
from text2grad.report.read import MAX_EXAMPLES, MAX_SAMPLES, MAX_STEPS, Run, read_run
from text2grad.report.samples import round_digits, sample_chunks, sample_index
from text2grad.report.story import tell_story
from text2grad.report.subsample import subsample
from text2grad.report.trouble import find_trouble

COMPONENTS = ("tooltip", "curves", "completion", "critique", "chunks", "samples", "examples", "story")
STYLES = ("metrics.css", *(f"{name}.css" for name in COMPONENTS if name != "chunks"))
SCRIPTS = ("dom.js", "theme.js", "live.js", *(f"{name}.js" for name in COMPONENTS), "report.js")
EVAL_SCORE = "eval/score"  # recorded by the steps after which the policy was evaluated


def build_report(run_dir: Path) -> Path:
    """Write `run_dir/report.html` atomically and return its path.

    Raises UserError if the folder is not a run, if a record in it is damaged (an incomplete last line is not),
    or if the page cannot be written.
    """
    path = run_dir / "report.html"
    replace_text(path, encodable(render_report(read_run(run_dir, MAX_SAMPLES))))
    return path


def encodable(page: str) -> str:
    """Return the page without lone surrogates, which cannot be encoded."""
    return page.encode("utf-8", errors="replace").decode("utf-8")


def render_report(run: Run, live: str | None = None) -> str:
    """Render the page of a run. live: the version of the page of a run that is going on, which is served."""
    examples = run.evaluation.examples if run.evaluation else []
    story = tell_story(run)
    picked = [i for _, i in story.examples]
    shown = sorted({*subsample(range(len(examples)), MAX_EXAMPLES), *picked})
    steps = _select_steps(run.metrics)
    return render_page(
        "report.html.j2",
        STYLES,
        SCRIPTS,
        live=live,
        run=run,
        data=embed_json(
            {
                "metrics": _metric_columns(steps),
                "samples": sample_index(run.samples),
                "examples": [examples[i].model_dump(mode="json", exclude_none=True) for i in shown],
                "live": live is not None,
                "picked": [[title, shown.index(i)] for title, i in story.examples],
            }
        ),
        chunks=sample_chunks(run.samples),
        story=story,
        trouble=find_trouble(run),
        summary=_summary(run.metrics),
        metrics=metric_rows(run.evaluation.metrics) if run.evaluation else [],
        num_steps_shown=len(steps),
        num_examples_shown=len(shown),
        num_examples=len(examples),
    )


def _select_steps(metrics: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Subsample all steps and, separately, the evaluated ones, which are few and would be missed."""
    evaluated = [i for i, record in enumerate(metrics) if EVAL_SCORE in record]
    selected = {*subsample(range(len(metrics)), MAX_STEPS), *subsample(evaluated, MAX_STEPS)}
    return [metrics[i] for i in sorted(selected)]


def _metric_columns(records: list[dict[str, Any]]) -> dict[str, list[float | None]]:
    """Return one column per metric, including `step`, with None where a step has no number."""
    numbers = [{name: round_digits(value) for name, value in record.items() if _is_number(value)} for record in records]
    names = dict.fromkeys(name for record in numbers for name in record)
    return {name: [record.get(name) for record in numbers] for name in names}


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _summary(metrics: list[dict[str, Any]]) -> dict[str, str]:
    """Return the totals of the page header; what the run did not record is omitted."""
    if not metrics:
        return {}
    samples, failed, seconds = (_total(metrics, name) for name in ("samples", "critic/failed", "time/step"))
    summary = {"last step": f"{metrics[-1]['step']:,}"}
    if samples is not None:
        summary["completions sampled"] = f"{samples:,.0f}"
    if failed is not None:
        summary["failed critiques"] = f"{failed:,.0f}" + (f" ({failed / samples:.1%})" if failed and samples else "")
    if seconds is not None:
        summary["training time"] = _duration(seconds)
    return summary


def _total(metrics: list[dict[str, Any]], name: str) -> float | None:
    known = [row[name] for row in metrics if _is_number(row.get(name))]
    return sum(known) if known else None


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02} min" if hours else f"{minutes} min {rest:02} s" if minutes else f"{rest} s"
