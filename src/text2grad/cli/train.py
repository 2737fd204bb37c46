"""`text2grad train`: update a model from a critic or from logged feedback."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from text2grad.cli.options import Debug, Model, OutputDir, Resume, to_overrides
from text2grad.cli.progress import silence_libraries, terminal
from text2grad.distributed.environment import world_size
from text2grad.errors import UserError

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
    output_dir: OutputDir = None,
    epochs: Annotated[
        float | None, typer.Option(min=0.01, help=f"Passes over the logged feedback; default: {EPOCHS:g}.")
    ] = None,
    resume: Resume = False,
    debug: Debug = False,
) -> None:
    """Train from logged feedback on earlier completions (--feedback), or from a critic (--config).

    With --feedback, nothing is sampled and no reward model is needed: blamed words become less probable, praised ones
    more, each by a bounded factor (policy.epsilon), and a KL penalty (policy.beta) limits other changes. With --config
    alone, this is `text2grad run` without the comparison before and after, unless policy.eval_steps is set.

    Example: text2grad train --feedback feedback.jsonl --model smollm2 -o runs/taught
    """
    from text2grad.cli.display import TerminalDisplay
    from text2grad.config.run import load_config
    from text2grad.pipeline import run, train_offline
    from text2grad.schema import read_examples
    from text2grad.trainer.offline import DEFAULTS, steps_for

    if feedback is None and config is None:
        raise UserError("nothing to train on: give --feedback FILE, or --config FILE with prompts and a critic")
    silence_libraries()
    options = to_overrides({"model.name": model, "output_dir": output_dir, "data.train": feedback})
    settings = [*(overrides or []), *options]
    if feedback is not None or load_config(config, settings).policy.eval_steps is None:
        settings.append("data.eval=null")
    with TerminalDisplay(terminal()) as display:
        if feedback is None:
            run(load_config(config, settings), display, resume)
            return
        defaults = {"policy": DEFAULTS, "critic": {"name": "logged"}}
        examples = sum(1 for _ in read_examples(feedback))
        samples_per_step = load_config(config, settings, defaults).policy.samples_per_step * world_size()
        defaults["policy"] = DEFAULTS | {"max_steps": steps_for(examples, samples_per_step, epochs or EPOCHS)}
        if epochs is not None:
            settings.append(f"policy.max_steps={defaults['policy']['max_steps']}")
        train_offline(load_config(config, settings, defaults), display, resume)
