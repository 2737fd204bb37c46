"""`text2grad train`: update a model's weights, from a critic or straight from logged feedback."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

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
        typer.Option(help="JSON lines with prompt, completion and feedback: learn from these, without sampling."),
    ] = None,
    config: Annotated[Path | None, typer.Option("--config", help="A run's YAML file, for settings.")] = None,
    model: Annotated[str | None, typer.Option(help="Same as model.name=...: smollm2, a hub name, or a folder.")] = None,
    output_dir: Annotated[
        Path | None, typer.Option("--output-dir", "-o", help="Same as output_dir=...: the run's folder.")
    ] = None,
    epochs: Annotated[
        float | None, typer.Option(min=0.01, help="How often each piece of logged feedback is met; default: 3.")
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Continue the run in output_dir where it stopped.")] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
) -> None:
    """Train from what people or programs wrote about earlier answers, or, without --feedback, from a critic.

    With --feedback nothing is sampled and no reward model is needed: blamed words become less probable, praised ones
    more, each by a bounded factor (policy.epsilon), and the rest is held where it is (policy.beta). Without it, this is
    `text2grad run` without the held-out comparison; with policy.eval_steps the held-out prompts are used after all.

    Example: text2grad train --feedback feedback.jsonl --model smollm2 -o runs/taught
    """
    from text2grad.cli.display import TerminalDisplay
    from text2grad.config.run import load_config
    from text2grad.pipeline import run, train_offline
    from text2grad.schema import read_examples
    from text2grad.trainer.offline import DEFAULTS, steps_for

    if feedback is None and config is None:
        raise UserError("what should it learn from? give --feedback FILE, or --config FILE with prompts and a critic")
    silence_libraries()
    named = {"model.name": model, "output_dir": output_dir, "data.train": feedback}
    given = [f"{key}={json.dumps(str(value), ensure_ascii=False)}" for key, value in named.items() if value is not None]
    settings = [*(overrides or []), *given]
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
