from __future__ import annotations

from text2grad.models.lora import LoraSettings


def test_settings_become_peft_configuration() -> None:
    config = LoraSettings(r=4, alpha=8, target_modules=["q_proj"]).to_peft(task_type="CAUSAL_LM")
    assert (config.r, config.lora_alpha, config.target_modules) == (4, 8, {"q_proj"})
    assert config.task_type == "CAUSAL_LM"
