"""`text2grad studio`: a web page on which people say what is good and poor, and teach the model."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from text2grad.cli.options import AnswerColumn, CriticOption, Debug, Overwrite, check_output, given, pairs
from text2grad.cli.progress import silence_libraries
from text2grad.errors import UserError

if TYPE_CHECKING:
    from text2grad.studio.workspace import Workspace

FORMATS = ("feedback", "label-studio", "argilla")


def studio(
    source: Annotated[
        Path,
        typer.Argument(
            help="Answers: JSON lines, CSV, an export of Label Studio, Argilla or doccano; a run folder; or a folder "
            "with such files."
        ),
    ] = Path(),
    critic: Annotated[
        str | None,
        typer.Option(help="Who comments first, for you to correct: grounding, qa, code, reward:RUN, llm, ..."),
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(help="Load this model, to teach it while you watch: smollm2, a hub name, or a folder."),
    ] = None,
    device: Annotated[str | None, typer.Option(help="Of the model: cpu, or a GPU where there is one.")] = None,
    export: Annotated[
        Path | None, typer.Option(help="Write the annotations to this file and exit; nothing is served.")
    ] = None,
    form: Annotated[str, typer.Option("--format", help=f"Of --export: {', '.join(FORMATS)}.")] = "feedback",
    annotator: Annotated[str | None, typer.Option(help="Of --export: only what this person said.")] = None,
    overwrite: Overwrite = False,
    store: Annotated[
        Path | None, typer.Option(help="Where annotations are kept; default: SOURCE.studio.sqlite beside the source.")
    ] = None,
    column: AnswerColumn = None,
    option: CriticOption = None,
    host: Annotated[
        str, typer.Option(help="An address of this machine, for annotators on others; a token is then demanded.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 picks a free one.")] = 8030,
    allowed_host: Annotated[
        list[str] | None, typer.Option(help="Another name of this machine in addresses; may be repeated.")
    ] = None,
    browser: Annotated[bool, typer.Option("--open", help="Open the page in the browser.")] = False,
    debug: Debug = False,
) -> None:
    """Say what is good, poor and missing in answers; see what it does to the model; teach it.

    On the page: select words with the mouse or the keyboard and press g (good), p (poor) or m (missing); say why, and
    what should stand there. Or write a comment: the studio shows which words it seems to be about, and you accept or
    drop. `?` lists all keys. Every edit is saved at once; several people can work on one file, each under their own
    name, and Review shows where they differ.

    With --model, Teach applies your feedback to the model at once and shows what changed: keep it or discard it. Train
    runs `text2grad train --feedback` on all comments.

    Only this machine can open the page. With --host others can too, with the token in the address that is printed, or
    the one in TEXT2GRAD_STUDIO_TOKEN. The connection is not encrypted: use it in a network that you trust, or through
    an SSH tunnel.

    Examples: text2grad studio answers.jsonl --critic grounding; text2grad studio runs/quickstart --model smollm2;
    text2grad studio answers.jsonl --export feedback.jsonl
    """
    from text2grad.studio.workspace import Workspace

    workspace = Workspace(source, store, pairs(column, "--column prompt=Frage"))
    if export is not None:
        if not workspace.is_single:
            raise UserError(f"--export needs one file or run, but {workspace.root} is a folder; name the file")
        if _is_input(export, workspace.root, store):
            raise UserError(f"{export} is what the studio reads; give another file to export to")
        check_output(export, overwrite)
        _export(workspace, export, form, annotator)
        return
    try:
        from text2grad.studio.serve import MAX_BODY_BYTES, serve
    except ModuleNotFoundError as error:
        raise UserError('the studio needs fastapi and uvicorn: pip install "text2grad[studio]"') from error
    from text2grad.studio.access import choose_token
    from text2grad.studio.studio import Studio
    from text2grad.studio.training_runs import TrainingRuns
    from text2grad.web.server import WebSettings

    silence_libraries()
    settings = WebSettings(host=host, port=port, allowed_hosts=allowed_host or [], max_body_bytes=MAX_BODY_BYTES)
    parts = Studio(workspace, TrainingRuns(workspace.folder, model), token=choose_token(host))
    if critic is not None:
        from text2grad.critics.registry import make_critic
        from text2grad.studio.assistant import Assistant

        parts.assistant = Assistant(make_critic(critic, given({}, option)), critic)
    if model is not None:
        from text2grad.studio.lessons import Lessons
        from text2grad.studio.teaching import Teacher

        parts.lessons = Lessons(Teacher(model, device), model)
    serve(parts, settings, browser)


def _export(workspace: Workspace, path: Path, form: str, annotator: str | None) -> None:
    from text2grad.studio import exports

    if form not in FORMATS:
        raise UserError(f'--format "{form}" is unknown; choose one of {", ".join(FORMATS)}')
    project = workspace.open(workspace.sources()[0].id)
    count = exports.write(project, path, form, annotator)  # type: ignore[arg-type]
    workspace.close()
    print(f"{count} answers with feedback: {path}")


def _is_input(path: Path, source: Path, store: Path | None) -> bool:
    """Whether a path is the opened file, a file of the opened run, or a store."""
    path, inputs = path.resolve(), [one.resolve() for one in (source, store) if one is not None]
    return any(path == one or one in path.parents for one in inputs) or ".studio.sqlite" in path.name
