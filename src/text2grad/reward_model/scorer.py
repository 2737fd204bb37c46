"""The network: a causal language model whose last states are also read by a token head."""

from __future__ import annotations

from typing import Any

import torch
from peft import PeftModel
from torch import Tensor, nn
from transformers import PreTrainedModel

from text2grad.models.backbone import get_backbone, get_projection, hidden_size, vocab_size
from text2grad.models.logprobs import chunked_logprobs, logprob_chunk_size
from text2grad.reward_model.head import IGNORE, TokenHead, head_loss


class SpanScorer(nn.Module):
    """One forward pass over `question + judgement` gives both losses; over the question alone, the head's logits."""

    def __init__(self, model: PreTrainedModel | PeftModel, head: TokenHead | None = None) -> None:
        super().__init__()
        self.model: Any = model
        self.head = head or TokenHead(hidden_size(model))
        self.lm_weight = 1.0
        self.register_buffer("class_weights", torch.ones(3), persistent=False)

    @property
    def config(self) -> Any:
        return self.model.config

    def states(self, input_ids: Tensor) -> Tensor:
        """(batch, tokens, width) of right-padded rows: a causal model never looks at padding on the right."""
        hidden: Tensor = get_backbone(self.model)(input_ids=input_ids, use_cache=False)[0]
        return hidden

    def forward(self, input_ids: Tensor, head_labels: Tensor, lm_labels: Tensor) -> dict[str, Tensor]:
        """All (batch, tokens). head_labels: the class of a judged token, IGNORE elsewhere. lm_labels: the id of a token
        that should have been written, IGNORE elsewhere; the state before it predicts it."""
        states = self.states(input_ids)
        answers, places = (head_labels != IGNORE).nonzero(as_tuple=True)
        logits = self.head(states[answers, places])
        head = head_loss(logits, head_labels[answers, places], answers, self.class_weights)  # type: ignore[arg-type]
        written = lm_labels[:, 1:] != IGNORE
        language = states.sum() * 0.0
        if self.lm_weight and bool(written.any()):
            project, chunk = get_projection(self.model), logprob_chunk_size(vocab_size(self.model))
            targets = lm_labels[:, 1:][written]
            logprobs, _ = chunked_logprobs(states[:, :-1][written], project, targets, temperature=1.0, chunk_size=chunk)
            language = -logprobs.mean()
        return {"loss": head + self.lm_weight * language, "head_loss": head.detach(), "lm_loss": language.detach()}

    def gradient_checkpointing_enable(self, **options: Any) -> None:
        """As the trainer calls it; options: those of the language model's own method."""
        self.model.enable_input_require_grads()  # frozen embeddings would cut the graph
        self.model.gradient_checkpointing_enable(**options)
