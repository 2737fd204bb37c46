"""The recipe in examples/verl: its data can be read back, and verl accepts data and settings."""

from __future__ import annotations

import re
import runpy
import shlex
import sys
from pathlib import Path
from typing import Any

import pytest
from datasets import load_dataset

from text2grad.data import summaries
from text2grad.integrations.verl.rows import to_example

RECIPE = Path(__file__).parents[3] / "examples" / "verl"


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(sys, "argv", ["prepare.py", "--out", str(tmp_path / "data")])
    runpy.run_path(str(RECIPE / "prepare.py"), run_name="__main__")
    return tmp_path / "data"


def test_the_critic_gets_the_examples_that_were_prepared(data: Path, tmp_path: Path) -> None:
    rows = load_dataset("parquet", data_files=str(data / "train.parquet"), split="train", cache_dir=str(tmp_path))
    assert [to_example(row) for row in rows] == list(summaries.load("train"))


@pytest.mark.filterwarnings("default")
def test_verl_accepts_the_settings_and_the_data(data: Path, tiny_model: Path) -> None:
    pytest.importorskip("verl", reason="needs verl 0.9.1, in an environment of its own: docs/verl.md")
    from hydra import compose, initialize_config_module
    from verl.utils.dataset.rl_dataset import RLHFDataset

    from text2grad.integrations.verl.advantages import VERL_NAMES
    from text2grad.models.loading import load_tokenizer

    config = compose_recipe(compose, initialize_config_module, MODEL=str(tiny_model), DATA=str(data))
    assert config.algorithm.adv_estimator in VERL_NAMES
    assert config.algorithm.text2grad.critic.name == "grounding"
    dataset: Any = RLHFDataset([str(data / "train.parquet")], load_tokenizer(tiny_model), config.data)
    row = dataset[0]
    assert to_example(row) == next(summaries.load("train"))
    assert row["raw_prompt"][0]["role"] == "user"


def compose_recipe(compose: Any, initialize_config_module: Any, **variables: str) -> Any:
    """Return verl's configuration with the arguments of the recipe's command."""
    command = (RECIPE / "train.sh").read_text().partition("main_ppo")[2]
    values = {"NGPUS": "1", "NNODES": "1"} | variables
    filled = re.sub(r"\$(\w+)", lambda match: values[match[1]], command.replace('"$@"', ""))
    overrides = [argument for argument in shlex.split(filled) if argument.strip()]
    with initialize_config_module("verl.trainer.config", version_base=None):
        return compose("ppo_trainer", overrides)
