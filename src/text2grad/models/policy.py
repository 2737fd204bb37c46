"""The policy: a causal language model with a value head on its backbone, and the reference it started from."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import torch
from peft import LoraConfig, PeftModel, get_peft_model
from torch import Tensor, nn
from transformers import PreTrainedModel

from text2grad.errors import UserError
from text2grad.models.backbone import (
    BackboneCompiler,
    avoid_cudnn_attention,
    check_projection,
    get_backbone,
    get_projection,
    hidden_size,
    vocab_size,
)
from text2grad.models.batching import TokenBatch
from text2grad.models.logprobs import chunked_logprobs, logprob_chunk_size
from text2grad.models.packed_attention import use_packed_attention
from text2grad.models.packing import can_share_prompts


class Scores(NamedTuple):
    """Scores of given completions; each (batch, completion tokens), float32, 0 outside the mask."""

    logprobs: Tensor
    entropy: Tensor
    values: Tensor


class Policy(nn.Module):
    """Scores completions in one forward pass: log-probabilities, entropy and values.

    The value head is float32, starts at zero and reads the state *before* each token, the one that predicts it.
    """

    def __init__(
        self,
        model: PreTrainedModel | PeftModel,
        peft_config: LoraConfig | None = None,
        keep_reference: bool = True,
        share_prompts: bool = True,
        torch_compile: bool = False,
    ) -> None:
        """peft_config: train this adapter. keep_reference: keep the initial policy for scoring.

        share_prompts: put completions of one prompt into one row, if the model supports it.
        torch_compile: compile the backbone for scoring; sampling, whose cache grows, is not compiled.
        """
        super().__init__()
        avoid_cudnn_attention()
        self._reference: PreTrainedModel | PeftModel | None = None
        if getattr(model, "_hf_peft_config_loaded", False) or (
            isinstance(model, PeftModel) and peft_config is not None
        ):
            raise UserError(
                "the model already has an adapter, and a second one could not be saved with it; merge it first: "
                "`text2grad export RUN -o FOLDER`, or its merge_and_unload()"
            )
        if peft_config is not None:
            model = get_peft_model(model, peft_config)
        if not any(parameter.requires_grad for parameter in model.parameters()):
            raise UserError("no weight of the model can be trained; load its adapter with is_trainable=True")
        _disable_dropout(model)
        self.model: Any = model
        self.share_prompts = share_prompts and can_share_prompts(model)
        if self.share_prompts:
            use_packed_attention(model)
        for parameter in model.parameters():
            if parameter.requires_grad:
                parameter.data = parameter.data.float()  # bf16 weights do not change at small learning rates
        if keep_reference and not (isinstance(model, PeftModel) and _starts_as_identity(model)):
            # With the adapter off the model would not be the initial policy, so that is kept as a frozen copy, in the
            # same precision: it has to score as the policy does before the first step.
            self._reference = copy.deepcopy(model).requires_grad_(False).eval()
        self.value_head = nn.Linear(hidden_size(model), 1, dtype=torch.float32)
        nn.init.zeros_(self.value_head.weight)
        nn.init.zeros_(self.value_head.bias)
        check_projection(model)
        self._compiler = BackboneCompiler(torch_compile)

    def forward(
        self, batch: TokenBatch, temperature: float, reference: bool = False, entropy_gradient: bool = False
    ) -> Scores:
        """Score the completion tokens of a batch, under the policy or under the reference, whose entropy is 0.

        entropy_gradient: whether the entropy is part of a loss.
        """
        with self.scorer(reference) as model:
            backbone = self._compiler.get(get_backbone(model))
            hidden = backbone(**batch.model_inputs(compute_dtype(model)), use_cache=False)[0]
            states = hidden[batch.rows, batch.state_columns]  # (valid tokens, width)
            targets = batch.ids[batch.rows, batch.columns]
            chunk_size = logprob_chunk_size(vocab_size(model), states.device.type)
            logprobs, entropy = chunked_logprobs(
                states,
                get_projection(model),
                targets,
                temperature,
                chunk_size,
                entropy_gradient,
                with_entropy=not reference,
            )
        with torch.autocast(states.device.type, enabled=False):
            values = self.value_head(states.float()).squeeze(-1)
        return Scores(*(batch.scatter(scores) for scores in (logprobs, entropy, values)))

    @contextmanager
    def scorer(self, reference: bool) -> Iterator[PreTrainedModel | PeftModel]:
        """Yield the language model of the policy, or of the reference, which is the policy at step 0."""
        if not reference:
            yield self.model
        elif self._reference is not None:
            yield self._reference
        else:
            with self.model.disable_adapter():
                yield self.model

    @property
    def has_reference_copy(self) -> bool:
        """Whether the reference is a separate model rather than this one with its adapter off."""
        return self._reference is not None

    def trainable(self) -> dict[str, nn.Parameter]:
        """Return the trained parameters by name; all of them are float32."""
        return {name: p for name, p in self.named_parameters() if p.requires_grad}


def compute_dtype(model: PreTrainedModel | PeftModel) -> torch.dtype:
    """Return the dtype of attention."""
    kind = model.device.type
    return torch.get_autocast_dtype(kind) if torch.is_autocast_enabled(kind) else model.dtype


def _starts_as_identity(model: PeftModel) -> bool:
    """Return whether the model with its adapter off equals the current model: plain LoRA that is still zero."""
    trained = {name: parameter for name, parameter in model.named_parameters() if parameter.requires_grad}
    is_plain = all("lora_A" in name or "lora_B" in name for name in trained)
    return is_plain and all(bool((p == 0).all()) for name, p in trained.items() if "lora_B" in name)


def _disable_dropout(model: nn.Module) -> None:
    """Disable dropout: old and new log-probabilities must be of the same network."""
    for module in model.modules():
        if isinstance(module, nn.Dropout):
            module.p = 0.0
        for name, rate in vars(module).items():  # arguments of functional dropout: `dropout`, `attention_dropout`, ...
            if name.endswith("dropout") and isinstance(rate, float):
                setattr(module, name, 0.0)
