"""The report of a run: `report.html`, one self-contained HTML file."""

from pathlib import Path
from typing import Any

from text2grad.errors import UserError
from text2grad.report.columns import is_number, metric_columns, select_steps, shorten
from text2grad.report.html import check_page, embed_json, render_page, write_page
from text2grad.report.metrics_table import metric_rows
from text2grad.report.read import MAX_EXAMPLES, Run, Sample, Token, read_run
from text2grad.report.subsample import subsample
from text2grad.report.token_exports import has_token_exports, read_token_exports
from text2grad.report.trl_logs import has_logged_completions, read_trl_run

COMPONENTS = ("tooltip", "curves", "completion", "critique", "samples", "examples")
STYLES = ("metrics.css", *(f"{name}.css" for name in COMPONENTS))
SCRIPTS = ("dom.js", "theme.js", *(f"{name}.js" for name in COMPONENTS), "report.js")
TOKEN_NUMBERS = ("start", "end", "reward", "advantage", "logprob_before", "logprob_after")


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
    return read_run(folder)


def render_report(run: Run) -> str:
    """Render the page of a run."""
    examples = run.evaluation.examples if run.evaluation else []
    shown = [examples[i] for i in subsample(range(len(examples)), MAX_EXAMPLES)]
    steps = select_steps(run.metrics)
    return render_page(
        "report.html.j2",
        STYLES,
        SCRIPTS,
        run=run,
        data=embed_json(
            {
                "metrics": metric_columns(steps),
                "only_recorded": run.is_foreign,
                "samples": [_sample(sample) for sample in run.samples],
                "examples": [example.model_dump(mode="json", exclude_none=True) for example in shown],
            }
        ),
        summary=_summary(run.metrics),
        metrics=metric_rows(run.evaluation.metrics) if run.evaluation else [],
        num_steps_shown=len(steps),
        num_examples_shown=len(shown),
        num_examples=len(examples),
    )


def _sample(sample: Sample) -> dict[str, Any]:
    record = sample.model_dump(mode="json", exclude_none=True, exclude={"tokens"})
    return record | {"tokens": _token_columns(sample.tokens, sample.completion)}


def _token_columns(tokens: list[Token], completion: str) -> dict[str, list[Any]]:
    """Return one list per token attribute; `text` is None where it equals the completion at the token's offsets."""
    texts = [None if token.text == completion[token.start : token.end] else token.text for token in tokens]
    numbers = {name: [shorten(getattr(token, name)) for token in tokens] for name in TOKEN_NUMBERS}
    return {"text": texts} | {name.removeprefix("logprob_"): column for name, column in numbers.items()}


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
