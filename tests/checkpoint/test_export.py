"""A run's model, without its adapter."""

from __future__ import annotations

import shutil

import pytest
import torch
from peft import LoraConfig, get_peft_model
from support import Silent
from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer

from text2grad.checkpoint.export import export
from text2grad.checkpoint.run_folder import RunFolder
from text2grad.config.run import load_config
from text2grad.errors import UserError
from text2grad.pipeline import run


@pytest.fixture(params=["lora", "full"])
def finished(request, tiny_model, tmp_path) -> RunFolder:
    config = tmp_path / "run.yaml"
    lora = "{r: 2, alpha: 4, target_modules: all-linear}" if request.param == "lora" else "null"
    config.write_text(
        f"""
model: {{name: "{tiny_model}", lora: {lora}}}
data: {{eval: null}}
critic: {{name: "support:VowelCritic"}}
policy: {{max_steps: 2, per_device_train_batch_size: 2, max_completion_length: 4, learning_rate: 0.05, bf16: false}}
output_dir: "{tmp_path / "run"}"
"""
    )
    return run(load_config(config), Silent())


def test_the_exported_model_loads_with_transformers_alone(finished, tiny_model, tmp_path):
    export(finished.root, tmp_path / "plain", dtype="float32")
    assert not (tmp_path / "plain" / "adapter_config.json").exists()
    plain = AutoModelForCausalLM.from_pretrained(tmp_path / "plain")
    AutoTokenizer.from_pretrained(tmp_path / "plain")
    trained = AutoModelForCausalLM.from_pretrained(finished.final)  # transformers finds the adapter by itself
    base = AutoModelForCausalLM.from_pretrained(tiny_model)
    ids = torch.arange(5, 15).unsqueeze(0)
    torch.testing.assert_close(plain(ids).logits, trained(ids).logits, atol=1e-4, rtol=1e-4)
    assert not torch.allclose(plain(ids).logits, base(ids).logits, atol=1e-3)


def test_an_earlier_export_is_replaced_and_nothing_else(finished, tmp_path):
    for name in ("plain.old", "plain.new", "mine"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "thesis.tex").write_text("years of work")
    export(finished.root, tmp_path / "plain", dtype="float32")
    (tmp_path / "plain" / "notes.md").write_text("mine")
    export(finished.root, tmp_path / "plain")
    assert AutoModelForCausalLM.from_pretrained(tmp_path / "plain", dtype="auto").dtype == torch.bfloat16
    assert (tmp_path / "plain" / "notes.md").read_text() == "mine"
    with pytest.raises(UserError, match="mine exists and is not a text2grad export; choose another folder"):
        export(finished.root, tmp_path / "mine")
    for name in ("plain.old", "plain.new", "mine"):
        assert (tmp_path / name / "thesis.tex").read_text() == "years of work"


def test_a_run_is_not_overwritten_by_its_export(finished, tmp_path):
    def contents():
        return {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}

    checkpoints = finished.final.parent
    for output in (finished.root, tmp_path, checkpoints, finished.final, checkpoints / "exported", finished.root / "."):
        with pytest.raises(UserError, match="would overwrite the run"):
            export(finished.root, output)
    other = tmp_path / "other" / "checkpoints" / "final"
    shutil.copytree(finished.final, other)
    before = contents()
    with pytest.raises(UserError, match="is not a text2grad export"):
        export(finished.root, other)
    assert contents() == before


def test_a_damaged_run_is_not_exported(finished, tmp_path):
    settings = finished.config.read_text()
    weights = finished.final / ("adapter_model.safetensors" if "r: 2" in settings else "model.safetensors")
    content = weights.read_bytes()
    weights.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    with pytest.raises(UserError, match=rf"{weights.name} is damaged .*; `text2grad run --resume` writes it anew"):
        export(finished.root, tmp_path / "plain")
    weights.write_bytes(content)
    (finished.final / "README.md").write_text("---\nlicense: mit\n---\nmine\n")  # the card may be edited
    for text in ("", "model: 3", "{", "model: {nam: x}"):
        finished.config.write_text(text)
        if (finished.final / "adapter_config.json").exists():
            with pytest.raises(UserError, match=r"config\.yaml is damaged: it has no model\.name"):
                export(finished.root, tmp_path / "plain")
    finished.config.write_text(settings)
    export(finished.root, tmp_path / "plain")
    assert "mine" in (tmp_path / "plain" / "README.md").read_text()


def test_what_cannot_be_exported_is_reported(finished, tmp_path):
    with pytest.raises(UserError, match="no trained model"):
        export(tmp_path, tmp_path / "plain")
    with pytest.raises(UserError, match="float12"):
        export(finished.root, tmp_path / "plain", dtype="float12")


@pytest.mark.filterwarnings("ignore:Model has `tie_word_embeddings=True`")  # peft's own warning of the danger
@pytest.mark.parametrize("target", ["lm_head", "embed_tokens"])
def test_an_adapter_on_one_of_two_tied_layers_stays_on_that_one(tiny_model, tmp_path, target):
    config = AutoConfig.from_pretrained(tiny_model, tie_word_embeddings=True)
    torch.manual_seed(0)
    base = AutoModelForCausalLM.from_config(config)
    base.save_pretrained(tmp_path / "tied")
    for saved in (tmp_path / "tied", tmp_path / "run" / "checkpoints" / "final"):
        AutoTokenizer.from_pretrained(tiny_model).save_pretrained(saved)
    folder = RunFolder(tmp_path / "run")
    folder.config.write_text(f'model: {{name: "{tmp_path}/tied"}}\n')
    adapted = get_peft_model(base, LoraConfig(r=2, target_modules=[target, "q_proj"], init_lora_weights=False)).eval()
    adapted.save_pretrained(folder.final, save_embedding_layers=False)
    export(folder.root, tmp_path / "plain", dtype="float32")
    ids = torch.arange(5, 15).unsqueeze(0)
    plain = AutoModelForCausalLM.from_pretrained(tmp_path / "plain")
    torch.testing.assert_close(plain(ids).logits, adapted(ids).logits, atol=1e-4, rtol=1e-4)


def test_a_run_of_the_python_api_needs_no_config(make_trainer, tmp_path):
    trainer = make_trainer(max_steps=1)
    trainer.train()
    trainer.save_model()
    assert not trainer.run.config.exists()
    export(trainer.run.root, tmp_path / "plain")
    AutoModelForCausalLM.from_pretrained(tmp_path / "plain")
    with pytest.raises(UserError, match="choose a folder outside of it"):
        export(trainer.run.root, trainer.run.root / "exported")
