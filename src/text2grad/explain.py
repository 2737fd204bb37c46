"""One answer and one comment: which words it is about, what they earn, what one gradient step there would change."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import torch
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from text2grad.align.comment_aligner import CommentAligner
from text2grad.align.tokens import decode, offsets
from text2grad.errors import UserError
from text2grad.models.batching import pad_right
from text2grad.models.policy import Policy
from text2grad.models.prompts import PromptBudget, encode_prompts
from text2grad.rewards.credit import Credit, token_rewards
from text2grad.schema import Example, Feedback, Span


@dataclass(frozen=True)
class TokenChange:
    """One token of the answer: where it is, what it earned, how probable it was and has become."""

    text: str
    start: int
    end: int
    reward: float
    probability_before: float
    probability_after: float
    logprob_before: float
    logprob_after: float


@dataclass(frozen=True)
class Explanation:
    """What a comment does to an answer."""

    completion: str
    comment: str
    spans: list[Span]
    unmatched: list[str]
    tokens: list[TokenChange]

    def to_dict(self) -> dict[str, Any]:
        """Plain data for `--json`."""
        return {
            "completion": self.completion,
            "comment": self.comment,
            "spans": [span.model_dump(mode="json") for span in self.spans],
            "unmatched": self.unmatched,
            "tokens": [asdict(token) for token in self.tokens],
        }


def explain(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    prompt: str,
    completion: str,
    comment: str,
    step_size: float = 0.5,
    plain_prompts: bool = False,
) -> Explanation:
    """Locate the comment in the completion, reward its tokens, and take one gradient step on the model in memory.

    step_size: how far rewarded tokens move, in nats of log-probability, to first order and on average.
    The model's weights are changed; load it again to have the old ones.
    """
    example = Example(id="answer", prompt=prompt, completion=completion)
    feedback = located(comment, completion, prompt)
    room = PromptBudget(model.config.max_position_embeddings, max_completion_length=1)
    (prompt_ids,) = encode_prompts([example], tokenizer, room, plain_prompts)
    ids = [*tokenizer(completion, add_special_tokens=False)["input_ids"], tokenizer.eos_token_id]
    if len(prompt_ids) + len(ids) > model.config.max_position_embeddings:
        raise UserError(f"prompt and completion together are longer than the model's context ({room.context} tokens)")
    if decode(ids, tokenizer) != completion:
        raise UserError("the model's tokenizer cannot spell the completion exactly; check it for unusual characters")
    ranges = offsets(ids, tokenizer)
    rewards, _ = token_rewards(feedback, ranges, credit=Credit(mode="uniform"))
    policy = Policy(model, keep_reference=False)
    before, after = step(policy, prompt_ids, ids, rewards.tolist(), step_size)
    tokens = [
        TokenChange(completion[s:e], s, e, float(reward), float(np.exp(b)), float(np.exp(a)), b, a)
        for (s, e), reward, b, a in zip(ranges, rewards, before, after, strict=True)
    ]
    return Explanation(completion, comment, feedback.spans, feedback.unmatched, tokens)


def located(comment: str, completion: str, prompt: str) -> Feedback:
    """The comment as Feedback with spans. A comment that points at nothing in the completion is an error."""
    said = Feedback(critique=comment, critic="comment")
    (feedback,) = CommentAligner().critique([Example(id="answer", prompt=prompt, completion=completion, feedback=said)])
    if not feedback.spans:
        tried = f" (not found: {', '.join(feedback.unmatched)})" if feedback.unmatched else ""
        raise UserError(
            f"the comment does not say which words of the completion it is about{tried}; "
            f'quote them, as in: The meeting was not on "Friday".'
        )
    return feedback


def step(
    policy: Policy, prompt: list[int], completion: list[int], rewards: Sequence[float], step_size: float
) -> tuple[list[float], list[float]]:
    """Log-probabilities of the completion's tokens before and after one step up the natural-language gradient.

    g = grad of sum_t d_t * log pi(y_t); weights move by eta * g with eta * |g|^2 = step_size * sum_t |d_t|, so that to
    first order rewarded tokens move by step_size on average, in the direction of their reward, whatever the model.
    """
    policy.eval()
    batch = pad_right([prompt], [completion], next(policy.parameters()).device)
    scores = policy(batch, temperature=1.0)
    weights = torch.tensor([list(rewards)], device=scores.logprobs.device)
    (weights * scores.logprobs).sum().backward()
    moved = [(p, p.grad) for p in policy.model.parameters() if p.grad is not None]
    if not any(rewards):
        raise UserError("what the comment says about these words cancels out; say one thing about each")
    squared_norm = sum(float(gradient.square().sum()) for _, gradient in moved)
    eta = step_size * float(weights.abs().sum()) / squared_norm
    with torch.no_grad():
        for parameter, gradient in moved:
            parameter.add_(gradient, alpha=eta)
        after = policy(batch, temperature=1.0)
    before: list[float] = scores.logprobs[0].tolist()
    return before, after.logprobs[0].tolist()
