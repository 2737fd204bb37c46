"""`text2grad bench`: where the time of a training step goes, and which setting to change."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape
from rich.table import Column, Table

from text2grad.cli.options import Config, Debug, Model, to_overrides
from text2grad.cli.progress import PhaseDisplay, silence_libraries, terminal

if TYPE_CHECKING:
    from text2grad.bench import StepCost

NAMES = {
    "rollout": "sampling the completions",
    "critic": "the critic",
    "scoring": "log-probabilities, policy and reference",
    "update": "the update",
    "other": "rewards, advantages, metrics",
}
FINE = "Nothing stands out."


def bench(
    config: Config,
    overrides: Annotated[
        list[str] | None,
        typer.Argument(help="Settings to try, as section.key=value: policy.max_tokens_per_batch=65536"),
    ] = None,
    model: Model = None,
    steps: Annotated[int, typer.Option(min=1, help="Steps to measure, after one that is not counted.")] = 3,
    debug: Debug = False,
) -> None:
    """Time a few training steps of a config: where the time goes, memory, and which setting to change.

    The steps are real: your model, your prompts, your critic (an LLM critic is paid for them). Nothing is saved, and
    output_dir is not touched. Change a setting on the command line and compare.

    - **sampling**: one pass per token; more completions per step cost it little on a GPU.
    - **the critic**: on a GPU it works while log-probabilities are computed; what is shown for those is the rest.
    - **the update**: forward and backward for every token, prompts included, once per policy.num_iterations.

    Example: text2grad bench config.yaml policy.per_device_train_batch_size=64
    """
    from text2grad.bench import advise, measure
    from text2grad.config.run import load_config
    from text2grad.critics.registry import look_beside

    silence_libraries()
    look_beside(config)
    settings = load_config(config, [*(overrides or []), *to_overrides({"model.name": model})])
    console = terminal()
    with PhaseDisplay(console) as display:
        display.on_phase("Measuring")
        cost = measure(settings, steps, display.on_progress)
    console.print(_table(cost))
    console.print(
        f"{cost.completions} completions per step: {cost.sampled / cost.stages['rollout']:,.0f} tokens per second "
        f"sampled, {cost.trained * settings.policy.num_iterations / cost.stages['update']:,.0f} trained (prompts "
        f"included). Peak memory {cost.peak_memory / 2**30:.1f} of {cost.memory / 2**30:.1f} GiB.",
        soft_wrap=True,
    )
    for sentence in advise(cost, settings) or [FINE]:
        console.print(escape(sentence), soft_wrap=True)


def _table(cost: StepCost) -> Table:
    table = Table(
        "stage", Column("seconds", justify="right"), Column("share", justify="right"), title="One training step",
        title_justify="left",
    )  # fmt: skip
    for stage, seconds in cost.stages.items():
        table.add_row(NAMES[stage], f"{seconds:.2f}", f"{cost.share(stage):.0%}")
    table.add_section()
    table.add_row("the step", f"{cost.seconds:.2f}", "100%")
    return table
