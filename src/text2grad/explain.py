"""The effect of one comment on one completion: its spans, the token rewards, and one gradient step along them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from pydantic_core import to_jsonable_python
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from text2grad.align.comment_aligner import describe_refusals
from text2grad.align.reading import Reading, read_comment
from text2grad.align.tokens import decode, offsets
from text2grad.errors import UserError
from text2grad.models.batching import pad_right
from text2grad.models.policy import Policy
from text2grad.models.prompts import encode_prompts
from text2grad.models.special_tokens import encode_texts
from text2grad.rewards.credit import Credit, token_rewards
from text2grad.schema import Example, Feedback, Omission, Span

EXPLAINED_CREDIT = Credit(mode="uniform")


@dataclass(frozen=True)
class TokenChange:
    """One token of the completion: offsets, reward, and probability before and after the step."""

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
    """A comment as it was read, and the change of every token of the completion.

    refused: the clauses that have no effect, each with the reason.
    """

    completion: str
    comment: str
    spans: list[Span]
    omissions: list[Omission]
    unmatched: list[str]
    refused: list[tuple[str, str]]
    tokens: list[TokenChange]

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-serialisable data."""
        data: dict[str, Any] = to_jsonable_python(self)
        return data


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
    Changes the weights of `model` in place.
    """
    example = Example(id="explain", prompt=prompt, completion=completion)
    reading = read_or_fail(comment, completion, prompt)
    feedback = Feedback(critique=comment, critic="comment", spans=reading.spans, omissions=reading.omissions)
    context = model.config.max_position_embeddings
    (prompt_ids,) = encode_prompts([example], tokenizer, plain_prompts, context, max_completion_length=1)
    ids = [*encode_texts([completion], tokenizer)[0], tokenizer.eos_token_id]
    if len(prompt_ids) + len(ids) > context:
        raise UserError(f"prompt and completion together are longer than the model's context ({context} tokens)")
    if decode(ids, tokenizer) != completion:
        raise UserError("the model's tokenizer cannot spell the completion exactly; check it for unusual characters")
    ranges = offsets(ids, tokenizer)
    rewards = token_rewards(feedback, ranges, credit=EXPLAINED_CREDIT).rewards
    policy = Policy(model, keep_reference=False)
    before, after = gradient_step(policy, prompt_ids, ids, rewards.tolist(), step_size)
    tokens = [
        TokenChange(completion[s:e], s, e, float(reward), float(np.exp(b)), float(np.exp(a)), b, a)
        for (s, e), reward, b, a in zip(ranges, rewards, before, after, strict=True)
    ]
    refused = [(comment[start:end].strip(), reason) for (start, end), reason in reading.refused]
    return Explanation(completion, comment, reading.spans, reading.omissions, reading.unmatched, refused, tokens)


def read_or_fail(comment: str, completion: str, prompt: str) -> Reading:
    """Read the comment. Raises UserError if it has no effect: it praises, blames and misses nothing that is paid."""
    reading = read_comment(comment, completion, prompt or None, critic="comment")
    floor = EXPLAINED_CREDIT.min_confidence
    if not reading.omissions and not any(span.confidence >= floor for span in reading.spans):
        unsure = "; ".join(f'"{completion[s.start : s.end]}": confidence {s.confidence:.2f}' for s in reading.spans)
        reasons = [part for part in (describe_refusals(comment, reading) if not unsure else "", unsure) if part]
        missing = f"; not found: {', '.join(reading.unmatched)}" if reading.unmatched else ""
        raise UserError(
            f"the comment does not say which words of the completion it is about ({'; '.join(reasons)}{missing}); "
            f'quote them, as in: The meeting was not on "Friday".'
        )
    return reading


def gradient_step(
    policy: Policy, prompt: list[int], completion: list[int], rewards: Sequence[float], step_size: float
) -> tuple[list[float], list[float]]:
    """Take one gradient step along the token rewards; return log-probabilities of the completion before and after it.

    g = grad of sum_t d_t * log pi(y_t); weights move by eta * g with eta * |g|^2 = step_size * sum_t |d_t|, so that to
    first order rewarded tokens move by step_size on average, in the direction of their reward, whatever the model.
    """
    if not any(rewards):
        raise UserError("praise and blame of the same words cancel out; write a comment with one opinion per word")
    policy.eval()
    batch = pad_right([prompt], [completion], next(policy.parameters()).device)
    scores = policy(batch, temperature=1.0)
    weights = torch.tensor([list(rewards)], device=scores.logprobs.device)
    (weights * scores.logprobs).sum().backward()
    gradients = [(p, p.grad) for p in policy.model.parameters() if p.grad is not None]
    squared_norm = sum(float(gradient.square().sum()) for _, gradient in gradients)
    eta = step_size * float(weights.abs().sum()) / squared_norm
    with torch.no_grad():
        for parameter, gradient in gradients:
            parameter.add_(gradient, alpha=eta)
        after = policy(batch, temperature=1.0)
    before: list[float] = scores.logprobs[0].tolist()
    return before, after.logprobs[0].tolist()
