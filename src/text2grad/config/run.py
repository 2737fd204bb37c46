"""One YAML file describes a run; its sections are named after the rooms. Every key can be set on the command line."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml
from pydantic import Field, NonNegativeFloat, NonNegativeInt, PositiveInt

from text2grad.errors import UserError
from text2grad.models.loading import DEFAULT_MODEL
from text2grad.models.lora import LoraSettings
from text2grad.rewards.mapping import Credit
from text2grad.settings import Settings, flat
from text2grad.trainer.config import PolicySettings, Text2GradConfig


class ModelSettings(Settings):
    """Which model learns, and how much of it."""

    name: str = Field(DEFAULT_MODEL, description="`smollm2`, a Hugging Face name, or a folder")
    lora: LoraSettings | None = Field(LoraSettings(), description="null trains all weights")
    plain_prompts: bool = Field(False, description="take prompts as plain text, without a chat template")


class DataSettings(Settings):
    """JSON lines files of examples, or the name of a set that comes with the package."""

    train: str = "summaries"
    heldout: str | None = "summaries"


class CriticSettings(Settings):
    """Who comments on the answers."""

    name: str = Field("grounding", description="`grounding`, or package.module:Class")
    options: dict[str, Any] = Field({}, description="arguments of the critic")


class EvaluateSettings(Settings):
    """How held-out prompts are answered: before, after and, with `policy.eval_steps`, during training."""

    temperature: NonNegativeFloat | None = Field(None, description="of the answers; null is the training temperature")
    resamples: PositiveInt = Field(10_000, description="of the paired bootstrap")


class ReportSettings(Settings):
    """What is shown at the end."""

    examples: NonNegativeInt = Field(3, description="held-out examples side by side in the terminal")


class RunConfig(Settings):
    """Everything `text2grad run` needs."""

    model: ModelSettings = ModelSettings()
    data: DataSettings = DataSettings()
    critic: CriticSettings = CriticSettings()
    credit: Credit = Credit()
    policy: PolicySettings = PolicySettings()
    evaluate: EvaluateSettings = EvaluateSettings()
    report: ReportSettings = ReportSettings()
    seed: NonNegativeInt = 0
    output_dir: Path = Path("runs/run")

    def trainer_args(self) -> Text2GradConfig:
        """The settings that the trainer sees."""
        return Text2GradConfig(
            **self.policy.model_dump(),
            output_dir=self.output_dir,
            seed=self.seed,
            credit=self.credit,
            eval_temperature=self.evaluate.temperature,
        )

    def to_yaml(self) -> str:
        """The file from which this run can be repeated."""
        return yaml.safe_dump(self.model_dump(mode="json"), sort_keys=False, allow_unicode=True)


def load_config(
    path: Path | None, overrides: Sequence[str] = (), defaults: dict[str, dict[str, Any]] | None = None
) -> RunConfig:
    """Read a run's YAML file, then set `section.key=value` overrides, then check all of it.

    path: None for no file. defaults: by section, where neither the file nor an override says otherwise.
    """
    values = _read(path) if path is not None else {}
    for override in overrides:
        _set(values, override)
    for section, standard in (defaults or {}).items():
        values[section] = standard | (values.get(section) or {})
    return RunConfig.parse(values, where=str(path or "command line"))


PRESETS = Path(__file__).parent / "presets"


def preset_names() -> list[str]:
    """Names of the presets that come with the package."""
    return sorted(path.stem for path in PRESETS.glob("*.yaml"))


def resolve_config(path: Path) -> Path:
    """The file itself where there is one, else the preset of that name."""
    preset = PRESETS / f"{path}.yaml"
    return preset if not path.exists() and path.name == str(path) and preset.is_file() else path


def _read(path: Path) -> dict[str, Any]:
    path = resolve_config(path)
    try:
        values = yaml.safe_load(path.read_text(encoding="utf-8")) or {}
    except FileNotFoundError as error:
        raise UserError(f"{path}: no such file or preset; presets: {', '.join(preset_names())}") from error
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"{path} cannot be read: {error}") from error
    except yaml.YAMLError as error:
        raise UserError(f"{path} is not valid YAML: {error}") from error
    if not isinstance(values, dict):
        raise UserError(f"{path}: expected sections such as `model:` and `policy:`, found a {type(values).__name__}")
    return values


def changed_keys(old: RunConfig, new: RunConfig) -> list[str]:
    """Dotted names of the keys in which two runs differ."""
    before, after = flat(old.model_dump(mode="json")), flat(new.model_dump(mode="json"))
    return sorted(key for key in before.keys() | after.keys() if before.get(key) != after.get(key))


def _set(values: dict[str, Any], override: str) -> None:
    dotted, equals, text = override.partition("=")
    if not equals:
        raise UserError(
            f'"{override}" is not a setting; write it as section.key=value, for instance policy.max_steps=10'
        )
    *sections, key = dotted.split(".")
    for section in sections:
        if values.get(section) is None:
            values[section] = {}
        values = values[section]
        if not isinstance(values, dict):
            raise UserError(f'"{override}": "{section}" is not a section')
    try:
        values[key] = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise UserError(f'"{override}": the value is not valid YAML; put quotes around it') from error
