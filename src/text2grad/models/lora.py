"""Settings of a LoRA adapter."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pydantic import PositiveInt

from text2grad.settings import Settings

if TYPE_CHECKING:
    from peft import LoraConfig
    from torch import nn


class LoraSettings(Settings):
    """A low-rank adapter; the weights of the base model stay frozen.

    r: the rank.
    alpha: the scale of the update is alpha / r.
    target_modules: the layers that are adapted, as in peft.
    """

    r: PositiveInt = 16
    alpha: PositiveInt = 32
    target_modules: str | list[str] = "all-linear"

    def to_peft(self, **options: Any) -> LoraConfig:
        """Build peft's configuration; options: its other arguments, such as task_type."""
        from peft import LoraConfig

        return LoraConfig(r=self.r, lora_alpha=self.alpha, target_modules=self.target_modules, **options)


def disable_input_casts(model: nn.Module) -> None:
    """Let autocast alone cast the inputs of adapters, for models that always run under it.

    peft casts them to the adapter's float32 first, only for autocast to cast them back: the same numbers, and a float32
    copy of every layer's input.
    """
    from peft.tuners.tuners_utils import BaseTunerLayer

    layers: list[Any] = [module for module in model.modules() if isinstance(module, BaseTunerLayer)]
    for layer in layers:
        layer.cast_input_dtype_enabled = False
