"""The report of a run: `report.html`, one self-contained HTML file."""

from pathlib import Path
from typing import Any

from text2grad.errors import UserError
from text2grad.report.columns import is_number, metric_columns, select_steps
from text2grad.report.html import check_page, embed_json, render_page, write_page
from text2grad.report.metrics_table import metric_rows
from text2grad.report.read import MAX_EXAMPLES, MAX_SAMPLES, Run, read_run
from text2grad.report.samples import sample_chunks, sample_index
from text2grad.report.story import tell_story
from text2grad.report.subsample import subsample
from text2grad.report.token_exports import has_token_exports, read_token_exports
from text2grad.report.trl_logs import has_logged_completions, read_trl_run
from text2grad.report.trouble import find_trouble

COMPONENTS = ("tooltip", "curves", "completion", "critique", "chunks", "samples", "examples", "story")
STYLES = ("metrics.css", *(f"{name}.css" for name in COMPONENTS if name != "chunks"))
SCRIPTS = ("dom.js", "theme.js", "live.js", *(f"{name}.js" for name in COMPONENTS), "report.js")


def build_report(folder: Path, tokenizer: str | None = None) -> Path:
    """Write `report.html` into the folder of a run atomically and return its path.

    The folder may also be the output of TRL's GRPOTrainer with logged completions, or have prime-rl's token exports;
    tokenizer: the model whose tokenizer reads these. Raises UserError if it is none of them, if a record in it is
    damaged (an incomplete last line is not), or if the page cannot be written.
    """
    run, path = _read(folder, tokenizer), folder / "report.html"
    if run.is_foreign:
        check_page(path)
    write_page(path, render_report(run))
    return path


def _read(folder: Path, tokenizer: str | None) -> Run:
    if has_logged_completions(folder):
        return read_trl_run(folder)
    if has_token_exports(folder):
        if tokenizer is None:
            raise UserError(f"{folder}: token exports hold ids, no text; name their model with --tokenizer")
        from text2grad.models.loading import load_tokenizer

        return read_token_exports(folder, load_tokenizer(tokenizer))
    return read_run(folder, MAX_SAMPLES)


def render_report(run: Run, live: str | None = None) -> str:
    """Render the page of a run. live: the version of the page of a run that is going on, which is served."""
    examples = run.evaluation.examples if run.evaluation else []
    story = tell_story(run)
    picked = [i for _, i in story.examples]
    shown = sorted({*subsample(range(len(examples)), MAX_EXAMPLES), *picked})
    steps = select_steps(run.metrics)
    return render_page(
        "report.html.j2",
        STYLES,
        SCRIPTS,
        live=live,
        run=run,
        data=embed_json(
            {
                "metrics": metric_columns(steps),
                "only_recorded": run.is_foreign,
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
    known = [row[name] for row in metrics if is_number(row.get(name))]
    return sum(known) if known else None


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02} min" if hours else f"{minutes} min {rest:02} s" if minutes else f"{rest} s"
