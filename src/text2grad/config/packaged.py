"""Files that ship with the package: run presets, configurations of Accelerate, and the templates of `init`."""

from __future__ import annotations

from pathlib import Path

PRESETS = Path(__file__).parent / "presets"
ACCELERATE_CONFIGS = Path(__file__).parent / "accelerate"
TEMPLATE = Path(__file__).parent / "template"
COMMENTS_TEMPLATE = Path(__file__).parent / "template_comments"


def preset_names() -> list[str]:
    """Return the names of the run presets."""
    return _names(PRESETS)


def accelerate_names() -> list[str]:
    """Return the names of the configurations for `accelerate launch`."""
    return _names(ACCELERATE_CONFIGS)


def resolve_config(path: Path) -> Path:
    """Return the file itself if it exists, else the preset of that name if there is one, else `path`."""
    preset = PRESETS / f"{path}.yaml"
    return preset if not path.exists() and path.name == str(path) and preset.is_file() else path


def _names(folder: Path) -> list[str]:
    return sorted(path.stem for path in folder.glob("*.yaml"))
