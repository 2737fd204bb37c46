"""`text2grad reward`: train, measure, use and serve a span reward model."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from text2grad.cli.annotate import annotate_with_progress, parse_options
from text2grad.cli.progress import progress_bar, silence_libraries
from text2grad.errors import UserError

if TYPE_CHECKING:
    from text2grad.schema import Example

reward = typer.Typer(help="A model that predicts which words are good or poor, and says why.", no_args_is_help=True)
Debug = Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")]
Device = Annotated[str | None, typer.Option(help="cpu, cuda or cuda:1; default: a GPU where there is one.")]
ModelFolder = Annotated[str, typer.Argument(help="The folder that `reward train` wrote, or a Hugging Face name.")]
PathOption = Annotated[
    str | None,
    typer.Option("--path", help="head: one pass, no words; generative: a written critique with quotes."),
]


@reward.command()
def train(
    sources: Annotated[list[Path], typer.Argument(help="JSON lines of examples with feedback, as annotate writes.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="The folder for the model.")],
    model: Annotated[str, typer.Option(help="What it starts from: smollm2, a hub name, or a folder.")] = "smollm2",
    epochs: Annotated[float | None, typer.Option(min=0.01, help="Passes over the data.")] = None,
    learning_rate: Annotated[float | None, typer.Option(min=1e-9)] = None,
    batch_size: Annotated[int | None, typer.Option(min=1, help="Answers a step and device.")] = None,
    lora: Annotated[bool, typer.Option("--lora", help="Train an adapter instead of all weights.")] = False,
    seed: Annotated[int, typer.Option(min=0)] = 0,
    option: Annotated[
        list[str] | None,
        typer.Option(help="Any other setting as name=value: lm_weight=0, layout={reading: once}; may be given often."),
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Continue from the last checkpoint in the folder.")] = False,
    debug: Debug = False,
) -> None:
    """Train a reward model on feedback: which words of an answer are good or poor, and the critique that says why.

    Failed feedback, and answers that are too long to read, are left out and counted. A tenth of the prompts is held out
    to calibrate the probabilities. Ctrl-C finishes the step under way and saves it; --resume goes on from there.

    Example: text2grad reward train feedback.jsonl -o runs/rm
    """
    from text2grad.reward_model.train import RewardTraining, train_reward_model

    named = {"num_train_epochs": epochs, "learning_rate": learning_rate, "per_device_train_batch_size": batch_size}
    values: dict[str, Any] = {name: value for name, value in named.items() if value is not None}
    values |= {"model": model, "seed": seed} | ({"lora": {}} if lora else {}) | parse_options(option or [])
    settings = RewardTraining.parse(values, where="reward train")
    console = Console()
    silence_libraries()
    examples = [example for source in sources for example in _examples(source)]
    with _TrainingDisplay(console) as display:
        train_reward_model(examples, settings, output, resume=resume, callbacks=[display.callback()])
    summary = json.loads((output / "training.json").read_text(encoding="utf-8"))
    console.print(_training_table(summary))
    console.print(f"Reward model: {escape(str(output))}", soft_wrap=True)


@reward.command("eval")
def evaluate(
    model: ModelFolder,
    sources: Annotated[list[Path], typer.Argument(help="JSON lines of examples with feedback to compare with.")],
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Folder for evaluation.json and evaluation.html.")
    ] = None,
    path: PathOption = None,
    device: Device = None,
    debug: Debug = False,
) -> None:
    """Compare a reward model with people's feedback: precision, recall, ranking, calibration, and a page of examples.

    Example: text2grad reward eval runs/rm heldout.jsonl -o runs/rm/eval
    """
    from text2grad.files import replace_text
    from text2grad.reward_model.evaluate import evaluate as figures_of
    from text2grad.reward_model.evaluate import judge
    from text2grad.reward_model.model import SpanRewardModel
    from text2grad.reward_model.page import render

    silence_libraries()
    console = Console()
    examples = [example for source in sources for example in _examples(source)]
    chosen: dict[str, Any] = {"path": path} if path else {}
    critic = SpanRewardModel.from_pretrained(model, device, **chosen)
    with console.status(f"Judging {len(examples)} answers"):
        judged, left_out = judge(critic, examples)
    if not judged:
        reasons = ", ".join(f"{count} {why}" for why, count in left_out.items() if count) or "no examples"
        raise UserError(f"{sources[0]}: no example has feedback to compare with ({reasons})")
    unreadable = left_out.get("unreadable", 0)
    figures = figures_of(judged) | {"left_out": left_out, "parse_rate": len(judged) / (len(judged) + unreadable)}
    console.print(figures_table(figures))
    if output is not None:
        output.mkdir(parents=True, exist_ok=True)
        replace_text(output / "evaluation.json", json.dumps(figures, indent=2))
        replace_text(output / "evaluation.html", render(f"Reward model {Path(model).name}", figures, judged))
        console.print(f"Page: {escape(str(output / 'evaluation.html'))}", soft_wrap=True)


@reward.command()
def score(
    model: ModelFolder,
    source: Annotated[Path, typer.Argument(help="JSON lines with id, prompt and completion.")],
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Where the records with their feedback go; continued if it is there.")
    ],
    path: PathOption = None,
    rewards: Annotated[
        str | None, typer.Option(help="graded: every word's expectation; spans: words that are probably good or poor.")
    ] = None,
    option: Annotated[
        list[str] | None, typer.Option(help="Any other setting of the rewards, as name=value: floor=0.")
    ] = None,
    batch_size: Annotated[int | None, typer.Option(min=1, help="Records a call (256 on a GPU, else 16).")] = None,
    device: Device = None,
    debug: Debug = False,
) -> None:
    """Give every answer of a file the reward model's feedback. A run that was stopped continues where it was.

    Example: text2grad reward score runs/rm answers.jsonl -o feedback.jsonl
    """
    from text2grad.reward_model.model import SpanRewardModel

    silence_libraries()
    chosen: dict[str, Any] = {
        name: value for name, value in {"path": path, "rewards": rewards}.items() if value is not None
    } | parse_options(option or [])
    annotate_with_progress(
        source, output, SpanRewardModel.from_pretrained(model, device, **chosen), batch_size=batch_size
    )


@reward.command()
def serve(
    model: ModelFolder,
    host: Annotated[str, typer.Option(help="0.0.0.0 lets other machines in; there is no password.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 takes any free one.")] = 8008,
    max_batch_size: Annotated[int, typer.Option(min=1, help="Answers of one call of the model.")] = 32,
    max_wait_ms: Annotated[float, typer.Option(min=0, help="How long an idle model waits for a batch to fill.")] = 5.0,
    max_body_bytes: Annotated[int, typer.Option(min=1, help="A larger request is refused.")] = 1 << 20,
    path: PathOption = None,
    device: Device = None,
    option: Annotated[
        list[str] | None, typer.Option(help="Any other limit as name=value: max_examples=8; may be given often.")
    ] = None,
    debug: Debug = False,
) -> None:
    """Answer over HTTP: POST /v1/score with {"examples": [{"prompt": ..., "completion": ...}]}; GET /health; /docs.

    Requests that come at the same time are judged together.

    Example: text2grad reward serve runs/rm --port 8008
    """
    from text2grad.reward_model.model import SpanRewardModel
    from text2grad.reward_model.serving.app import ServeSettings
    from text2grad.reward_model.serving.app import serve as run

    silence_libraries()
    values = {
        "name": Path(model).name,
        "host": host,
        "port": port,
        "max_batch_size": max_batch_size,
        "max_wait_ms": max_wait_ms,
        "max_body_bytes": max_body_bytes,
    }
    settings = ServeSettings.parse(values | parse_options(option or []), where="reward serve")
    chosen: dict[str, Any] = {"path": path} if path else {}
    run(SpanRewardModel.from_pretrained(model, device, **chosen), settings)


class _TrainingDisplay:
    """A bar with the losses; where there is no terminal, a line for each log."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._progress = progress_bar(console)
        self._bar = self._progress.add_task("training", total=None, metrics="")

    def __enter__(self) -> _TrainingDisplay:
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()

    def update(self, step: int, total: int, logs: dict[str, Any]) -> None:
        figures = "  ".join(f"{name.replace('_', ' ')} {logs[name]:.3f}" for name in _LOSSES if name in logs)
        self._progress.update(self._bar, completed=step, total=total)
        if figures:
            self._progress.update(self._bar, metrics=figures)
            if not self._console.is_terminal:
                self._console.print(f"step {step}/{total}  {figures}")

    def callback(self) -> Any:
        """For transformers' trainer."""
        from transformers import TrainerCallback

        display = self

        class Watch(TrainerCallback):
            def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
                display.update(state.global_step, state.max_steps, {})

            def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **_: Any) -> None:
                display.update(state.global_step, state.max_steps, logs or {})

        return Watch()


