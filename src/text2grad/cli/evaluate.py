"""`text2grad evaluate`: answers to held-out prompts, and how good they are."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.markup import escape
from rich.table import Column, Table

from text2grad.cli.console import Console
from text2grad.cli.options import AnsweringModel, DataColumn, Debug, Device, PlainPrompts, check_output, given, pairs
from text2grad.cli.progress import PhaseDisplay, silence_libraries
from text2grad.errors import UserError

Bleu = Annotated[bool, typer.Option("--bleu", help="Also sacreBLEU's sentence BLEU (package text2grad[eval]).")]
Resamples = Annotated[int, typer.Option(min=1, help="Resamples of the bootstrap behind the 95% intervals.")]


def evaluate(
    model: AnsweringModel,
    data: Annotated[
        str,
        typer.Argument(
            help="Prompts, as data.eval takes them: JSON lines and other files, hf:OWNER/NAME[:config][#split], or the "
            "name of a data set."
        ),
    ],
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="A folder for answers.jsonl and summary.json.")
    ] = None,
    critic: Annotated[
        str | None, typer.Option(help="Who judges the answers: any critic, as in `text2grad annotate`.")
    ] = None,
    option: Annotated[
        list[str] | None, typer.Option(help="An argument of the critic, as name=value; may be repeated.")
    ] = None,
    samples: Annotated[int, typer.Option(min=1, help="Answers per prompt.")] = 1,
    temperature: Annotated[
        float | None, typer.Option(min=0, help="Of sampling; default: 0, the most probable answer; 1 for several.")
    ] = None,
    max_tokens: Annotated[int, typer.Option(min=1, help="Tokens of the longest answer.")] = 256,
    limit: Annotated[int | None, typer.Option(min=1, help="Prompts to use, at even distances in the data.")] = None,
    column: DataColumn = None,
    pass_at: Annotated[
        list[int] | None, typer.Option(min=1, help="k of pass@k, for programs; default: 1, and --samples; repeatable.")
    ] = None,
    run_tests: Annotated[bool, typer.Option(help="Run the programs of answers whose examples have tests.")] = True,
    unsafe_exec: Annotated[
        bool, typer.Option("--unsafe-exec", help="Run programs even if no sandbox is available.")
    ] = False,
    bleu: Bleu = False,
    resamples: Resamples = 10_000,
    seed: Annotated[int, typer.Option(min=0)] = 0,
    plain_prompts: PlainPrompts = False,
    device: Device = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace an evaluation in the output folder.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the summary as JSON instead of a table.")] = False,
    debug: Debug = False,
) -> None:
    """Have a model or a run answer held-out prompts, and measure the answers.

    Against references: ROUGE-L, token F1, exact match and, with --bleu, BLEU. With a critic: its score. For examples
    with tests: pass@k, from programs that run in the sandbox. Every mean is over prompts, with the 95% interval of a
    bootstrap. `text2grad compare` sets two evaluations of the same prompts side by side.

    Example: text2grad evaluate runs/quickstart heldout.jsonl --critic grounding -o evaluated
    """
    from text2grad.critics.code import CodeCritic
    from text2grad.critics.registry import make_critic
    from text2grad.data.registry import load_examples
    from text2grad.evaluate import ANSWERS, Answerer, add_feedback, add_test_results, write_evaluation
    from text2grad.evaluation.answers import BLEU, METRICS, summarise
    from text2grad.evaluation.metrics import sentence_bleu
    from text2grad.trainer.evaluation import fixed_subset

    silence_libraries()
    temperature = temperature if temperature is not None else float(samples > 1)
    if samples > 1 and temperature == 0:
        raise UserError(f"--samples {samples} at temperature 0 are all the same; give a --temperature above 0")
    if output is not None:
        check_output(output / ANSWERS, overwrite)
    if bleu:
        sentence_bleu("", "")  # now, not after hours of answering
    unsafe = {"unsafe": True} if unsafe_exec and critic == "code" else {}
    judge = make_critic(critic, given(unsafe, option)) if critic else None
    examples = fixed_subset(load_examples(data, "heldout", pairs(column, "--column prompt=question")), limit)
    has_tests = run_tests and any(example.tests for example in examples)
    runner = CodeCritic(unsafe=unsafe_exec) if has_tests else None
    ks = _chosen_ks(pass_at, samples, has_tests)
    with PhaseDisplay(Console(stderr=as_json)) as display:
        display.on_phase("Loading the model")
        answerer = Answerer(model, device, plain_prompts)
        display.on_phase("Answering")
        answers = answerer.answer(examples, max_tokens, temperature, samples, seed, display.on_progress)
        if runner is not None:
            display.on_phase("Running tests")
            answers = add_test_results(runner, answers, display.on_progress)
        if judge is not None:
            display.on_phase("Critiquing")
            answers = add_feedback(judge, answers, display.on_progress)
    settings = {"model": model, "data": data, "critic": critic, "samples": samples, "temperature": temperature}
    settings |= {"max_tokens": max_tokens, "seed": seed}
    summary = settings | summarise(answers, resamples, seed, METRICS | (BLEU if bleu else {}), ks)
    if output is not None:
        write_evaluation(output, answers, summary)
    _show(summary, output, as_json)


def _chosen_ks(pass_at: list[int] | None, samples: int, has_tests: bool) -> list[int]:
    if not has_tests:
        if pass_at:
            raise UserError("--pass-at needs examples with tests, and that they are run")
        return []
    if too_large := [k for k in pass_at or [] if k > samples]:
        raise UserError(f"--pass-at {too_large[0]} needs at least as many answers per prompt: give --samples")
    return sorted({*(pass_at or (1, samples))})


def _show(summary: dict[str, Any], output: Path | None, as_json: bool) -> None:
    if as_json:
        print(json.dumps(summary))  # ASCII: nothing in it can command a terminal
        return
    console = Console()
    console.print(summary_table(summary))
    warn_of_few(console, summary["prompts"])
    if summary["failed"]:
        console.print(f"[yellow]{summary['failed']} critiques failed[/yellow] and are left out of the critic's score.")
    if output is not None:
        console.print(f"Answers and summary: {escape(str(output))}", soft_wrap=True)


def warn_of_few(console: Console, prompts: int) -> None:
    """Print a warning where there are too few prompts for the intervals to mean much."""
    from text2grad.evaluation.significance import FEW

    if 0 < prompts < FEW:
        console.print(f"[yellow]Only {prompts} prompts:[/yellow] the intervals say little; use {FEW} or many more.")


def summary_table(summary: dict[str, Any]) -> Table:
    """Return the mean and interval of each metric."""
    from text2grad.evaluation.answers import LABELS

    per_prompt = f", {summary['samples']} answers each" if summary["samples"] > 1 else ""
    columns = [Column(name, justify="right", no_wrap=True) for name in ("mean", "95% interval", "prompts")]
    table = Table(Column(no_wrap=True), *columns, title=f"{summary['prompts']} prompts{per_prompt}")
    for name, metric in summary["metrics"].items():
        interval = escape(f"[{metric['low']:.3f}, {metric['high']:.3f}]")
        table.add_row(LABELS.get(name, name), f"{metric['mean']:.3f}", interval, str(metric["n"]))
    return table
