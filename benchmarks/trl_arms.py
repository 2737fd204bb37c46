"""The arms of `trl_spans.py`: TRL's trainer with a critic's total as its reward, or with our advantages per token."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from transformers import PreTrainedTokenizerBase

from text2grad import critique_to_rewards
from text2grad.critics.base import Critic
from text2grad.rewards.credit import Credit
from text2grad.schema import Example, from_dataset, to_dataset

COLUMNS = ["completion", "tests", "feedback"]  # of `to_dataset`, empty here


def make_trainer(
    spans: bool,
    model: Any,
    critic: Critic,
    examples: Sequence[Example],
    tokenizer: PreTrainedTokenizerBase,
    credit: Credit,
    settings: dict[str, Any],
    **arguments: Any,
) -> Any:
    """Return SpanGRPOTrainer, or GRPOTrainer whose reward is what the tokens of a completion earn together."""
    from trl import GRPOConfig, GRPOTrainer

    from text2grad.integrations.trl import SpanGRPOConfig, SpanGRPOTrainer

    rows = to_dataset(examples).remove_columns(COLUMNS)
    common: dict[str, Any] = {
        "save_strategy": "no",
        "report_to": "none",
        "disable_tqdm": True,
    }
    if spans:
        args = SpanGRPOConfig(**common, **settings, credit=credit.model_dump())
        return SpanGRPOTrainer(model, critic, args, rows, processing_class=tokenizer, **arguments)
    args = GRPOConfig(**common, **settings)
    reward = total_reward(critic, tokenizer, credit)
    return GRPOTrainer(model, reward, args, rows, processing_class=tokenizer, **arguments)


def total_reward(
    critic: Critic, tokenizer: PreTrainedTokenizerBase, credit: Credit
) -> Callable[..., list[float | None]]:
    """A reward function of TRL: the critic's total; None, which TRL leaves out, where the critique failed."""

    def total(prompts: list[Any], completion_ids: list[list[int]], **columns: Any) -> list[float | None]:
        names = ("id", "reference", "meta")
        rows = [
            {"prompt": prompt, **{name: columns[name][i] for name in names if name in columns}}
            for i, prompt in enumerate(prompts)
        ]
        found = critique_to_rewards(critic, list(from_dataset(rows)), completion_ids, tokenizer, credit=credit)
        return [one.total for one in found.tokens]

    return total


@torch.no_grad()
def sample(
    model: Any,
    tokenizer: PreTrainedTokenizerBase,
    prompts: Sequence[Sequence[int]],
    max_completion_length: int,
    temperature: float = 1.0,
) -> list[str]:
    """Sample one completion per prompt, always with the same random numbers, and without touching those of training."""
    width = max(map(len, prompts))
    ids = torch.tensor([[tokenizer.pad_token_id] * (width - len(row)) + list(row) for row in prompts])
    mask = torch.tensor([[0] * (width - len(row)) + [1] * len(row) for row in prompts])
    training = model.training
    model.eval()
    with torch.random.fork_rng():
        torch.manual_seed(0)
        found = model.generate(
            input_ids=ids.to(model.device),
            attention_mask=mask.to(model.device),
            do_sample=True,
            temperature=temperature,
            top_k=0,
            top_p=1.0,
            max_new_tokens=max_completion_length,
            pad_token_id=tokenizer.pad_token_id,
            eos_token_id=tokenizer.eos_token_id,
        )
    model.train(training)
    return [str(text) for text in tokenizer.batch_decode(found[:, width:], skip_special_tokens=True)]
