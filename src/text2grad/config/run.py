"""The configuration of a run: one YAML file with a section per stage; the command line can set every key."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml
from pydantic import Field, NonNegativeFloat, NonNegativeInt, PositiveInt, ValidationError

from text2grad.config.arguments import find_config, split_override
from text2grad.config.packaged import preset_names
from text2grad.data.registry import DATASETS, load_examples
from text2grad.errors import UserError
from text2grad.models.loading import DEFAULT_MODEL
from text2grad.models.lora import LoraSettings
from text2grad.rewards.credit import Credit
from text2grad.schema import Example
from text2grad.settings import Settings, flatten
from text2grad.trainer.config import PolicySettings, Text2GradConfig


class ModelSettings(Settings):
    """The model to train, and which of its weights."""

    name: str = Field(DEFAULT_MODEL, description="`smollm2`, a Hugging Face name, a folder, or a run to continue from")
    lora: LoraSettings | None = Field(
        LoraSettings(), description="of a new adapter, while that of a run is kept as it is; null trains all weights"
    )
    plain_prompts: bool = Field(False, description="take prompts as plain text, without a chat template")


class DataSettings(Settings):
    """Prompts: files, folders, `hf:OWNER/NAME[:config][#split]`, or names of data sets (text2grad.data.registry)."""

    train: str = Field("summaries", description="prompts to train on; with `train --feedback`, the file of feedback")
    eval: str | None = Field("summaries", description="held-out prompts, answered before and after; null: none")
    columns: dict[str, str] = Field(
        {}, description="the column of each field, as {prompt: question, reference: answer}; of files and the hub"
    )
    eval_columns: dict[str, str] | None = Field(None, description="the same for `eval`; null: as `columns`")

    def load_train(self) -> list[Example]:
        """Load the prompts to train on."""
        return load_examples(self.train, "train", self.columns)

    def load_eval(self) -> list[Example]:
        """Load the held-out prompts; empty without any."""
        if self.eval is None:
            return []
        return load_examples(self.eval, "heldout", self.columns if self.eval_columns is None else self.eval_columns)


class CriticSettings(Settings):
    """The critic that gives feedback on completions."""

    name: str = Field("grounding", description="a name of text2grad.critics.registry, or package.module:Class")
    options: dict[str, Any] = Field({}, description="arguments of the critic")


class EvaluateSettings(Settings):
    """How held-out prompts are evaluated: before, after and, with `policy.eval_steps`, during training."""

    temperature: NonNegativeFloat | None = Field(None, description="sampling temperature; null: as in training")
    resamples: PositiveInt = Field(10_000, description="number of resamples of the paired bootstrap")


class ReportSettings(Settings):
    """What the terminal shows at the end."""

    examples: NonNegativeInt = Field(3, description="number of held-out examples shown side by side")


class RunConfig(Settings):
    """All settings of `text2grad run`."""

    model: ModelSettings = ModelSettings()
    data: DataSettings = DataSettings()
    critic: CriticSettings = CriticSettings()
    credit: Credit = Credit()
    policy: PolicySettings = PolicySettings()
    evaluate: EvaluateSettings = EvaluateSettings()
    report: ReportSettings = ReportSettings()
    seed: NonNegativeInt = Field(0, description="of sampling and of the order of prompts")
    output_dir: Path = Field(Path("runs/run"), description="the run folder: metrics, samples, checkpoints, report.html")

    def trainer_args(self) -> Text2GradConfig:
        """Return the trainer's arguments."""
        return Text2GradConfig(
            **self.policy.model_dump(),
            output_dir=self.output_dir,
            seed=self.seed,
            credit=self.credit,
            eval_temperature=self.evaluate.temperature,
        )

    def to_yaml(self) -> str:
        """Return the YAML file that repeats this run."""
        return yaml.safe_dump(self.model_dump(mode="json"), sort_keys=False, allow_unicode=True)


def load_config(
    path: Path | None, overrides: Sequence[str] = (), defaults: dict[str, dict[str, Any]] | None = None
) -> RunConfig:
    """Read a YAML file or preset, apply `section.key=value` overrides, and validate the result.

    path: None for no file. Its relative data.train and data.eval are of the current folder, or else of the file's own.
    defaults: values per section that neither the file nor an override sets.
    """
    values = _read(path) if path is not None else {}
    alone = copy.deepcopy(values)
    for override in overrides:
        _set(values, override)
    for section, standard in (defaults or {}).items():
        for one in (values, alone):
            one[section] = _with_defaults(one.get(section) or {}, standard)
    return RunConfig.parse(values, where=_find_origin(path, alone, values, overrides))


def _with_defaults(given: dict[str, Any], defaults: dict[str, Any]) -> dict[str, Any]:
    """Return the values with those of `defaults` that they lack, groups of settings included."""
    merged = defaults | given
    for key, group in defaults.items():
        if isinstance(group, dict) and isinstance(merged[key], dict):
            merged[key] = group | merged[key]
    return merged


def _find_origin(path: Path | None, alone: dict[str, Any], values: dict[str, Any], overrides: Sequence[str]) -> str:
    """Return what an error in the values is to be attributed to: the overrides of the key, else the file.

    alone: the values without overrides. An error that is not of one key, but of a section, is that of an override where
    the file alone has no error.
    """
    location = _first_error(values)
    keys = {override: tuple(override.partition("=")[0].split(".")) for override in overrides}
    of_key = [override for override, key in keys.items() if location[: len(key)] == key]
    of_section = [override for override, key in keys.items() if key[: len(location)] == location]
    guilty = of_key or (of_section if not _first_error(alone) else [])
    return ", ".join(guilty) or str(path or "command line")


def _first_error(values: dict[str, Any]) -> tuple[str, ...]:
    """Return the location of the first error; empty where there is none."""
    try:
        RunConfig.model_validate(values)
    except ValidationError as error:
        return tuple(map(str, error.errors(include_url=False)[0]["loc"]))
    return ()


def _read(path: Path) -> dict[str, Any]:
    path = find_config(path)
    try:
        values = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"{path} cannot be read: {error}") from error
    except yaml.YAMLError as error:
        raise UserError(f"{path} is not valid YAML: {error}") from error
    if values is None:
        raise UserError(
            f"{path} is empty; `text2grad init` writes a configuration to change, and the presets are "
            f"{', '.join(preset_names())}"
        )
    if not isinstance(values, dict):
        raise UserError(f"{path}: expected sections such as `model:` and `policy:`, found a {type(values).__name__}")
    return _find_data(values, path.parent)


def _find_data(values: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Return the values with the data files that are beside the configuration, and not in the current folder."""
    data = values.get("data")
    if not isinstance(data, dict):
        return values
    beside = {
        key: str(folder / source)
        for key in ("train", "eval")
        if isinstance(source := data.get(key), str)
        if source not in DATASETS and not Path(source).exists() and (folder / source).exists()
    }
    return {**values, "data": {**data, **beside}}


def changed_keys(old: RunConfig, new: RunConfig) -> list[str]:
    """Return the dotted names of the keys in which two configurations differ."""
    before, after = flatten(old.model_dump(mode="json")), flatten(new.model_dump(mode="json"))
    return sorted(key for key in before.keys() | after.keys() if before.get(key) != after.get(key))


def _set(values: dict[str, Any], override: str) -> None:
    dotted, text = split_override(override)
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
