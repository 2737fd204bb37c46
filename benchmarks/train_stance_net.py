"""Training of the network that reads stances (`align/stance/stance_net.py`); `train_stance.py` calls it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy_with_logits, dropout, gelu

from text2grad.align.stance.stance_net import DILATIONS, ROLE_LETTERS, describe_words
from text2grad.text.vectors import DIMENSIONS

HIDDEN, ROLE_SIZE, CONTEXT_SIZE = 128, 12, 24
EPOCHS, BATCH, RATE, DECAY = 7, 64, 3e-3, 0.02
WORD_DROPOUT, DROPOUT = 0.2, 0.3
NO_CONTEXT = 0.2  # share of clauses that are trained without their context

Arrays = dict[str, np.ndarray]


class Clause(Protocol):
    """What the network learns from: see `train_stance.Item`."""

    masked: str
    context: list[str]
    target: tuple[float, ...]
    says_missing: float | None
    weight: float


class Net(nn.Module):
    """The network of `align/stance/stance_net.py`."""

    def __init__(self, contexts: int) -> None:
        super().__init__()
        self.roles = nn.Embedding(len(ROLE_LETTERS) + 1, ROLE_SIZE)
        sizes = [DIMENSIONS + ROLE_SIZE, HIDDEN]
        self.convs = nn.ModuleList(
            nn.Conv1d(size, HIDDEN, 3, padding=dilation, dilation=dilation)
            for size, dilation in zip(sizes, DILATIONS, strict=True)
        )
        self.attention = nn.Linear(HIDDEN, 1, bias=False)
        self.context = nn.EmbeddingBag(contexts, CONTEXT_SIZE, mode="sum")
        self.out = nn.Linear(3 * HIDDEN + CONTEXT_SIZE, 4)

    def forward(self, vectors: Tensor, roles: Tensor, mask: Tensor, context: Tensor, offsets: Tensor) -> Tensor:
        """Return the scores, (clauses, 4). vectors, roles, mask: (clauses, words, ...)."""
        words = torch.cat([dropout(vectors, WORD_DROPOUT, self.training), self.roles(roles)], -1)
        inputs, inside = (words * mask[..., None]).transpose(1, 2), mask[:, None].bool()
        hidden = gelu(self.convs[0](inputs), approximate="tanh") * inside
        second = self.convs[1](dropout(hidden, DROPOUT, self.training))
        hidden = hidden + gelu(second, approximate="tanh")
        highest = hidden.masked_fill(~inside, -1e4).amax(-1)
        mean = (hidden * inside).sum(-1) / inside.sum(-1)
        scores = self.attention(hidden.transpose(1, 2))[..., 0].masked_fill(~inside[:, 0], -1e4)
        attended = (hidden * scores.softmax(-1)[:, None]).sum(-1)
        pooled = torch.cat([highest, mean, attended, self.context(context, offsets)], -1)
        return self.out(dropout(pooled, DROPOUT, self.training))


def train_net(items: Sequence[Clause], seed: int = 0) -> Arrays:
    """Return the weights of the network as `align/stance/stance_net.py` loads them."""
    torch.manual_seed(seed)
    rng = np.random.default_rng(seed)
    names = sorted({name for item in items for name in item.context})
    number = {name: i for i, name in enumerate(names)}
    described = [describe_words(item.masked) for item in items]
    contexts = [[number[name] for name in item.context] for item in items]
    targets, weights = torch.tensor([item.target for item in items]), torch.tensor([item.weight for item in items])
    weights = weights / weights.mean()
    missing = torch.tensor([item.says_missing or 0.0 for item in items])
    known = torch.tensor([float(item.says_missing is not None) for item in items])
    net = Net(len(names))
    optimizer = torch.optim.AdamW(net.parameters(), RATE, weight_decay=DECAY)
    steps = EPOCHS * (len(items) // BATCH + 1)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, RATE, total_steps=steps, pct_start=0.1)
    for _ in range(EPOCHS):
        for batch in torch.randperm(len(items)).split(BATCH):
            rows = batch.tolist()
            shown = [[] if rng.random() < NO_CONTEXT else contexts[i] for i in rows]
            scores = net(*_collate([described[i] for i in rows], shown))
            likelihood = (targets[batch] * scores[:, :3].log_softmax(-1)).sum(-1)
            errors = binary_cross_entropy_with_logits(scores[:, 3], missing[batch], reduction="none")
            loss = (weights[batch] * (known[batch] * errors - likelihood)).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
    return _arrays(net, names)


def _collate(described: Sequence[tuple[np.ndarray, list[int]]], contexts: Sequence[list[int]]) -> tuple[Tensor, ...]:
    longest = max(len(roles) for _, roles in described)
    vectors, roles = np.zeros((len(described), longest, DIMENSIONS), np.float32), np.zeros((len(described), longest))
    mask = np.zeros((len(described), longest), np.float32)
    for i, (own, letters) in enumerate(described):
        vectors[i, : len(own)], roles[i, : len(own)], mask[i, : len(own)] = own, letters, 1
    offsets = torch.tensor([0, *(len(context) for context in contexts[:-1])]).cumsum(0)
    flat = torch.tensor([i for context in contexts for i in context], dtype=torch.long)
    return torch.tensor(vectors), torch.tensor(roles).long(), torch.tensor(mask), flat, offsets


def _arrays(net: Net, names: Sequence[str]) -> Arrays:
    found: dict[str, Tensor] = {
        "roles": net.roles.weight,
        "attention": net.attention.weight[0],
        "context": net.context.weight,
        "out": net.out.weight.T,
        "out_bias": net.out.bias,
    }
    for i, conv in enumerate(net.convs):
        found |= {f"conv{i}": conv.weight.permute(2, 1, 0), f"bias{i}": conv.bias}
    arrays = {name: np.ascontiguousarray(value.detach().numpy().astype(np.float16)) for name, value in found.items()}
    return arrays | {"names": np.frombuffer("\n".join(names).encode(), dtype=np.uint8)}
