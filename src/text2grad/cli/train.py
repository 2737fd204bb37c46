"""`text2grad train`: update a model from a critic or from logged feedback."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from text2grad.cli.options import (
    Debug,
    Model,
    OutputDir,
    Resume,
    Watch,
    explaining_critic_options,
    to_overrides,
    watching,
)
from text2grad.cli.progress import silence_libraries, terminal
from text2grad.config.arguments import check_arguments
from text2grad.distributed.environment import world_size
from text2grad.errors import UserError
from text2grad.schema import check_examples_file

if TYPE_CHECKING:
    from text2grad.config.run import RunConfig

EPOCHS = 3.0


def train(
    overrides: Annotated[
        list[str] | None, typer.Argument(help="Settings to change, as section.key=value: policy.learning_rate=1e-5")
    ] = None,
    feedback: Annotated[
        Path | None,
        typer.Option(help="JSON lines with prompt, completion and feedback: train on these without sampling."),
    ] = None,
    config: Annotated[
        Path | None, typer.Option("--config", help="A YAML file or preset to take settings from.")
    ] = None,
    model: Model = None,
    heldout: Annotated[
        str | None,
        typer.Option("--eval", help="Short for data.eval=...: prompts to answer before and after training."),
    ] = None,
    critic: Annotated[
        str | None, typer.Option(help="Short for critic.name=...: with --feedback, who judges these answers.")
    ] = None,
    output_dir: OutputDir = None,
    epochs: Annotated[
        float | None, typer.Option(min=0.01, help=f"Passes over the logged feedback; default: {EPOCHS:g}.")
    ] = None,
    resume: Resume = False,
    watch: Watch = False,
    debug: Debug = False,
) -> None:
    """Train from logged feedback on earlier completions (--feedback), or from a critic (--config).

    With --feedback, nothing is sampled and no reward model is needed: blamed words become less probable, praised ones
    more, each by a bounded factor (policy.epsilon), and a KL penalty (policy.beta) limits other changes. Rows that
    cannot be used are counted with the reason; --eval and --critic compare answers before and after. With --config
    alone, this is `text2grad run` without the comparison before and after, unless policy.eval_steps or --eval is set.

    Example: text2grad train --feedback feedback.jsonl --model smollm2 -o runs/taught
    """
    if feedback is None and config is None:
        raise UserError("nothing to train on: give --feedback FILE, or --config FILE with prompts and a critic")
    if feedback is not None:
        check_examples_file(feedback)
    check_arguments(config, overrides or [])
    from text2grad.cli.display import TerminalDisplay
    from text2grad.config.run import load_config
    from text2grad.critics.registry import look_beside
    from text2grad.pipeline import run, train_offline

    silence_libraries()
    look_beside(config)
    options = to_overrides(
        {
            "model.name": model,
            "output_dir": output_dir,
            "data.train": feedback,
            "data.eval": heldout,
            "critic.name": critic,
        }
    )
    settings = [*(overrides or []), *options]
    with TerminalDisplay(terminal()) as display:
        if feedback is not None:
            loaded, start = _settings_for(feedback, config, settings, epochs), train_offline
        else:
            if heldout is None and load_config(config, settings).policy.eval_steps is None:
                settings.append("data.eval=null")
            loaded, start = load_config(config, settings), run
        with explaining_critic_options(config, settings), watching(loaded.output_dir, watch):
            start(loaded, display, resume)


def _settings_for(feedback: Path, config: Path | None, settings: list[str], epochs: float | None) -> RunConfig:
    """Return the settings of a run on logged feedback, with as many steps as the epochs take."""
    from text2grad.config.run import load_config
    from text2grad.pipeline import LOGGED
    from text2grad.schema import read_examples
    from text2grad.trainer.offline import DEFAULTS, steps_for, usable_feedback

    defaults: dict[str, dict[str, Any]] = {"policy": DEFAULTS, "critic": {"name": LOGGED}, "data": {"eval": None}}
    loaded = load_config(config, settings, defaults)
    usable = usable_feedback(list(read_examples(feedback)), loaded.credit.min_confidence)
    usable.check(feedback)
    samples_per_step = loaded.policy.samples_per_step * world_size()
    max_steps = steps_for(len(usable.examples), samples_per_step, epochs or EPOCHS)
    defaults["policy"] = DEFAULTS | {"max_steps": max_steps}
    given_epochs = [] if epochs is None else [f"policy.max_steps={max_steps}"]
    return load_config(config, [*settings, *given_epochs], defaults)
