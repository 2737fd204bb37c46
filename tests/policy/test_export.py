"""A run's model, without its adapter."""

from __future__ import annotations

import pytest
import torch
from support import Silent
from transformers import AutoModelForCausalLM, AutoTokenizer

from text2grad.config import load_config
from text2grad.errors import UserError
from text2grad.pipeline import run
from text2grad.policy.export import export
from text2grad.runs import RunFolder


@pytest.fixture(params=["lora", "full"])
def finished(request, tiny_model, tmp_path) -> RunFolder:
    config = tmp_path / "run.yaml"
    lora = "{r: 2, alpha: 4, target_modules: all-linear}" if request.param == "lora" else "null"
    config.write_text(
        f"""
model: {{name: "{tiny_model}", lora: {lora}}}
data: {{heldout: null}}
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


def test_what_cannot_be_exported_is_said(finished, tmp_path):
    with pytest.raises(UserError, match="no trained model"):
        export(tmp_path, tmp_path / "plain")
    with pytest.raises(UserError, match="float12"):
        export(finished.root, tmp_path / "plain", dtype="float12")
