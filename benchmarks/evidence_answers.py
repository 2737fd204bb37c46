"""Answers of a policy to held-out prompts, for `evidence.py`."""

from __future__ import annotations

from collections.abc import Sequence

from text2grad import Text2GradTrainer
from text2grad.rollout.completing import complete_prompts
from text2grad.rollout.sampling import Sampled
from text2grad.schema import Example
from text2grad.trainer.batch import Rollout, make_rollout

BATCH = 64


def sample_answers(trainer: Text2GradTrainer, examples: Sequence[Example], per_prompt: int = 1) -> list[list[int]]:
    """Return the ids of sampled answers, those to one prompt after each other; the same random numbers each time."""
    args = trainer.args
    with trainer.hf_sampler.session(reference=False) as generate:
        return complete_prompts(
            generate,
            trainer.encode_prompts(examples),
            args.temperature,
            args.max_completion_length,
            args.seed,
            num_generations=per_prompt,
            batch_size=BATCH,
        )


def to_rollout(trainer: Text2GradTrainer, examples: Sequence[Example], answers: list[list[int]]) -> Rollout:
    """Return the answers as if the prompts of `examples` had been sampled from."""
    prompts = trainer.encode_prompts(examples)
    return make_rollout(examples, prompts, Sampled(answers, None), trainer.end_ids, trainer.tokenizer)


def to_examples(trainer: Text2GradTrainer, examples: Sequence[Example], answers: list[list[int]]) -> list[Example]:
    return to_rollout(trainer, examples, answers).examples
