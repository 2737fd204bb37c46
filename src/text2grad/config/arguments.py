"""What is wrong with the arguments of a run, as far as it shows without importing the trainer, which takes seconds."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from text2grad.config.packaged import preset_names, resolve_config
from text2grad.errors import UserError
from text2grad.settings import did_you_mean

KEYS = ("model", "data", "critic", "credit", "policy", "evaluate", "report", "seed", "output_dir")  # of RunConfig


def check_arguments(config: Path | None, overrides: Sequence[str]) -> None:
    """Raise UserError where the configuration does not exist, or an override is no `section.key=value`."""
    if config is not None:
        find_config(config)
    for override in overrides:
        key = split_override(override)[0].partition(".")[0]
        if key not in KEYS:
            raise UserError(f'{override}: unknown key "{key}"{did_you_mean(key, KEYS)}')


def find_config(path: Path) -> Path:
    """Return the file or preset of that name; raise UserError where there is none."""
    found = resolve_config(path)
    if not found.exists():
        raise UserError(f"{found}: no such file or preset; the presets are {', '.join(preset_names())}")
    return found


def split_override(override: str) -> tuple[str, str]:
    """Return the dotted key of an override and the text of its value."""
    key, equals, text = override.partition("=")
    if not equals:
        raise UserError(
            f'"{override}" is not a setting; write it as section.key=value, for instance policy.max_steps=10'
        )
    return key, text
