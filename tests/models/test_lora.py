from pathlib import Path

import torch
from peft import get_peft_model
from torch import Tensor

from text2grad.models.loading import load_model
from text2grad.models.lora import LoraSettings, disable_input_casts


def test_inputs_of_adapters_are_cast_by_autocast_alone_to_the_same_result(tiny_model: Path) -> None:
    torch.manual_seed(0)
    model = get_peft_model(load_model(tiny_model, torch.bfloat16), LoraSettings().to_peft())
    for name, parameter in model.named_parameters():
        if "lora_B" in name:
            torch.nn.init.normal_(parameter)
    seen: list[torch.dtype] = []
    layer = next(module for name, module in model.named_modules() if name.endswith("lora_A.default"))
    layer.register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0].dtype))

    def gradient_and_logits() -> tuple[Tensor, Tensor]:
        model.zero_grad()
        with torch.autocast("cpu", torch.bfloat16):
            logits = model(input_ids=torch.arange(3, 40).unsqueeze(0)).logits
        logits.float().logsumexp(-1).sum().backward()
        return layer.weight.grad.clone(), logits.detach()

    before = gradient_and_logits()
    disable_input_casts(model)
    after = gradient_and_logits()
    assert seen == [torch.float32, torch.bfloat16]
    assert torch.equal(before[0], after[0])
    assert torch.equal(before[1], after[1])
