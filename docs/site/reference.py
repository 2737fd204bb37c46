"""The reference pages, made from the code: commands, settings, data schema and Python API."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from typing import Any, get_args

import typer
from pydantic import BaseModel
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

import text2grad
from text2grad import schema
from text2grad.cli.app import app
from text2grad.config.packaged import PRESETS, preset_names
from text2grad.config.run import RunConfig
from text2grad.critics.llm.settings import LLMSettings
from text2grad.reward_model.train import RewardTrainingSettings

SETTINGS = (RunConfig, RewardTrainingSettings, LLMSettings)
SCHEMA = (schema.Example, schema.Feedback, schema.Span, schema.Omission, schema.Message)
# What is documented besides `text2grad.__all__`: by heading, import paths.
API = {
    "Feedback to token rewards": [
        "text2grad.align.tokens.offsets",
        "text2grad.align.reading.read_comment",
        "text2grad.rewards.credit.Credit",
        "text2grad.rewards.corrections.find_corrections",
    ],
    "Files": [
        "text2grad.schema.read_examples",
        "text2grad.schema.write_examples",
        "text2grad.schema.to_dataset",
        "text2grad.schema.from_dataset",
        "text2grad.data.registry.load_examples",
        "text2grad.critics.human.critic.read_feedback",
    ],
    "Critics": [
        "text2grad.critics.registry.make_critic",
        "text2grad.critics.base.CriticTraits",
        "text2grad.critics.rules.grounding.GroundingCritic",
        "text2grad.critics.rules.qa.QACritic",
        "text2grad.critics.code.critic.CodeCritic",
        "text2grad.critics.rules.lint.LintCritic",
        "text2grad.critics.human.critic.HumanCritic",
        "text2grad.critics.llm.critic.LLMCritic",
        "text2grad.critics.llm.local.LocalCritic",
        "text2grad.critics.combined.CombinedCritic",
        "text2grad.critics.check.check.check_critic",
    ],
    "Training": [
        "text2grad.trainer.offline.OfflineTrainer",
        "text2grad.trainer.callbacks.Callback",
    ],
}


def pages() -> dict[str, str]:
    """Return the text of each page by its path in the site."""
    return {
        "reference/commands.md": "".join(_commands()),
        "reference/settings.md": "".join(_settings_page()),
        "reference/schema.md": "".join(_schema_page()),
        "reference/api.md": "".join(_api()),
    }


def _commands() -> Iterator[str]:
    yield "# Commands\n\n`text2grad COMMAND --help` prints the same. `--debug` shows the traceback of an error.\n\n"
    yield from _command(typer.main.get_command(app), "text2grad")


def _command(command: Any, path: str) -> Iterator[str]:
    subcommands = getattr(command, "commands", {})
    if not subcommands:
        yield f"## {path.removeprefix('text2grad ')}\n\n{_prose(command.help)}\n\n"
        parameters = [parameter for parameter in command.params if "--debug" not in parameter.opts]
        yield _table(["argument or option", "default", "what it is"], [_parameter(one) for one in parameters])
    for name, subcommand in subcommands.items():
        yield from _command(subcommand, f"{path} {name}")


def _parameter(parameter: Any) -> list[str]:
    names = [name for name in (*parameter.opts, *parameter.secondary_opts) if name.startswith("-")]
    shown = ", ".join(f"`{name}`" for name in names) or f"`{parameter.name.upper()}`"
    default = "" if parameter.default in (None, False) else _value(parameter.default)
    text = (parameter.help or "").replace("[", r"\[")  # brackets are no links
    return [shown, "required" if parameter.required else default, text]


def _settings_page() -> Iterator[str]:
    yield (
        "# Settings\n\nA run is one YAML file with a section per stage: `text2grad run config.yaml`. Every key can be "
        "set on the command line, as in `policy.max_steps=50`; an unknown key is an error that names the nearest one. "
        "The run folder's `config.yaml` has the values that were used.\n\n## A run\n\n"
    )
    yield from _sections(RunConfig, "", "The top level")
    yield "## Presets\n\n`text2grad run NAME` takes these files, which ship with the package.\n\n"
    for name in preset_names():
        yield f"### {name}\n\n```yaml\n{(PRESETS / f'{name}.yaml').read_text(encoding='utf-8')}```\n\n"
    yield "## The reward model\n\n`text2grad reward train` takes these as `--option name=value`.\n\n"
    yield from _sections(RewardTrainingSettings, "", "Training of the reward model")
    yield "## The llm critic\n\n`critic.options` of `llm`, and `--option name=value` of `text2grad annotate`.\n\n"
    yield _fields(LLMSettings)


def _sections(settings: type[BaseModel], prefix: str, title: str) -> Iterator[str]:
    """The keys of a section, then its subsections."""
    yield f"### {title}\n\n{_introduction(settings)}\n\n{_fields(settings, prefix)}"
    for name, field in settings.model_fields.items():
        if (section := section_of(field)) is not None:
            yield from _sections(section, f"{prefix}{name}.", f"`{prefix}{name}` {{ #{_anchor(prefix + name)} }}")


def section_of(field: FieldInfo) -> type[BaseModel] | None:
    """Return the model of a field that holds one."""
    variants = get_args(field.annotation) or (field.annotation,)
    found = [variant for variant in variants if isinstance(variant, type) and issubclass(variant, BaseModel)]
    return found[0] if found else None


def help_of(model: type[BaseModel], name: str) -> str:
    """Return the description of a field, or what the docstring says in a line that begins with its name."""
    field = model.model_fields[name]
    section = section_of(field)
    if field.description:
        return field.description
    said = re.search(
        rf"^(?:\w+, )*{name}(?:, \w+)*: (.*?)(?=^\S|\Z)", inspect.getdoc(model) or "", re.MULTILINE | re.DOTALL
    )
    if said is not None:
        return " ".join(said[1].split())
    return _introduction(section).partition("\n")[0] if section is not None else ""


def _introduction(model: type[BaseModel]) -> str:
    """The docstring without the lines about single fields."""
    documented = re.compile(rf"(?:{'|'.join(model.model_fields)})(?:, \w+)*: ")
    lines = []
    inside = False
    for line in (inspect.getdoc(model) or "").splitlines():
        inside = bool(documented.match(line)) or (inside and line.startswith(" "))
        lines += [] if inside else [line]
    return "\n".join(lines).strip()


def _fields(model: type[BaseModel], prefix: str = "") -> str:
    rows = []
    for name, field in model.model_fields.items():
        section = section_of(field)
        default = _value(field.get_default(call_default_factory=not field.default_factory_takes_validated_data))
        if section is not None:
            default = f"[section](#{_anchor(prefix + name)})"
        if field.is_required():
            default = "required"
        rows.append([f"`{prefix}{name}`", _type(field), default, help_of(model, name)])
    return _table(["name", "type", "default", "what it is"], rows)


def _schema_page() -> Iterator[str]:
    yield (
        "# Data schema\n\nOne record per line of a JSON lines file is an `Example`. Unknown fields of an example go to "
        "`meta`; elsewhere they are errors. Fields that have their default value may be left out. Offsets count code "
        "points of the text, `end` exclusive.\n\n"
    )
    for model in SCHEMA:
        yield f"## {model.__name__}\n\n{_introduction(model)}\n\n"
        rows = []
        for name, field in model.model_fields.items():
            default = "required" if field.is_required() else _value(field.default)
            rows.append([f"`{name}`", _type(field), default, help_of(model, name)])
        yield _table(["field", "type", "default", "what it is"], rows)


def _api() -> Iterator[str]:
    yield "# Python API\n\nWhat `from text2grad import ...` offers, then what lies deeper.\n\n## text2grad\n\n"
    for name in text2grad.__all__:
        if not name.startswith("_"):
            value = getattr(text2grad, name)
            yield f"::: {value.__module__}.{name}\n    options:\n      show_root_full_path: false\n\n"
    for heading, paths in API.items():
        yield f"## {heading}\n\n" + "".join(f"::: {path}\n\n" for path in paths)


def _type(field: FieldInfo) -> str:
    """The type as a reader writes it, with its bounds."""
    text = str(field.annotation) if get_args(field.annotation) else getattr(field.annotation, "__name__", "")
    text = re.sub(r"Annotated\[(\w+),.*?\)\]\)?\]", r"\1", text)
    text = re.sub(r"\b(?:typing|pathlib|text2grad[\w.]*)\.|<class '|'>", "", text)
    text = re.sub(r"Literal\[(.*?)\]", lambda options: options[1].replace("'", "").replace(", ", " | "), text)
    text = text.replace(" | ", " or ")
    text = text.replace("NoneType", "null").replace("None", "null").replace("Path", "path").replace("...", "…")
    bounds = {"gt": ">", "ge": "≥", "lt": "<", "le": "≤"}
    limits = [
        f"{sign} {getattr(item, key):g}"
        for item in field.metadata
        for key, sign in bounds.items()
        if hasattr(item, key)
    ]
    return f"`{text}`" + (f" {', '.join(limits)}" if limits else "")


def _value(value: Any) -> str:
    if value is None or value is PydanticUndefined or callable(value):
        return "" if value is not None else "`null`"
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    return f"`{value}`" if value != "" and value != () and value != [] and value != {} else "empty"


def _anchor(name: str) -> str:
    return re.sub(r"[^\w-]", "", name).lower()


def _prose(text: str) -> str:
    """The help of a command; its example as a code block."""
    said, mark, example = text.partition("Example: ")
    lines = [line.strip() for line in said.strip().splitlines()]
    shown = " ".join(example.split()).replace(", or text2grad", "\ntext2grad")
    return "\n".join(lines) + (f"\n\n```text\n{shown}\n```" if mark else "")


def _table(columns: list[str], rows: list[list[str]]) -> str:
    if not rows:
        return ""
    cells = [columns, ["---"] * len(columns), *rows]
    return (
        "".join(
            "| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in row) + " |\n" for row in cells
        )
        + "\n"
    )
