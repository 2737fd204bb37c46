"""A run folder becomes one HTML file: style, script and data inside, nothing loaded, nothing but our script run."""

import base64
import hashlib
import json
from importlib import resources
from pathlib import Path
from typing import Any

from jinja2 import Environment, StrictUndefined
from markupsafe import Markup

from text2grad.files import replace_text
from text2grad.report.figures import figure_rows
from text2grad.report.read import MAX_EXAMPLES, MAX_STEPS, Run, Sample, Token, read_run
from text2grad.report.select import spread
from text2grad.trainer.monitor import HELDOUT

PARTS = ("tooltip", "curves", "answer", "critique", "samples", "examples")
STYLES = ("report.css", "figures.css", *(f"{part}.css" for part in PARTS))
SCRIPTS = ("dom.js", *(f"{part}.js" for part in PARTS), "report.js")


def build_report(run_dir: Path) -> Path:
    """Write `run_dir/report.html` and return its path; an earlier report is replaced whole or left as it was.

    Raises UserError where the folder is no run, where a record in it is damaged (a torn last line is not),
    or where the page cannot be written.
    """
    page = render(read_run(run_dir))
    path = run_dir / "report.html"
    replace_text(path, page.encode("utf-8", errors="replace").decode("utf-8"))  # lone surrogates cannot be written
    return path


def render(run: Run) -> str:
    """The page. Text from the run reaches it through autoescaping or as escaped JSON, never as markup."""
    style, script = ("\n".join(map(_asset, names)) for names in (STYLES, SCRIPTS))
    examples = run.evaluation.examples if run.evaluation else []
    shown = [examples[i] for i in spread(range(len(examples)), MAX_EXAMPLES)]
    steps = _shown_steps(run.metrics)
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    return environment.from_string(_asset("report.html.j2")).render(
        run=run,
        policy=content_security_policy(style, script),
        style=Markup(style),
        script=Markup(script),
        data=embedded_json(
            {
                "metrics": _columns(steps),
                "samples": [_sample(sample) for sample in run.samples.samples],
                "examples": [example.model_dump(mode="json", exclude_none=True) for example in shown],
            }
        ),
        summary=_summary(run.metrics),
        figures=figure_rows(run.evaluation.figures) if run.evaluation else [],
        steps_shown=len(steps),
        examples_shown=len(shown),
        examples_kept=len(examples),
    )


def content_security_policy(style: str, script: str) -> str:
    """Nothing may be loaded or run but this very style and this very script."""
    return (
        f"default-src 'none'; style-src '{_digest(style)}'; script-src '{_digest(script)}'; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )


def embedded_json(value: Any) -> Markup:
    """JSON that no HTML parser can mistake for markup: pure ASCII, with <, > and & as escapes."""
    text = json.dumps(value, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    return Markup(text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026"))


def _digest(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _asset(name: str) -> str:
    return (resources.files("text2grad.report") / "assets" / name).read_text(encoding="utf-8")


def _shown_steps(metrics: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """An even selection of the steps, and one of those that were evaluated: they are few, and it would miss them."""
    evaluated = [i for i, record in enumerate(metrics) if HELDOUT in record]
    return [metrics[i] for i in sorted({*spread(range(len(metrics)), MAX_STEPS), *spread(evaluated, MAX_STEPS)})]


def _columns(records: list[dict[str, Any]]) -> dict[str, list[float | None]]:
    """Metrics by name, `step` among them, with null where a step has no number."""
    names = dict.fromkeys(name for record in records for name, value in record.items() if _is_number(value))
    return {name: [_number(record.get(name)) for record in records] for name in names}


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _number(value: Any) -> float | None:
    return _rounded(value) if _is_number(value) else None


def _rounded(value: float | None) -> float | None:
    """Six significant digits: more than a page can show, and half the bytes. Counts stay whole."""
    return float(f"{value:.6g}") if isinstance(value, float) else value


def _sample(sample: Sample) -> dict[str, Any]:
    shown = sample.model_dump(mode="json", exclude_none=True, exclude={"tokens"})
    return shown | {"tokens": _token_columns(sample.tokens, sample.completion)}


def _token_columns(tokens: list[Token], completion: str) -> dict[str, list[Any]]:
    """Tokens by column; `text` is null where it is what the completion has at these offsets."""
    return {
        "text": [None if token.text == completion[token.start : token.end] else token.text for token in tokens],
        "start": [token.start for token in tokens],
        "end": [token.end for token in tokens],
        "reward": [_rounded(token.reward) for token in tokens],
        "advantage": [_rounded(token.advantage) for token in tokens],
        "before": [_rounded(token.logprob_before) for token in tokens],
        "after": [_rounded(token.logprob_after) for token in tokens],
    }


def _summary(metrics: list[dict[str, Any]]) -> dict[str, str]:
    """The few numbers that stand at the top of the page; what the run did not record is left out."""
    if not metrics:
        return {}
    samples, failed, seconds = (_total(metrics, name) for name in ("samples", "failed", "seconds"))
    summary = {"last step": f"{metrics[-1]['step']:,}"}
    if samples is not None:
        summary["answers sampled"] = f"{samples:,.0f}"
    if failed is not None:
        summary["critiques failed"] = f"{failed:,.0f}" + (f" ({failed / samples:.1%})" if failed and samples else "")
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