_LOSSES = ("loss", "head_loss", "lm_loss")


def figures_table(figures: dict[str, Any]) -> Table:
    """Precision and recall of hard predictions, ranking and calibration of probabilities, by polarity.

    A polarity that people have not marked anywhere has no figures.
    """
    title = f"{figures['examples']} answers; {figures['spans_per_answer']:.2f} spans an answer"
    table = Table(title=f"{title}; {figures['parse_rate']:.1%} could be read")
    for column in ("", "share", "precision", "recall", "F1", "AP", "P@R .25", "ECE"):
        table.add_column(column, justify="left" if not column else "right", no_wrap=True)
    for label in ("poor", "good"):
        if not figures["tokens"][label]["share"]:
            continue
        for unit in ("tokens", "words", "spans"):
            row = figures[unit][label]
            names = ("share", "precision", "recall", "f1", "average_precision", "precision_at_recall_25", "ece")
            table.add_row(f"{label} {unit}", *(f"{row[name]:.3f}" if name in row else "" for name in names))
    return table


def _training_table(summary: dict[str, Any]) -> Table:
    table = Table("", "train", "held out")
    parts = [summary["train"], summary["heldout"]]
    table.add_row("examples", *(str(part["examples"]) for part in parts))
    for label in ("good", "neutral", "poor"):
        table.add_row(f"{label} tokens", *(str(part["tokens"][label]) for part in parts))
    table.add_row("sources that lost their middle", *(str(part["cut_sources"]) for part in parts))
    for why in sorted({why for part in parts for why in part["left_out"]}):
        table.add_row(f"left out: {why}", *(str(part["left_out"].get(why, 0)) for part in parts))
    return table


def _examples(source: Path) -> list[Example]:
    from text2grad.schema import read_examples

    return list(read_examples(source))
