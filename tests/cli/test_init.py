"""`text2grad init`: the folder that it writes can be run as it is."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from text2grad.cli.app import app
from text2grad.config.packaged import TEMPLATE, accelerate_names
from text2grad.config.run import load_config
from text2grad.errors import UserError
from text2grad.schema import Example

FILES = ["config.yaml", "heldout.jsonl", "my_critic.py", "prompts.jsonl"]
SMALL = ["policy.max_steps=1", "policy.per_device_train_batch_size=2", "policy.max_completion_length=4"]


def invoke(*arguments):
    return CliRunner().invoke(app, list(map(str, arguments)), catch_exceptions=False)


def test_the_written_folder_can_be_run(tmp_path, tiny_model, monkeypatch):
    done = invoke("init", tmp_path / "mine")
    assert done.exit_code == 0
    assert "text2grad run config.yaml" in done.output
    assert sorted(path.name for path in (tmp_path / "mine").iterdir()) == FILES
    monkeypatch.chdir(tmp_path / "mine")
    monkeypatch.delitem(sys.modules, "my_critic", raising=False)
    ran = invoke("run", "config.yaml", "--model", tiny_model, *SMALL)
    assert ran.exit_code == 0, ran.output
    assert json.loads((tmp_path / "mine/runs/first/evaluation.json").read_text())["n"] == 4


def test_existing_files_are_never_overwritten(tmp_path):
    (tmp_path / "my_critic.py").write_text("mine")
    with pytest.raises(UserError, match=r"my_critic\.py already there; nothing was written"):
        invoke("init", tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["my_critic.py"]


def test_the_current_folder_is_the_default(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert "cd " not in invoke("init").output
    assert sorted(path.name for path in Path().iterdir()) == FILES


@pytest.mark.parametrize("name", accelerate_names())
def test_a_configuration_of_accelerate_can_be_copied(tmp_path, name):
    done = invoke("init", tmp_path, "--accelerate", name)
    assert "accelerate launch --config_file accelerate.yaml -m text2grad run config.yaml" in done.output
    assert "distributed_type" in yaml.safe_load((tmp_path / "accelerate.yaml").read_text())


def test_an_unknown_configuration_of_accelerate_is_refused(tmp_path):
    with pytest.raises(UserError, match='no Accelerate configuration "fsdp"; did you mean "fsdp2"'):
        invoke("init", tmp_path, "--accelerate", "fsdp")
    assert not list(tmp_path.iterdir())


@pytest.fixture
def critic(monkeypatch):
    monkeypatch.syspath_prepend(TEMPLATE)
    monkeypatch.delitem(sys.modules, "my_critic", raising=False)
    from my_critic import ConciseCritic

    return ConciseCritic(max_words=6)


def marks(critic, completion):
    (feedback,) = critic.critique([Example(id="1", prompt="Why do glaciers move?", completion=completion)])
    return [(span.label, completion[span.start : span.end]) for span in feedback.spans], feedback


def test_the_example_critic_praises_the_topic_and_blames_repetition_and_length(critic):
    assert marks(critic, "Their weight pushes glaciers.")[0] == [("good", "glaciers")]
    assert marks(critic, "Glaciers are heavy glaciers.")[0] == [("good", "Glaciers"), ("poor", "glaciers")]
    assert marks(critic, "They do so because of all their weight.")[0] == [("poor", "their weight.")]


def test_the_example_critic_blames_silence(critic):
    spans, feedback = marks(critic, " ... ")
    assert not spans
    assert [omission.text for omission in feedback.omissions] == ["It says nothing."]


def test_the_template_is_valid():
    config = load_config(TEMPLATE / "config.yaml")
    assert (TEMPLATE / config.data.train).is_file()
    assert (TEMPLATE / str(config.data.eval)).is_file()
