"""Supervised fine-tuning on corrected answers, with the trainer's samples, critic, model and optimiser."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from text2grad import Text2GradTrainer
from text2grad.align.tokens import decode, offsets, overlapping
from text2grad.critics.base import collect_feedback
from text2grad.models.batching import stack_rows
from text2grad.models.special_tokens import encode_texts
from text2grad.rewards.corrections import Edit, apply_edits, edits, without_overlaps
from text2grad.schema import Range


def supervised_step(trainer: Text2GradTrainer, step: int, replacements_only: bool) -> None:
    """Sample, ask the critic, and make one optimiser step on the answers with the named faults corrected.

    Answers without a named fault are learned as they are; with `replacements_only` they teach nothing.
    """
    rollout = trainer.rollout(step)
    feedback = collect_feedback(trainer.critic, rollout.examples)
    prompts, completions, masks = [], [], []
    for example, prompt, item in zip(rollout.examples, rollout.prompts, feedback, strict=True):
        text, changed = correct_text(example.completion, list(edits(item, example.completion)))
        ids = [*encode_texts([text], trainer.tokenizer)[0], trainer.tokenizer.eos_token_id]
        mask = changed_tokens(ids, changed, trainer) if replacements_only else torch.ones(len(ids))
        if mask.any() and decode(ids, trainer.tokenizer) == text and len(prompt) + len(ids) <= trainer.context:
            prompts.append(prompt)
            completions.append(ids)
            masks.append(mask)
    if not masks:
        return
    learner, args = trainer.learner, trainer.args
    tokens = float(sum(mask.sum() for mask in masks))
    stacked = stack_rows(masks, max(map(len, completions)))
    trainer.policy.train()
    learner.optimizer.zero_grad()
    for samples, rows in learner.micro_batches(prompts, completions, range(len(prompts)), args.tokens_per_batch):
        logprobs = learner.policy(rows, args.temperature).logprobs
        learner.backward(-(logprobs * stacked[samples, : rows.width].to(logprobs.device)).sum() / tokens)
    learner.clip_gradients(args.max_grad_norm)
    learner.optimizer.step()
    learner.optimizer.zero_grad()


def correct_text(text: str, changes: Sequence[Edit]) -> tuple[str, list[Range]]:
    """Return the text with all edits that do not overlap, and where they are in it; a deletion has no width."""
    together, _ = without_overlaps(sorted(changes, key=lambda edit: edit[:2]))
    return apply_edits(text, together)


def changed_tokens(ids: list[int], changed: list[Range], trainer: Text2GradTrainer) -> torch.Tensor:
    """(tokens,): 1 on tokens of the changed ranges; of a deletion, on the first token after it."""
    mask = torch.zeros(len(ids))
    ranges = offsets(ids, trainer.tokenizer)
    for first, last in changed:
        after = [i for i, (start, end) in enumerate(ranges) if end > first or start >= first]
        mask[overlapping(first, last, ranges) or after[:1]] = 1
    return mask
