"""The policy: a causal language model with a value head on its trunk, and the reference it started from."""

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
from text2grad.models.batching import TokenRows
from text2grad.models.compile import Trunks
from text2grad.models.flat_attention import attend_flat
from text2grad.models.lm_head import check_output, output, trunk, vocabulary_of, width_of
from text2grad.models.logprobs import chunked_logprobs, tokens_at_once
from text2grad.models.packing import can_share_prompts


class Scores(NamedTuple):
    """What the policy says about given completions; each (batch, completion tokens), float32, 0 outside the mask."""

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
        """peft_config: train this adapter. keep_reference: be able to score with the policy as it is now, later on.

        share_prompts: lay answers to one prompt out in one row, if the model allows it.
        torch_compile: compile the trunk for scoring; sampling, whose cache grows, runs the model as it is.
        """
        super().__init__()
        self._reference: PreTrainedModel | PeftModel | None = None
        if getattr(model, "_hf_peft_config_loaded", False) or (
            isinstance(model, PeftModel) and peft_config is not None
        ):
            raise UserError(
                "the model has an adapter already, which another one could not be saved with; merge it first: "
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
            attend_flat(model)
        if keep_reference and not (isinstance(model, PeftModel) and _starts_as_identity(model)):
            # Adapter off would not be the policy at step 0, so that policy is kept as a frozen copy.
            self._reference = copy.deepcopy(model).requires_grad_(False).eval()
        for parameter in model.parameters():
            if parameter.requires_grad:
                parameter.data = parameter.data.float()  # bf16 weights do not move at small learning rates
        self.value_head = nn.Linear(width_of(model), 1, dtype=torch.float32)
        nn.init.zeros_(self.value_head.weight)
        nn.init.zeros_(self.value_head.bias)
        check_output(model)
        self._trunks = Trunks(torch_compile)

    def forward(
        self, batch: TokenRows, temperature: float, reference: bool = False, entropy_gradient: bool = False
    ) -> Scores:
        """Scores of a batch's completion tokens, under the policy or under the reference.

        entropy_gradient: whether the entropy is part of a loss.
        """
        with self.scorer(reference) as model:
            hidden = self._trunks.of(trunk(model))(**batch.inputs(compute_dtype(model)), use_cache=False)[0]
            before = hidden[batch.rows, batch.before]  # (valid tokens, width)
            targets = batch.ids[batch.rows, batch.columns]
            chunk = tokens_at_once(vocabulary_of(model))
            logprobs, entropy = chunked_logprobs(before, output(model), targets, temperature, chunk, entropy_gradient)
        with torch.autocast(before.device.type, enabled=False):
            values = self.value_head(before.float()).squeeze(-1)
        return Scores(*(batch.scatter(scores) for scores in (logprobs, entropy, values)))

    @contextmanager
    def scorer(self, reference: bool) -> Iterator[PreTrainedModel | PeftModel]:
        """The language model to ask: the policy, or the reference, which is the policy as it was at step 0."""
        if not reference:
            yield self.model
        elif self._reference is not None:
            yield self._reference
        else:
            with self.model.disable_adapter():
                yield self.model

    @property
    def has_reference_copy(self) -> bool:
        """Whether the reference is a model of its own, and not this one with its adapter off."""
        return self._reference is not None

    def trainable(self) -> dict[str, nn.Parameter]:
        """Names and parameters that training changes; all of them float32."""
        return {name: p for name, p in self.named_parameters() if p.requires_grad}


def compute_dtype(model: PreTrainedModel | PeftModel) -> torch.dtype:
    """What attention is computed in."""
    kind = model.device.type
    return torch.get_autocast_dtype(kind) if torch.is_autocast_enabled(kind) else model.dtype


def _starts_as_identity(model: PeftModel) -> bool:
    """Whether the model with its adapter off is the model as it is now, and stays it: plain LoRA that is still zero."""
    trained = {name: parameter for name, parameter in model.named_parameters() if parameter.requires_grad}
    is_plain = all("lora_A" in name or "lora_B" in name for name in trained)
    return is_plain and all(bool((p == 0).all()) for name, p in trained.items() if "lora_B" in name)


def _disable_dropout(model: nn.Module) -> None:
    """Old and new log-probabilities must be of the same network."""
    for module in model.modules():
        if isinstance(module, nn.Dropout):
            module.p = 0.0
        for name, rate in vars(module).items():  # what is handed to functions: `dropout`, `attention_dropout`, ...
            if name.endswith("dropout") and isinstance(rate, float):
                setattr(module, name, 0.0)
