"""The network: a causal language model with a token head on its last hidden states."""

from __future__ import annotations

from typing import Any

import torch
from peft import PeftModel
from torch import Tensor, nn
from transformers import PreTrainedModel

from text2grad.models.backbone import avoid_cudnn_attention, get_backbone, get_projection, hidden_size, vocab_size
from text2grad.models.logprobs import chunked_logprobs, logprob_chunk_size
from text2grad.reward_model.head import IGNORE, TokenHead, head_loss


class SpanRewardNetwork(nn.Module):
    """Computes the head's loss and the language-modelling loss in one forward pass over `model input + critique`."""

    def __init__(self, model: PreTrainedModel | PeftModel, head: TokenHead | None = None) -> None:
        super().__init__()
        avoid_cudnn_attention()
        self.model: Any = model
        self.head = head or TokenHead(hidden_size(model))
        self.lm_weight = 1.0
        self.register_buffer("class_weights", torch.ones(3), persistent=False)

    @property
    def config(self) -> Any:
        """The configuration of the language model, which the trainer reads."""
        return self.model.config

    def states(self, input_ids: Tensor) -> Tensor:
        """Return hidden states, (batch, tokens, width), of right-padded rows; a causal model needs no mask."""
        hidden: Tensor = get_backbone(self.model)(input_ids=input_ids, use_cache=False)[0]
        return hidden

    def forward(self, input_ids: Tensor, head_labels: Tensor, lm_labels: Tensor) -> dict[str, Tensor]:
        """Compute the losses. All arguments are (batch, tokens).

        head_labels: the class of a completion token, IGNORE elsewhere. lm_labels: the id of a critique token, IGNORE
        elsewhere; the state before a token predicts it.
        """
        states = self.states(input_ids)
        rows, positions = (head_labels != IGNORE).nonzero(as_tuple=True)
        logits = self.head(states[rows, positions])
        head = head_loss(logits, head_labels[rows, positions], rows, self.class_weights)  # type: ignore[arg-type]
        is_target = lm_labels[:, 1:] != IGNORE
        lm = states.sum() * 0.0
        if self.lm_weight and bool(is_target.any()):
            project = get_projection(self.model)
            chunk = logprob_chunk_size(vocab_size(self.model), states.device.type)
            targets = lm_labels[:, 1:][is_target]
            logprobs, _ = chunked_logprobs(
                states[:, :-1][is_target], project, targets, temperature=1.0, chunk_size=chunk, with_entropy=False
            )
            lm = -logprobs.mean()
        return {"loss": head + self.lm_weight * lm, "head_loss": head.detach(), "lm_loss": lm.detach()}

    def gradient_checkpointing_enable(self, **options: Any) -> None:
        """Enable checkpointing of the language model; called by the trainer."""
        self.model.enable_input_require_grads()  # frozen embeddings would cut the graph
        self.model.gradient_checkpointing_enable(**options)
