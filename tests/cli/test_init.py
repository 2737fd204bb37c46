"""`text2grad init`: the folder that it writes can be run as it is."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from text2grad.cli.app import app
from text2grad.config.packaged import COMMENTS_TEMPLATE, TEMPLATE, accelerate_names
from text2grad.config.run import load_config
from text2grad.errors import UserError
from text2grad.schema import Example, read_examples

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


def test_the_critic_that_is_written_can_be_checked(tmp_path, monkeypatch):
    assert invoke("init", tmp_path / "mine").exit_code == 0
    monkeypatch.chdir(tmp_path / "mine")
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.delitem(sys.modules, "my_critic", raising=False)
    checked = invoke("critic", "check", "my_critic:ReferenceCritic", "prompts.jsonl")
    assert checked.exit_code == 0, checked.output
    assert "12 examples" in checked.output
    assert "Problem" not in checked.output


def test_a_run_finds_its_critic_and_prompts_from_another_folder(tmp_path, tiny_model, monkeypatch):
    assert invoke("init", tmp_path / "mine").exit_code == 0
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.delitem(sys.modules, "my_critic", raising=False)
    ran = invoke("run", "mine/config.yaml", "--model", tiny_model, *SMALL)
    assert ran.exit_code == 0, ran.output
    assert json.loads((tmp_path / "runs/first/evaluation.json").read_text())["n"] == 4


def test_existing_files_are_never_overwritten(tmp_path):
    (tmp_path / "my_critic.py").write_text("mine")
    with pytest.raises(UserError, match=r"my_critic\.py already there; nothing was written"):
        invoke("init", tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["my_critic.py"]


def test_the_current_folder_is_the_default(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert "cd " not in invoke("init").output
    assert sorted(path.name for path in Path().iterdir()) == FILES


@pytest.fixture
def comments(tmp_path):
    """A table of comments on six prompts, two of them on the second."""
    rows = [f'When is meeting {i}?,On Friday.,"Not on ""Friday"" but on Monday."' for i in (1, 2, 2, 3, 4, 5, 6)]
    (tmp_path / "comments.csv").write_text("Question,Bot answer,Comment\n" + "\n".join(rows) + "\n")
    return tmp_path / "comments.csv"


def test_comments_become_a_run_that_trains_on_them(comments, tmp_path, tiny_model, monkeypatch):
    done = invoke("init", tmp_path / "mine", "--comments", comments)
    assert done.exit_code == 0, done.output
    assert "1 of 6 prompts are held out" in done.output
    assert "That is few: add prompts like them to heldout.jsonl." in done.output
    assert sorted(path.name for path in (tmp_path / "mine").iterdir()) == [
        "config.yaml", "feedback.jsonl", "heldout.jsonl", "house_style.py",
    ]  # fmt: skip
    monkeypatch.chdir(tmp_path / "mine")
    trained, held_out = (list(read_examples(name)) for name in ("feedback.jsonl", "heldout.jsonl"))
    assert len(trained) == 5  # both comments on the second prompt are about one answer
    assert [(example.prompt, example.feedback) for example in held_out] == [("When is meeting 5?", None)]
    (command,) = (line for line in done.output.splitlines() if "text2grad train" in line)
    ran = invoke(*command.split()[1:], "--model", tiny_model, *SMALL)
    assert ran.exit_code == 0, ran.output
    assert json.loads((tmp_path / "mine/runs/first/evaluation.json").read_text())["n"] == 1


def test_comments_that_cannot_start_a_run_are_a_sentence(comments, tmp_path):
    with pytest.raises(UserError, match=r"no column Frage for the prompt; there are Question"):
        invoke("init", tmp_path / "mine", "--comments", comments, "--column", "prompt=Frage")
    with pytest.raises(UserError, match=r"--column is for the table of --comments"):
        invoke("init", tmp_path / "mine", "--column", "prompt=Frage")
    comments.write_text("".join(comments.read_text().splitlines(keepends=True)[:2]))
    with pytest.raises(UserError, match=r"all comments are on one prompt"):
        invoke("init", tmp_path / "mine", "--comments", comments)
    assert not (tmp_path / "mine").exists()


@pytest.fixture
def house_style(monkeypatch):
    monkeypatch.syspath_prepend(COMMENTS_TEMPLATE)
    from house_style import HouseStyle

    return HouseStyle(avoid=["dear"], use=["Thank you"], max_words=4)


def test_the_house_style_is_checked(house_style):
    def judge(completion):
        (feedback,) = house_style.critique([Example(id="1", prompt="Thank Ann.", completion=completion)])
        return [(span.label, completion[span.start : span.end]) for span in feedback.spans], feedback

    spans, feedback = judge("Thank you, Ann.")
    assert (spans, feedback.score) == ([("good", "Thank you")], 1.0)
    spans, feedback = judge("Dear Ann, how are you all?")
    assert spans == [("poor", "Dear"), ("poor", "you all?")]
    assert ([omission.text for omission in feedback.omissions], feedback.score) == (["Thank you"], -1.0)
    assert judge("")[1].score == -1.0


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
    from my_critic import ReferenceCritic

    return ReferenceCritic()


def marks(critic, completion, reference="Their weight pushes glaciers downhill."):
    example = Example(id="1", prompt="Why do glaciers move?", completion=completion, reference=reference)
    (feedback,) = critic.critique([example])
    return [(span.label, completion[span.start : span.end]) for span in feedback.spans], feedback


def test_the_example_critic_praises_what_the_reference_says_once_and_blames_the_rest(critic):
    spans, feedback = marks(critic, "Glaciers are heavy glaciers.")
    assert spans == [("good", "Glaciers"), ("poor", "heavy"), ("poor", "glaciers")]
    assert [omission.text for omission in feedback.omissions] == ["their", "weight", "pushes", "downhill"]
    assert marks(critic, "Their weight pushes glaciers downhill.")[1].score == 1


def test_the_example_critic_blames_silence(critic):
    spans, feedback = marks(critic, " ... ")
    assert not spans
    assert len(feedback.omissions) == 5
    assert feedback.score == -1


def test_the_example_critic_does_not_judge_what_it_cannot_compare(critic):
    assert marks(critic, "Gravity.", reference=None)[1].status == "failed"


def test_the_template_is_valid():
    config = load_config(TEMPLATE / "config.yaml")
    assert (TEMPLATE / config.data.train).is_file()
    assert (TEMPLATE / str(config.data.eval)).is_file()
