"""What a person sees in the terminal: progress while it runs, figures and coloured words at the end."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from text2grad.cli.progress import progress_bar
from text2grad.explain import Explanation
from text2grad.schema import Example
from text2grad.trainer.callbacks import Callback, Metrics
from text2grad.trainer.monitor import HELDOUT

GOOD, POOR = "bold blue", "bold dark_orange"  # told apart by the colour-blind too
LABELS = {"score": "critic's score", "rouge_l": "ROUGE-L"}


class TerminalDisplay(Callback):
    """A live line with step, reward, KL, tokens a second and time left; then the table of held-out figures."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self.progress = progress_bar(console)
        self.task = self.progress.add_task("", total=None, figures="")

    def __enter__(self) -> TerminalDisplay:
        self.progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.progress.stop()

    def phase(self, name: str) -> None:
        self.progress.reset(self.task, total=None, description=name, figures="")

    def on_start(self, step: int, max_steps: int) -> None:
        # A resumed run has done its first steps elsewhere; time left is reckoned from here.
        self.progress.update(self.task, total=max_steps, completed=step)

    def on_step(self, metrics: Metrics) -> None:
        figures = f"reward {_number(metrics['reward'])}  KL {_number(metrics['kl'])}"
        figures += f"  {metrics['tokens_per_second']:.0f} tok/s{_failed(metrics['failed'])}"
        self.progress.update(self.task, completed=metrics["step"], figures=figures)
        if not self.console.is_terminal:
            total = self.progress.tasks[0].total
            self.console.print(f"step {metrics['step']}/{total:.0f}  {figures}  {metrics['seconds']:.1f} s")

    def on_evaluate(self, figures: Metrics) -> None:
        shown = f"held-out score {_number(figures[HELDOUT])}"
        if "heldout_rouge_l" in figures:
            shown += f"  ROUGE-L {figures['heldout_rouge_l']:.3f}"
        if figures["heldout_failed"] < figures["heldout_samples"]:
            shown += f"  {figures['heldout_words']:.0f} words"
        self.console.print(f"step {figures['step']}  {shown}{_failed(figures['heldout_failed'])}")

    def finished(self, evaluation: dict[str, Any] | None, report: Path, examples: int) -> None:
        self.progress.update(self.task, visible=False)
        self.progress.stop()
        if evaluation is not None:
            self.console.print(figures_table(evaluation))
            for example in evaluation["examples"][:examples]:
                self.console.print(side_by_side(example))
        self.console.print(f"Report: {escape(str(report))}", soft_wrap=True)


def figures_table(evaluation: dict[str, Any]) -> Table:
    """Held-out figures before and after, with the paired bootstrap interval of each difference."""
    table = Table(title=f"Held-out answers, n = {evaluation['n']}; 95% interval from a paired bootstrap")
    for column in ("", "before", "after", "difference", "95% interval"):
        table.add_column(column, justify="left" if not column else "right")
    for name, figure in evaluation["metrics"].items():
        table.add_row(
            LABELS.get(name, name),
            f"{figure['before']:.3f}",
            f"{figure['after']:.3f}",
            f"{figure['difference']:+.3f}",
            f"[{figure['low']:+.3f}, {figure['high']:+.3f}]".replace("[", r"\["),
        )
    return table


def side_by_side(example: dict[str, Any]) -> Table:
    """One held-out example before and after training, with the criticised words coloured."""
    table = Table(title=f"Example {example['id']}", expand=True, show_lines=True)
    table.add_column("before", ratio=1)
    table.add_column("after", ratio=1)
    answers = [
        Example.model_validate({"id": example["id"], "prompt": "", **example[when]}) for when in ("before", "after")
    ]
    table.add_row(*(coloured(answer) for answer in answers))
    table.add_row(*(Text(answer.feedback.critique if answer.feedback else "", style="dim") for answer in answers))
    return table


def coloured(example: Example) -> Text:
    """The completion with praised words blue and blamed words orange."""
    text = Text(example.completion)
    for span in example.feedback.spans if example.feedback else []:
        text.stylize(GOOD if span.label == "good" else POOR, span.start, span.end)
    return text


def explanation_view(explanation: Explanation) -> Table:
    """Every token with its reward and its probability before and after, coloured by how it moved."""
    table = Table(title=Text(explanation.comment))
    table.add_column("token")
    for column in ("reward", "before", "after", "change of log-probability"):
        table.add_column(column, justify="right")
    for token in explanation.tokens:
        change = token.logprob_after - token.logprob_before
        style = "" if not token.reward else GOOD if token.reward > 0 else POOR
        table.add_row(
            Text(repr(token.text)[1:-1] if token.text else "⏹ end", style=style),
            f"{token.reward:+.1f}" if token.reward else "",
            f"{token.probability_before:.4f}",
            f"{token.probability_after:.4f}",
            Text(f"{change:+.4f}", style=style),
        )
    return table


def _failed(critiques: int) -> str:
    return f"  [yellow]{critiques} failed critiques[/yellow]" if critiques else ""


def _number(value: float) -> str:
    return f"{value:+.2f}" if value == value else "–"
