"""`text2grad reward`: train, evaluate, use and serve a span reward model."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape

from text2grad.cli.annotate import annotate_with_progress
from text2grad.cli.console import Console
from text2grad.cli.options import Debug, Device, FeedbackFile, Overwrite, check_output, given
from text2grad.cli.progress import ProgressDisplay, silence_libraries, terminal
from text2grad.cli.reward_tables import dataset_table, left_out_table, metrics_table
from text2grad.distributed.environment import is_main_process
from text2grad.errors import UserError

if TYPE_CHECKING:
    from transformers import TrainerCallback

    from text2grad.schema import Example

reward = typer.Typer(help="Train and use a reward model that predicts good and poor words.", no_args_is_help=True)
ModelFolder = Annotated[str, typer.Argument(help="The folder that `reward train` wrote, or a Hugging Face name.")]
Method = Annotated[
    str | None,
    typer.Option("--method", help="head: one forward pass; generative: a generated critique with quotations."),
]
LOSSES = ("loss", "head_loss", "lm_loss")


@reward.command()
def train(
    sources: Annotated[list[Path], typer.Argument(help="JSON lines of examples with feedback, as annotate writes.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="The folder for the model.")],
    model: Annotated[str, typer.Option(help="The base model: smollm2, a hub name, or a folder.")] = "smollm2",
    epochs: Annotated[float | None, typer.Option(min=0.01, help="Passes over the data.")] = None,
    learning_rate: Annotated[float | None, typer.Option(min=1e-9)] = None,
    batch_size: Annotated[int | None, typer.Option(min=1, help="Examples per step and device.")] = None,
    lora: Annotated[bool, typer.Option("--lora", help="Train an adapter instead of all weights.")] = False,
    seed: Annotated[int, typer.Option(min=0)] = 0,
    option: Annotated[
        list[str] | None,
        typer.Option(help="Any other setting as name=value: lm_weight=0, inputs={reading: once}; repeatable."),
    ] = None,
    leave_out: Annotated[
        list[str] | None,
        typer.Option(help="A source, by its name without ending, to evaluate with instead of training; repeatable."),
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Continue from the last checkpoint in the folder.")] = False,
    debug: Debug = False,
) -> None:
    """Train a reward model on feedback: which words of a completion are good or poor, and the critique that says why.

    Failed feedback and completions that are too long are skipped and counted. A tenth of the prompts is held out to
    calibrate the probabilities. How good the model is on kinds of text that it was not trained on is shown by
    --leave-out, which trains without one of the sources and measures on it. Ctrl-C saves a checkpoint after the current
    step; --resume continues from it.

    Example: text2grad reward train feedback.jsonl -o runs/rm
    """
    from text2grad.reward_model.train import RewardTrainingSettings, train_reward_model

    named: dict[str, Any] = {
        "model": model,
        "num_train_epochs": epochs,
        "learning_rate": learning_rate,
        "per_device_train_batch_size": batch_size,
        "lora": {} if lora else None,
        "seed": seed,
    }
    settings = RewardTrainingSettings.parse(given(named, option), where="reward train")
    kept, left_out = _split_sources(sources, leave_out or [])
    console = terminal()
    silence_libraries()
    with ProgressDisplay(console, "training") as display:
        callback = _progress_callback(display)
        train_reward_model(
            _read(kept),
            settings,
            output,
            resume=resume,
            callbacks=[callback],
            left_out={name: _read([source]) for name, source in left_out.items()},
        )
    if not is_main_process():  # the others may be here before the summary is written
        return
    summary = json.loads((output / "training.json").read_text(encoding="utf-8"))
    console.print(dataset_table(summary))
    if left_out:
        console.print(left_out_table(summary["left_out"]))
    console.print(f"Reward model: {escape(str(output))}", soft_wrap=True)


@reward.command("eval")
def evaluate(
    model: ModelFolder,
    sources: Annotated[list[Path], typer.Argument(help="JSON lines of examples with gold feedback.")],
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Folder for evaluation.json and evaluation.html.")
    ] = None,
    method: Method = None,
    device: Device = None,
    debug: Debug = False,
) -> None:
    """Compare a reward model with gold feedback: precision, recall, ranking, calibration, and a page of examples.

    Example: text2grad reward eval runs/rm heldout.jsonl -o runs/rm/eval
    """
    from text2grad.files import replace_text
    from text2grad.report.reward_evaluation import render_evaluation
    from text2grad.reward_model.evaluate import compute_metrics, predict
    from text2grad.reward_model.model import SpanRewardModel

    silence_libraries()
    console = Console()
    if output is not None:
        _check_evaluation_folder(output)
    examples = _read(sources)
    critic = SpanRewardModel.from_pretrained(model, device, **given({"method": method}))
    with console.status(f"Scoring {len(examples)} completions"):
        predictions, skipped = predict(critic, examples)
    if not predictions:
        reasons = ", ".join(f"{count} {reason}" for reason, count in skipped.items() if count) or "no examples"
        raise UserError(f"{sources[0]}: no example has gold feedback to compare with ({reasons})")
    parse_rate = len(predictions) / (len(predictions) + skipped.get("unreadable", 0))
    metrics = compute_metrics(predictions) | {"skipped": skipped, "parse_rate": parse_rate}
    console.print(metrics_table(metrics))
    if output is not None:
        output.mkdir(parents=True, exist_ok=True)
        replace_text(output / "evaluation.json", json.dumps(metrics, indent=2))
        page = render_evaluation(f"Reward model {Path(model).name}", metrics, predictions)
        replace_text(output / "evaluation.html", page)
        console.print(f"Page: {escape(str(output / 'evaluation.html'))}", soft_wrap=True)


@reward.command()
def score(
    model: ModelFolder,
    source: Annotated[Path, typer.Argument(help="JSON lines with id, prompt and completion.")],
    output: FeedbackFile,
    method: Method = None,
    rewards: Annotated[
        str | None, typer.Option(help="graded: every word's expected reward; spans: words that are good or poor.")
    ] = None,
    option: Annotated[
        list[str] | None, typer.Option(help="Any other feedback setting as name=value: threshold=0; repeatable.")
    ] = None,
    batch_size: Annotated[int | None, typer.Option(min=1, help="Records per call (256 on a GPU, else 16).")] = None,
    device: Device = None,
    debug: Debug = False,
) -> None:
    """Give every completion of a file the reward model's feedback. An interrupted run continues where it stopped.

    `distance` in the feedback says how unlike the training data a completion is: 0 is like the completions that were
    held out, in standard deviations. Beyond 2 the feedback is weakened, unless `weaken_unfamiliar=false`.

    Example: text2grad reward score runs/rm answers.jsonl -o feedback.jsonl
    """
    from text2grad.reward_model.model import SpanRewardModel

    silence_libraries()
    critic = SpanRewardModel.from_pretrained(model, device, **given({"method": method, "rewards": rewards}, option))
    annotate_with_progress(source, output, critic, batch_size=batch_size)
    _print_unfamiliar(output)


@reward.command("corrupt")
def corrupt_texts(
    sources: Annotated[list[Path], typer.Argument(help="JSON lines: prompts with answers that are right.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="JSON lines of corrupted answers with feedback.")],
    per_text: Annotated[int | None, typer.Option(min=1, help="Corrupted answers per right one.")] = None,
    clean_share: Annotated[float | None, typer.Option(min=0, max=1, help="Share of them that stays right.")] = None,
    max_faults: Annotated[int | None, typer.Option(min=1, help="Faults per answer, at most.")] = None,
    seed: Annotated[int, typer.Option(min=0)] = 0,
    overwrite: Overwrite = False,
    debug: Debug = False,
) -> None:
    """Make training data from right answers: exchange names, numbers and relations, add and drop, by rule.

    The right answer is the completion, or the first reference where it is empty. Every fault has a span, a critique and
    the words that stood there. Each source is corrupted with its own words, so it should hold answers of one kind.

    Example: text2grad reward corrupt right.jsonl -o corrupted.jsonl
    """
    from text2grad.reward_model.corruptions.corrupt import CorruptionSettings, corrupt, with_completion
    from text2grad.schema import write_examples

    check_output(output, overwrite, sources)
    named = {"per_text": per_text, "clean_share": clean_share, "max_faults": max_faults, "seed": seed}
    settings = CorruptionSettings.parse(given(named), where="reward corrupt")
    texts = [[with_completion(example) for example in _read([source])] for source in sources]
    corrupted = [example for part in texts for example in corrupt(part, settings)]
    write_examples(output, corrupted)
    spans = sum(len(example.feedback.spans) for example in corrupted if example.feedback)
    console = Console()
    console.print(f"{len(corrupted)} examples with {spans} faults: {escape(str(output))}", soft_wrap=True)


@reward.command()
def serve(
    model: ModelFolder,
    host: Annotated[str, typer.Option(help="0.0.0.0 accepts other machines; there is no password.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 picks a free one.")] = 8008,
    allowed_host: Annotated[
        list[str] | None,
        typer.Option(help="A name of this server in requests, beside localhost and its address; repeatable; *: any."),
    ] = None,
    max_batch_size: Annotated[int, typer.Option(min=1, help="Completions per call of the model.")] = 32,
    max_wait_ms: Annotated[float, typer.Option(min=0, help="How long an idle model waits to fill a batch.")] = 5.0,
    max_body_bytes: Annotated[int, typer.Option(min=1, help="Larger requests are rejected.")] = 1 << 20,
    method: Method = None,
    device: Device = None,
    option: Annotated[
        list[str] | None, typer.Option(help="Any other limit as name=value: max_examples=8; repeatable.")
    ] = None,
    debug: Debug = False,
) -> None:
    """Serve over HTTP: POST /v1/score with {"examples": [{"prompt": ..., "completion": ...}]}; GET /health; /docs.

    Concurrent requests are scored in one batch.

    Example: text2grad reward serve runs/rm --port 8008
    """
    from text2grad.reward_model.model import SpanRewardModel

    try:
        from text2grad.reward_model.serving.app import ServeSettings
        from text2grad.reward_model.serving.app import serve as run_server
    except ModuleNotFoundError as error:
        raise UserError('reward serve needs fastapi and uvicorn: pip install "text2grad[serve]"') from error

    silence_libraries()
    address = {"name": Path(model).name, "host": host, "port": port, "allowed_hosts": allowed_host or []}
    limits = {"max_batch_size": max_batch_size, "max_wait_ms": max_wait_ms, "max_body_bytes": max_body_bytes}
    settings = ServeSettings.parse(given(address | limits, option), where="reward serve")
    run_server(SpanRewardModel.from_pretrained(model, device, **given({"method": method})), settings)


def _check_evaluation_folder(folder: Path) -> None:
    """Reject a folder with an evaluation that `reward eval` did not write, as that of a run."""
    path = folder / "evaluation.json"
    try:
        is_own = not path.exists() or "parse_rate" in json.loads(path.read_bytes())
    except (ValueError, TypeError):
        is_own = False
    if not is_own:
        raise UserError(f"{path} is not of `reward eval` and would be overwritten; choose another folder")


def _progress_callback(display: ProgressDisplay) -> TrainerCallback:
    """Return a callback that shows step and losses in the bar, or a line per log where there is no terminal."""
    from transformers import TrainerCallback

    class ProgressBarCallback(TrainerCallback):
        def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            display.progress.update(display.task, completed=state.global_step, total=state.max_steps)

        def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **_: Any) -> None:
            losses = "  ".join(f"{name.replace('_', ' ')} {logs[name]:.3f}" for name in LOSSES if name in (logs or {}))
            if losses:
                display.progress.update(display.task, metrics=losses)
                if not display.console.is_terminal:
                    display.console.print(f"step {state.global_step}/{state.max_steps}  {losses}")

    return ProgressBarCallback()


def _print_unfamiliar(output: Path) -> None:
    from text2grad.reward_model.familiarity import FAMILIAR

    feedback = [example.feedback for example in _read([output]) if example.feedback]
    distances = [one.distance for one in feedback if one.distance is not None]
    if distances:
        far = sum(distance > FAMILIAR for distance in distances)
        Console().print(
            f"Unlike the training data: {far} of {len(distances)} completions (distance above {FAMILIAR:g}, "
            f"mean {sum(distances) / len(distances):.2f})."
        )


def _split_sources(sources: list[Path], leave_out: list[str]) -> tuple[list[Path], dict[str, Path]]:
    """Return the sources to train on, and those to leave out by their names: file names without their endings."""
    names: dict[str, list[Path]] = {}
    for source in sources:
        names.setdefault(source.name.partition(".")[0], []).append(source)
    for name in leave_out:
        if name not in names:
            raise UserError(f'--leave-out: "{name}" is not the name of a source; the sources are {", ".join(names)}')
        if len(names[name]) > 1:
            raise UserError(
                f'--leave-out: "{name}" is the name of several sources ({", ".join(map(str, names[name]))}); rename '
                f"all but one"
            )
    left_out = {name: names[name][0] for name in leave_out}
    kept = [source for source in sources if source not in left_out.values()]
    if not kept:
        raise UserError("--leave-out leaves nothing to train on; give another source")
    return kept, left_out


def _read(sources: list[Path]) -> list[Example]:
    from text2grad.schema import read_examples

    return [example for source in sources for example in read_examples(source)]
