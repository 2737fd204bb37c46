"""Models by the name of their run, and runs that continue others."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from support import PROMPTS, Silent, VowelCritic
from transformers import AutoModelForCausalLM
from typer.testing import CliRunner

from text2grad import Text2GradConfig, Text2GradTrainer
from text2grad.checkpoint.export import export
from text2grad.checkpoint.run_folder import RunFolder
from text2grad.checkpoint.trained import find_model, load_merged
from text2grad.cli.app import app
from text2grad.config.run import RunConfig, load_config
from text2grad.errors import UserError
from text2grad.pipeline import run
from text2grad.schema import write_examples


def config(folder: Path, model: str | Path, output: str, lora: str = "{r: 4, alpha: 8}") -> RunConfig:
    write_examples(folder / "prompts.jsonl", PROMPTS)
    path = folder / f"{output}.yaml"
    path.write_text(
        f"""
model: {{name: "{model}", lora: {lora}}}
data: {{train: "{folder}/prompts.jsonl", eval: null}}
critic: {{name: "support:VowelCritic"}}
policy: {{max_steps: 2, per_device_train_batch_size: 2, max_completion_length: 4, learning_rate: 0.05, bf16: false}}
output_dir: "{folder / output}"
"""
    )
    return load_config(path)


@pytest.fixture
def first(tiny_model: Path, tmp_path: Path) -> RunFolder:
    return run(config(tmp_path, tiny_model, "first"), Silent())


def test_what_looks_like_a_folder_and_does_not_exist_is_no_name_of_the_hub(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("runs").mkdir()
    for name in ("runs/nothing", "./nothing", "../nothing", f"{tmp_path}/nothing"):
        with pytest.raises(UserError, match=f"{name}: no such folder; give a run"):
            find_model(name)
    assert find_model("Qwen/Qwen3-0.6B").base == "Qwen/Qwen3-0.6B"


def test_a_continued_run_starts_as_the_exported_model(first: RunFolder, tiny_model: Path, tmp_path: Path) -> None:
    export(first.root, tmp_path / "plain", dtype="float32")
    args = {"max_steps": 1, "max_completion_length": 6, "per_device_train_batch_size": 4, "bf16": False}

    def trainer(model: Path, name: str) -> Text2GradTrainer:
        return Text2GradTrainer(
            model, VowelCritic(), Text2GradConfig(output_dir=tmp_path / name, **args), train_dataset=PROMPTS
        )

    continued, merged, base = trainer(first.root, "a"), trainer(tmp_path / "plain", "b"), trainer(tiny_model, "c")
    rollout = continued.rollout(1)
    assert rollout.completions == merged.rollout(1).completions
    expected = merged.score(rollout).logprobs
    torch.testing.assert_close(continued.score(rollout).logprobs, expected, atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(continued.score(rollout, reference=True).logprobs, expected, atol=1e-5, rtol=1e-5)
    assert (base.score(rollout).logprobs - expected).abs().max() > 1e-3
    assert continued.base_model == str(tiny_model)
    assert all("lora" in name or "value_head" in name for name in continued.policy.trainable())


def test_a_run_continues_the_adapter_of_another_and_outlives_it(
    first: RunFolder, tiny_model: Path, tmp_path: Path
) -> None:
    second = run(config(tmp_path, first.root, "second", lora="{r: 16, alpha: 32}"), Silent())
    assert find_model(second.root).base == str(tiny_model)
    adapter = AutoModelForCausalLM.from_pretrained(second.final)  # an adapter of the first base, for peft alone
    assert adapter.peft_config["default"].r == 4
    ids = torch.arange(5, 15).unsqueeze(0)
    logits = load_merged(find_model(second.root))(ids).logits
    torch.testing.assert_close(logits, adapter(ids).logits, atol=1e-4, rtol=1e-4)
    assert not torch.allclose(logits, load_merged(find_model(first.root))(ids).logits, atol=1e-3)
    shutil.rmtree(first.root)
    torch.testing.assert_close(load_merged(find_model(second.root))(ids).logits, logits)


def test_a_continued_run_resumes(first: RunFolder, tmp_path: Path) -> None:
    settings = config(tmp_path, first.root, "second")
    run(settings, Silent())
    longer = settings.model_copy(update={"policy": settings.policy.model_copy(update={"max_steps": 3})})
    assert len(list(run(longer, Silent(), resume=True).steps())) == 3


def test_all_weights_cannot_be_trained_from_an_adapter(first: RunFolder, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"model\.lora is null.*text2grad export .*first -o FOLDER"):
        run(config(tmp_path, first.root, "second", lora="null"), Silent())


def test_names_folders_and_unfinished_runs(tiny_model: Path, first: RunFolder, tmp_path: Path) -> None:
    assert find_model("smollm2") == find_model(Path("smollm2"))
    assert find_model("smollm2").adapter is None
    assert find_model(tiny_model).base == str(tiny_model)
    assert find_model(first.final).adapter == first.final
    unfinished = RunFolder(tmp_path / "unfinished")
    unfinished.root.mkdir()
    unfinished.metrics.touch()
    with pytest.raises(UserError, match="unfinished: no trained model; a finished run has one in"):
        find_model(unfinished.root)


@pytest.mark.parametrize("content", ["{", "[]", "{}"])
def test_a_damaged_adapter_is_named(tmp_path: Path, content: str) -> None:
    (tmp_path / "adapter_config.json").write_text(content)
    with pytest.raises(UserError, match=r"adapter_config\.json is damaged: it names no base_model_name_or_path"):
        find_model(tmp_path)


def test_a_comment_is_explained_on_the_model_of_a_run(first: RunFolder, tiny_model: Path) -> None:
    given = ["--prompt", "Go.", "--completion", "We meet on Friday.", "--feedback", 'Not on "Friday".', "--json"]

    def explain(model: Path) -> dict[str, Any]:
        done = CliRunner().invoke(app, ["explain", "--model", str(model), *given], catch_exceptions=False)
        result: dict[str, Any] = json.loads(done.stdout)
        return result

    before, after = explain(tiny_model), explain(first.root)
    assert [token["reward"] for token in before["tokens"]] == [token["reward"] for token in after["tokens"]]
    assert before["tokens"][0]["logprob_before"] != pytest.approx(after["tokens"][0]["logprob_before"], abs=1e-3)
