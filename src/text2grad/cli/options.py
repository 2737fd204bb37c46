"""Options that several commands share, and how they become settings."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from text2grad.config.packaged import preset_names
from text2grad.distributed.environment import is_main_process
from text2grad.errors import UserError

AnswerColumn = Annotated[
    list[str] | None,
    typer.Option("--column", help="A column whose name does not tell, as field=column: prompt=Frage; may be repeated."),
]
Config = Annotated[Path, typer.Argument(help=f"A YAML file, or a preset: {', '.join(preset_names())}.")]
CriticOption = Annotated[
    list[str] | None, typer.Option("--option", help="An argument of the critic, as name=value; may be repeated.")
]
Debug = Annotated[bool, typer.Option("--debug", help="Show the full traceback if the command fails.")]
FeedbackFile = Annotated[
    Path, typer.Option("--output", "-o", help="JSON lines with the records and their feedback; continued if it exists.")
]
Model = Annotated[str | None, typer.Option(help="Short for model.name=...: smollm2, a hub name, a folder, or a run.")]
OutputDir = Annotated[Path | None, typer.Option("--output-dir", "-o", help="Short for output_dir=...: the run folder.")]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace the output file if it exists.")]
Resume = Annotated[bool, typer.Option("--resume", help="Continue the run in output_dir from its last checkpoint.")]
AnsweringModel = Annotated[str, typer.Argument(help="smollm2, a hub name, a folder with a model, or a run folder.")]
DataColumn = Annotated[
    list[str] | None,
    typer.Option("--column", help="A column of the data, as field=column: prompt=question; repeatable."),
]
Device = Annotated[str | None, typer.Option(help="cpu, cuda or cuda:1; default: a GPU where there is one.")]
PlainPrompts = Annotated[
    bool, typer.Option("--plain-prompts", help="Use prompts as plain text, for models without a chat template.")
]
RetryFailed = Annotated[bool, typer.Option("--retry-failed", help="Retry records whose feedback failed.")]
UnsafeCritic = Annotated[
    bool, typer.Option("--unsafe-exec", help="Let the code critic run programs if no sandbox is available.")
]
Watch = Annotated[bool, typer.Option("--watch", help="Serve the report on this machine while the run goes on.")]


def check_output(output: Path, overwrite: bool, sources: Iterable[str | Path] = ()) -> None:
    """Refuse a file that exists, unless it is to be replaced; and, whatever is said, one of those that are read."""
    if any(Path(source).resolve() == output.resolve() for source in sources):
        raise UserError(f"{output} is read by this command, and would be lost; give another file to write to")
    if output.exists() and not overwrite:
        raise UserError(f"{output} exists; give another file, or --overwrite to replace it")


@contextmanager
def watching(folder: Path, watch: bool) -> Iterator[None]:
    """Serve the report of a run folder meanwhile, where that is asked for, and print its address."""
    if not watch or not is_main_process():
        yield
        return
    from text2grad.report.watch import watch as serve

    with serve(folder) as address:
        print(f"Watch the run at {address}", flush=True)
        yield


@contextmanager
def explaining_critic_options(config: Path | None, settings: Iterable[str]) -> Iterator[None]:
    """Say what to do about options of the file's critic where the settings name another critic."""
    from text2grad.critics.registry import UnknownOptionError

    try:
        yield
    except UnknownOptionError as error:
        keys = {setting.partition("=")[0] for setting in settings}
        own = {"critic", "critic.options", f"critic.options.{error.option}"}
        if config is None or "critic.name" not in keys or keys & own:
            raise
        raise UserError(
            f"{error} It is an option of the critic in {config}; leave out its options with critic.options={{}}"
        ) from error


def to_overrides(values: dict[str, object]) -> list[str]:
    """Format the options that were given as `section.key=value` settings."""
    return [f"{key}={json.dumps(str(value), ensure_ascii=False)}" for key, value in given(values).items()]


def given(values: dict[str, Any], options: list[str] | None = None) -> dict[str, Any]:
    """Return the values that were given (None means not given), with those of `--option name=value` on top.

    The value of an option is YAML: 3 is a number, true a boolean, [a, b] a list.
    """
    import yaml

    result = {name: value for name, value in values.items() if value is not None}
    for option in options or []:
        name, equals, value = option.partition("=")
        if not equals or not name.isidentifier():
            raise UserError(f'--option "{option}" is not of the form name=value')
        try:
            result[name] = yaml.safe_load(value)
        except yaml.YAMLError as error:
            raise UserError(f'--option "{option}": the value is not valid YAML; put quotes around it') from error
    return result


def pairs(values: list[str] | None, example: str) -> dict[str, str]:
    """Parse options of the form name=value. example: one of them, for the error."""
    found = {}
    for value in values or []:
        name, equals, content = value.partition("=")
        if not equals or not name or not content:
            raise UserError(f'"{value}" is not of the form name=value, as in {example}')
        found[name.strip()] = content.strip()
    return found
