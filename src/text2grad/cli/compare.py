"""`text2grad compare`: runs and evaluations side by side."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape
from rich.table import Column, Table
from rich.text import Text

from text2grad.cli.console import Console
from text2grad.cli.evaluate import Bleu, Resamples, warn_of_few
from text2grad.cli.options import Debug, Overwrite, check_output, given
from text2grad.cli.progress import PhaseDisplay
from text2grad.errors import UserError
from text2grad.text.printable import printable

if TYPE_CHECKING:
    from text2grad.evaluation.answers import Prompt
    from text2grad.evaluation.pairwise import AnswerSet
    from text2grad.report.compare_page import Contender

_JUDGE = "A model that says which answer is better, in both orders; a win needs both verdicts."


def _judge_option(text: str) -> Any:
    return typer.Option(help=text, rich_help_panel="LLM judge")


def compare(
    sources: Annotated[
        list[Path],
        typer.Argument(
            help="Runs, folders of `text2grad evaluate`, or JSON lines of answers; the first is the baseline."
        ),
    ],
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="An HTML page: tables, curves, answers side by side.")
    ] = None,
    judge: Annotated[str | None, _judge_option(_JUDGE)] = None,
    base_url: Annotated[str | None, _judge_option("Its server, as http://localhost:8000/v1. Default: OpenAI.")] = None,
    api_key_env: Annotated[str | None, _judge_option("Environment variable with the API key (OPENAI_API_KEY).")] = None,
    option: Annotated[
        list[str] | None, _judge_option("Any other setting of the judge, as name=value: max_cost=1; repeatable.")
    ] = None,
    bleu: Bleu = False,
    resamples: Resamples = 10_000,
    seed: Annotated[int, typer.Option(min=0)] = 0,
    overwrite: Overwrite = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the comparison as JSON instead of tables.")] = False,
    debug: Debug = False,
) -> None:
    """Compare answers to the same prompts: of runs after training, or of `text2grad evaluate`.

    Metrics are computed on the prompts that all have in common, and each difference from the first one has the 95%
    interval of a paired bootstrap. The page also has the curves of the runs, and the answers with the words marked in
    which they differ.

    Example: text2grad compare runs/first runs/second -o compare.html
    """
    from text2grad.evaluation.pairwise import shared_prompts
    from text2grad.report.answer_sets import read_answer_sets
    from text2grad.report.compare_page import render_comparison
    from text2grad.report.html import write_page

    if len(sources) < 2:
        raise UserError("give at least two runs or evaluations to compare")
    if output is not None:
        check_output(output, overwrite, sources)
    baseline, *others = sets = read_answer_sets(sources)
    _check_answers(sets)
    prompts = shared_prompts(sets) if baseline.groups else []
    settings = given({"model": judge, "base_url": base_url, "api_key_env": api_key_env}, option)
    if settings and judge is None:
        raise UserError("these are settings of a judge: name one with --judge MODEL")
    console = Console(stderr=as_json)
    contenders = [_compare(baseline, one, prompts, bleu, resamples, seed) for one in others]
    if settings:
        contenders = _add_verdicts(baseline, contenders, prompts, settings, resamples, seed, console)
    if output is not None:
        write_page(output, render_comparison(baseline, contenders, prompts))
    if as_json:
        print(json.dumps(_to_dict(baseline, contenders, prompts)))
        return
    if not prompts:
        console.print("The runs have no held-out answers: only their curves can be compared, on the page (-o).")
    for contender in contenders:
        _show(console, baseline, contender)
    warn_of_few(console, len(prompts))
    left_out = sum(len(one.groups) for one in sets) - len(sets) * len(prompts)
    if left_out:
        console.print(f"[yellow]{left_out} answered prompts[/yellow] are not common to all, and left out.")
    if output is not None:
        console.print(f"Page: {escape(str(output))}", soft_wrap=True)


def _check_answers(sets: list[AnswerSet]) -> None:
    """Refuse sets of which only some have answers; where none has any, the curves of runs can be compared."""
    empty = [one.name for one in sets if not one.groups]
    if empty and (len(empty) < len(sets) or not any(one.steps for one in sets)):
        raise UserError(
            f"{', '.join(dict.fromkeys(empty))} has no answers; for a run without held-out prompts, answer some with "
            f"`text2grad evaluate RUN DATA -o FOLDER`, and compare that folder"
        )


def _compare(
    baseline: AnswerSet, other: AnswerSet, prompts: list[Prompt], bleu: bool, resamples: int, seed: int
) -> Contender:
    from text2grad.evaluation.answers import BLEU, METRICS
    from text2grad.evaluation.pairwise import compare_sets
    from text2grad.report.compare_page import Contender

    metrics = METRICS | (BLEU if bleu else {})
    return Contender(other, compare_sets(baseline, other, prompts, resamples, seed, metrics))


def _add_verdicts(
    baseline: AnswerSet,
    contenders: list[Contender],
    prompts: list[Prompt],
    settings: dict[str, Any],
    resamples: int,
    seed: int,
    console: Console,
) -> list[Contender]:
    """Have the judge compare the first answers to each prompt."""
    from text2grad.critics.llm.judge import PairwiseJudge
    from text2grad.evaluation.pairwise import summarise_verdicts
    from text2grad.report.compare_page import Contender

    judge = PairwiseJudge(**settings)
    judged = []
    with PhaseDisplay(console) as display:
        for contender in contenders:
            display.on_phase(f"Judging {printable(contender.answers.name)}")
            pairs = [(baseline.groups[prompt][0], contender.answers.groups[prompt][0]) for prompt in prompts]
            verdicts = judge.judge(pairs, display.on_progress)
            summary = summarise_verdicts(verdicts, resamples, seed)
            judged.append(
                Contender(contender.answers, contender.metrics, summary, dict(zip(prompts, verdicts, strict=True)))
            )
    if judge.ledger.cost:
        console.print(f"The judge cost {judge.ledger.cost:.4f}.")
    return judged


def _to_dict(baseline: AnswerSet, contenders: list[Contender], prompts: list[Prompt]) -> dict[str, Any]:
    compared = [
        {"name": one.answers.name, "metrics": one.metrics} | ({"judge": one.judged} if one.judged else {})
        for one in contenders
    ]
    return {"baseline": baseline.name, "prompts": len(prompts), "compared": compared}


def _show(console: Console, baseline: AnswerSet, contender: Contender) -> None:
    if contender.metrics:
        console.print(comparison_table(baseline.name, contender.answers.name, contender.metrics))
    if (judged := contender.judged) is not None:
        failed = f", {judged['failed']} failed" if judged["failed"] else ""
        console.print(
            f"Judge: {escape(printable(contender.answers.name))} wins {judged['wins']}, "
            f"{escape(printable(baseline.name))} wins {judged['losses']}, ties {judged['ties']}{failed}",
            soft_wrap=True,
        )
        if preference := judged["preference"]:
            interval = escape(f"[{preference['low']:+.3f}, {preference['high']:+.3f}]")
            console.print(f"Preference {preference['mean']:+.3f} {interval}", soft_wrap=True, highlight=False)


def comparison_table(first: str, second: str, metrics: dict[str, dict[str, float]]) -> Table:
    """Return the metrics of two sets of answers, with the interval of each difference.

    Bold: the interval excludes zero, and there are enough prompts for that to mean something.
    """
    from text2grad.evaluation.answers import LABELS
    from text2grad.evaluation.significance import FEW

    names = [printable(first), printable(second), "difference", "95% interval", "prompts"]
    right = [Column(Text(name), justify="right") for name in names]
    table = Table(Column(no_wrap=True), *right, title=Text(printable(f"{second} against {first}")))
    for name, metric in metrics.items():
        interval = f"[{metric['low']:+.3f}, {metric['high']:+.3f}]"
        is_clear = metric["n"] >= FEW and (metric["low"] > 0 or metric["high"] < 0)
        difference = Text(f"{metric['difference']:+.3f}", style="bold" if is_clear else "")
        values = [f"{metric[side]:.3f}" for side in ("before", "after")]
        table.add_row(LABELS.get(name, name), *values, difference, Text(interval), str(metric["n"]))
    return table
