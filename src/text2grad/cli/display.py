"""Terminal output of training runs and explanations: a progress line, tables, and completions with coloured spans."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.markup import escape
from rich.table import Column, Table
from rich.text import Text

from text2grad.cli.progress import PhaseDisplay
from text2grad.evaluation.answers import LABELS
from text2grad.schema import Example
from text2grad.text.printable import printable
from text2grad.trainer.callbacks import Callback, Metrics

if TYPE_CHECKING:
    from text2grad.explain import Explanation, TokenChange
    from text2grad.trainer.offline import UsableFeedback

GOOD, POOR = "bold blue", "bold dark_orange"  # a pair that is safe for colour blindness


class TerminalDisplay(PhaseDisplay, Callback):
    """A live line with step, reward, KL, tokens per second and remaining time; then the table of held-out metrics."""

    def on_feedback(self, usable: UsableFeedback) -> None:
        """Print how many examples are trained on, and why the others are not."""
        self.console.print(f"Feedback on {len(usable.examples)} of {usable.total} completions is usable.")
        for reason, count in usable.unusable.items():
            self.console.print(f"  [yellow]{count} not[/yellow]: {escape(printable(reason))}", soft_wrap=True)
        if usable.neutral:
            why = "neither praise nor blame, or not surely enough to count"
            self.console.print(
                f"  {usable.neutral} of these {why}: nothing is learned from them alone.", soft_wrap=True
            )

    def on_start(self, step: int, max_steps: int) -> None:
        """Set the length of the bar; a resumed run starts at `step`."""
        self.progress.update(self.task, total=max_steps, completed=step)

    def on_step(self, metrics: Metrics) -> None:
        """Update the line."""
        self.progress.update(self.task, completed=metrics["step"], metrics=_format_step(metrics))

    def on_log(self, metrics: Metrics) -> None:
        """Print the line where there is no terminal to update it in."""
        if not self.console.is_terminal:
            total = self.progress.tasks[0].total
            line = _format_step(metrics)
            self.console.print(f"step {metrics['step']}/{total:.0f}  {line}  {metrics['time/step']:.1f} s")

    def on_evaluate(self, metrics: Metrics) -> None:
        """Print the held-out metrics of an evaluation during training."""
        line = f"held-out score {_format(metrics['eval/score'])}"
        if "eval/rouge_l" in metrics:
            line += f"  ROUGE-L {metrics['eval/rouge_l']:.3f}"
        if metrics["eval/failed"] < metrics["eval/samples"]:
            line += f"  {metrics['eval/words']:.0f} words"
        self.console.print(f"step {metrics['step']}  {line}{_format_failed(metrics['eval/failed'])}")

    def on_finish(self, evaluation: dict[str, Any] | None, report: Path, num_examples: int) -> None:
        """Print the held-out metrics, the first examples, the path of the report, and what to type next."""
        self.progress.update(self.task, visible=False)
        self.progress.stop()
        if evaluation is not None:
            self.console.print(metrics_table(evaluation))
            for example in evaluation["examples"][:num_examples]:
                self.console.print(comparison_table(example))
        run = escape(shlex.quote(str(report.parent)))
        self.console.print(f"Report: {escape(str(report))}", soft_wrap=True)
        self.console.print(f'Ask the model: text2grad generate {run} --prompt "..."', soft_wrap=True)
        if evaluation is None:
            self.console.print(f"Measure it: text2grad evaluate {run} PROMPTS.jsonl", soft_wrap=True)


def metrics_table(evaluation: dict[str, Any]) -> Table:
    """Return the held-out metrics before and after training, with the interval of each difference."""
    columns = [Column(name, justify="right") for name in ("before", "after", "difference", "95% interval")]
    table = Table(
        "", *columns, title=f"Held-out completions, n = {evaluation['n']}; 95% interval from a paired bootstrap"
    )
    for name, metric in evaluation["metrics"].items():
        table.add_row(
            LABELS.get(name, name),
            f"{metric['before']:.3f}",
            f"{metric['after']:.3f}",
            f"{metric['difference']:+.3f}",
            f"[{metric['low']:+.3f}, {metric['high']:+.3f}]".replace("[", r"\["),
        )
    return table


def comparison_table(example: dict[str, Any]) -> Table:
    """Return the completions of one held-out prompt before and after training, with coloured spans and critiques."""
    columns = [Column(side, ratio=1) for side in ("before", "after")]
    table = Table(*columns, title=Text(f"Example {printable(example['id'])}"), expand=True, show_lines=True)
    sides = [
        Example.model_validate({"id": example["id"], "prompt": "", **example[side]}) for side in ("before", "after")
    ]
    table.add_row(*(highlight_spans(side) for side in sides))
    table.add_row(*(Text(printable(side.feedback.critique) if side.feedback else "", style="dim") for side in sides))
    return table


def highlight_spans(example: Example) -> Text:
    """Return the completion with praised words in blue and blamed words in orange."""
    text = Text(printable(example.completion))  # before Rich drops characters, which would shift the spans
    for span in example.feedback.spans if example.feedback else []:
        text.stylize(GOOD if span.label == "good" else POOR, span.start, span.end)
    return text


def reading_table(explanation: Explanation) -> Table:
    """Return one row per span, omission and refused clause: what it is about, how it is read, and how certainly."""
    table = Table("about", "read as", Column("confidence", justify="right"), "because of")
    for span in explanation.spans:
        words = printable(explanation.completion[span.start : span.end])
        label = Text(span.label, style=GOOD if span.label == "good" else POOR)
        table.add_row(Text(words), label, f"{span.confidence:.2f}", Text(printable(span.reason or "")))
    for omission in explanation.omissions:
        missing = Text("missing", style=POOR)
        table.add_row(Text(printable(omission.text)), missing, f"{omission.confidence:.2f}", "")
    for clause, reason in explanation.refused:
        table.add_row("", "no effect", "", Text(printable(f"{clause}: {reason}")))
    return table


def explanation_table(explanation: Explanation) -> Table:
    """Return one row per token: its reward, and its probability before and after the step.

    The tokens of a correction have rows of their own, after the token in whose place they belong.
    """
    columns = [Column(name, justify="right") for name in ("reward", "before", "after", "change of log-probability")]
    table = Table("token", *columns, title=Text(printable(explanation.comment)))
    for index, token in enumerate(explanation.tokens):
        style = "" if not token.reward else GOOD if token.reward > 0 else POOR
        table.add_row(*_token_cells(token, style))
        for correction in explanation.corrections:
            for part in correction.tokens if correction.token == index else []:
                table.add_row(*_token_cells(part, GOOD, prefix="→ "))
    return table


def _token_cells(token: TokenChange, style: str, prefix: str = "") -> list[Text | str]:
    change = token.logprob_after - token.logprob_before
    return [
        Text(prefix + (repr(token.text)[1:-1] if token.text else "⏹ end"), style=style),
        f"{token.reward:+.1f}" if token.reward else "",
        f"{token.probability_before:.4f}",
        f"{token.probability_after:.4f}",
        Text(f"{change:+.4f}", style=style),
    ]


def _format_step(metrics: Metrics) -> str:
    line = f"reward {_format(metrics['reward'])}  KL {_format(metrics['kl'])}"
    return f"{line}  {metrics['tokens_per_second']:.0f} tok/s{_format_failed(metrics['critic/failed'])}"


def _format_failed(num_failed: int) -> str:
    return f"  [yellow]{num_failed} failed critiques[/yellow]" if num_failed else ""


def _format(value: float) -> str:
    return f"{value:+.2f}" if value == value else "–"
