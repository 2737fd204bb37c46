"""`text2grad generate`: answers to prompts of your own, or a conversation."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape
from rich.text import Text

from text2grad.cli.console import Console
from text2grad.cli.options import (
    AnsweringModel,
    DataColumn,
    Debug,
    Device,
    Overwrite,
    PlainPrompts,
    check_output,
    pairs,
)
from text2grad.cli.progress import PhaseDisplay, silence_libraries
from text2grad.errors import UserError
from text2grad.schema import Example, Message

if TYPE_CHECKING:
    from text2grad.evaluate import Answerer

Respond = Callable[[list[Message]], str]


def generate(
    model: AnsweringModel,
    prompt: Annotated[list[str] | None, typer.Option(help="A prompt; may be repeated.")] = None,
    file: Annotated[
        str | None, typer.Option(help="Prompts, as data.train takes them; their answers go to --output.")
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="JSON lines with the prompts and their answers.")
    ] = None,
    column: DataColumn = None,
    system: Annotated[str | None, typer.Option(help="A system message for --prompt and for conversations.")] = None,
    samples: Annotated[int, typer.Option(min=1, help="Answers per prompt.")] = 1,
    temperature: Annotated[
        float | None, typer.Option(min=0, help="Of sampling; default: 0, the most probable answer; 1 for several.")
    ] = None,
    max_tokens: Annotated[int, typer.Option(min=1, help="Tokens of the longest answer.")] = 256,
    seed: Annotated[int, typer.Option(min=0)] = 0,
    plain_prompts: PlainPrompts = False,
    device: Device = None,
    overwrite: Overwrite = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object per answer.")] = False,
    debug: Debug = False,
) -> None:
    """Let a model or a run answer: a prompt, a file of prompts, or you, in a conversation.

    Without --prompt and --file, a conversation starts if this is a terminal, else standard input is the prompt. In a
    conversation, /reset forgets what was said, and Ctrl-D ends it.

    Example: text2grad generate runs/quickstart --prompt "Summarise: ..."
    """
    from text2grad.data.registry import load_examples
    from text2grad.evaluate import Answerer
    from text2grad.schema import write_examples

    silence_libraries()
    if prompt and file:
        raise UserError("give either --prompt or --file")
    if column and file is None:
        raise UserError("--column is for the data of --file; give both or neither")
    if file is not None and output is None:
        raise UserError("--file needs a file for the answers: -o answers.jsonl")
    if output is not None:
        check_output(output, overwrite, [file] if file else [])
    temperature = temperature if temperature is not None else float(samples > 1)
    console, errors = Console(), Console(stderr=True)
    if file is None and not prompt and sys.stdin.isatty():
        if output is not None or samples > 1:
            raise UserError("--output and --samples are for prompts: give --prompt or --file")
        with errors.status("Loading the model"):
            answerer = Answerer(model, device, plain_prompts)
        chat(console, lambda said: _respond(answerer, said, max_tokens, temperature, seed), system)
        return
    examples = (
        load_examples(file, "train", pairs(column, "--column prompt=question"))
        if file
        else _to_examples(prompt or [sys.stdin.read()], system)
    )
    with PhaseDisplay(errors) as display:
        display.on_phase("Loading the model")
        answerer = Answerer(model, device, plain_prompts)
        display.on_phase("Answering")
        answers = answerer.answer(examples, max_tokens, temperature, samples, seed, display.on_progress)
    if output is not None:
        write_examples(output, answers)
        errors.print(f"{len(answers)} answer{'' if len(answers) == 1 else 's'}: {escape(str(output))}", soft_wrap=True)
        return
    for answer in answers:
        if as_json:
            print(json.dumps(answer.model_dump(mode="json", exclude_defaults=True)))  # ASCII: commands no terminal
        else:
            console.print(Text(answer.completion), soft_wrap=True)


def chat(console: Console, respond: Respond, system: str | None = None) -> None:
    """Talk until the input ends. /reset forgets the conversation."""
    console.print("/reset starts anew, Ctrl-D ends.", style="dim")
    start = [Message(role="system", content=system)] if system else []
    said = list(start)
    while True:
        try:
            line = console.input("[bold]> [/bold]").strip()
        except EOFError:
            console.print()
            return
        if line == "/reset":
            said = list(start)
        elif line:
            said.append(Message(role="user", content=line))
            try:
                answer = respond(said)
            except UserError as error:  # as a conversation that has become too long
                said.pop()
                console.print(f"[bold red]Error:[/bold red] {escape(str(error))}", soft_wrap=True)
                continue
            said.append(Message(role="assistant", content=answer))
            console.print(Text(answer), soft_wrap=True)


def _respond(answerer: Answerer, said: list[Message], max_tokens: int, temperature: float, seed: int) -> str:
    example = Example(id="conversation", prompt=said)
    (answer,) = answerer.answer([example], max_tokens, temperature, seed=seed + len(said))
    return answer.completion


def _to_examples(prompts: list[str], system: str | None) -> list[Example]:
    def messages(text: str) -> str | list[Message]:
        return [Message(role="system", content=system), Message(role="user", content=text)] if system else text

    return [Example(id=str(number), prompt=messages(text)) for number, text in enumerate(prompts, 1)]
