"""The effect of one comment on one completion: its spans and corrections, the token rewards, and one step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from pydantic_core import to_jsonable_python
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from text2grad.align.comment_aligner import describe_refusals
from text2grad.align.quotes.quotations import find_quotations
from text2grad.align.reading import read_comment
from text2grad.align.tokens import decode, offsets
from text2grad.constrained_step import Change, constrained_step
from text2grad.errors import UserError
from text2grad.models.policy import Policy
from text2grad.models.prompts import encode_prompts
from text2grad.models.special_tokens import encode_texts
from text2grad.rewards.corrections import Completion, find_corrections
from text2grad.rewards.credit import Credit, token_rewards
from text2grad.schema import Example, Feedback, Omission, Span

EXPLAINED_CREDIT = Credit(mode="uniform")


@dataclass(frozen=True)
class TokenChange:
    """One token: offsets in the completion, reward, and probability before and after the step.

    A token of a correction has no offsets of its own: both are the place where the correction starts.
    """

    text: str
    start: int
    end: int
    reward: float
    probability_before: float
    probability_after: float
    logprob_before: float
    logprob_after: float


@dataclass(frozen=True)
class CorrectionChange:
    """A correction: the index of the token in whose place it starts, and the change of each of its own tokens."""

    token: int
    tokens: list[TokenChange]


@dataclass(frozen=True)
class Explanation:
    """A comment as it was read, and the change of every token of the completion and of corrections.

    refused: the clauses that have no effect, each with the reason.
    refused_corrections: how many the tokenizer cannot spell after the tokens before them, or do not fit the context.
    """

    completion: str
    comment: str
    spans: list[Span]
    omissions: list[Omission]
    unmatched: list[str]
    refused: list[tuple[str, str]]
    tokens: list[TokenChange]
    corrections: list[CorrectionChange]
    refused_corrections: int

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-serialisable data."""
        data: dict[str, Any] = to_jsonable_python(self)
        return data


def explain(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    prompt: str,
    completion: str,
    feedback: Feedback,
    step_size: float = 0.5,
    plain_prompts: bool = False,
    refused: Sequence[tuple[str, str]] = (),
) -> Explanation:
    """Reward the tokens of the feedback's spans, and take one gradient step on the model in memory.

    refused: parts of the comment that have no effect, each with the reason; they are passed on to the explanation.

    step_size: how far rewarded tokens move on average, in nats of log-probability; see `find_targets`.
    Changes the weights of `model` in place.
    """
    example = Example(id="explain", prompt=prompt, completion=completion, feedback=feedback)
    context = model.config.max_position_embeddings
    (prompt_ids,) = encode_prompts([example], tokenizer, plain_prompts, context, max_completion_length=1)
    ids = [*encode_texts([completion], tokenizer)[0], int(tokenizer.eos_token_id)]
    if len(prompt_ids) + len(ids) > context:
        raise UserError(f"prompt and completion together are longer than the model's context ({context} tokens)")
    if decode(ids, tokenizer) != completion:
        raise UserError("the model's tokenizer cannot spell the completion exactly; check it for unusual characters")
    ranges = offsets(ids, tokenizer)
    rewards = token_rewards(feedback, ranges, text=completion, credit=EXPLAINED_CREDIT).rewards
    branches, refused_corrections = find_corrections(
        feedback,
        Completion(ids, completion, ranges, ended=True),
        tokenizer,
        encode=lambda text: encode_texts([text], tokenizer)[0],
        max_tokens=context - len(prompt_ids),
        min_confidence=EXPLAINED_CREDIT.min_confidence,
    )
    policy = Policy(model, keep_reference=False)
    changes = constrained_step(policy, prompt_ids, ids, rewards.tolist(), step_size, branches)
    places = [(completion[s:e], s, e) for s, e in ranges]
    rows = [
        CorrectionChange(
            correction.start,
            _token_changes(
                [(text, places[correction.start][1], places[correction.start][1]) for text in texts[inside]],
                [correction.weight] * len(texts[inside]),
                (before[inside], after[inside]),
            ),
        )
        for branch, (before, after) in zip(branches, changes[1:], strict=True)
        for texts in [token_texts(ids[: branch.start], branch.ids, tokenizer)]
        for correction in branch.corrections
        for inside in [slice(correction.first, correction.last)]
    ]
    return Explanation(
        completion=completion,
        comment=feedback.critique,
        spans=feedback.spans,
        omissions=feedback.omissions,
        unmatched=feedback.unmatched,
        refused=list(refused),
        tokens=_token_changes(places, rewards.tolist(), changes[0]),
        corrections=rows,
        refused_corrections=refused_corrections,
    )


def locate_comment(comment: str, completion: str, prompt: str) -> tuple[Feedback, list[tuple[str, str]]]:
    """Read a comment; return its feedback, and the clauses that have no effect, each with the reason.

    Raises UserError if it has no effect at all: it praises, blames and misses nothing that is paid.
    """
    reading = read_comment(comment, completion, prompt or None, critic="comment")
    floor = EXPLAINED_CREDIT.min_confidence
    found = [(completion[span.start : span.end], span.confidence) for span in reading.spans]
    found += [(omission.text, omission.confidence) for omission in reading.omissions]
    if all(confidence < floor for _, confidence in found):
        unsure = "; ".join(f'"{words}": confidence {confidence:.2f}' for words, confidence in found)
        reasons = [part for part in (describe_refusals(comment, reading) if not unsure else "", unsure) if part]
        missing = f"; not found: {', '.join(reading.unmatched)}" if reading.unmatched else ""
        lacks, remedy = "which words of the completion it is about", "quote them"
        if find_quotations(comment) and not reading.unmatched:
            lacks, remedy = "what is right or wrong with the words that it quotes", "say it"
        raise UserError(
            f"the comment does not say {lacks} ({'; '.join(reasons)}{missing}); "
            f'{remedy}, as in: The meeting was not on "Friday".'
        )
    feedback = Feedback(
        critique=comment,
        critic="comment",
        spans=reading.spans,
        omissions=reading.omissions,
        unmatched=reading.unmatched,
    )
    return feedback, [(comment[start:end].strip(), reason) for (start, end), reason in reading.refused]


def _token_changes(
    places: Sequence[tuple[str, int, int]], rewards: Sequence[float], change: Change
) -> list[TokenChange]:
    return [
        TokenChange(text, start, end, reward, float(np.exp(before)), float(np.exp(after)), before, after)
        for (text, start, end), reward, before, after in zip(places, rewards, *change, strict=True)
    ]


def token_texts(prefix: list[int], ids: list[int], tokenizer: PreTrainedTokenizerBase) -> list[str]:
    """Return the characters that each token adds to the text of the prefix."""
    text, ranges = decode([*prefix, *ids], tokenizer), offsets([*prefix, *ids], tokenizer)
    return [text[start:end] for start, end in ranges[len(prefix) :]]
