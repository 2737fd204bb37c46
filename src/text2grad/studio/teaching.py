"""Teach the loaded model from feedback on a few answers: now, boundedly, and so that it can be taken back.

A lesson is one update of `trainer/update.py` on a LoRA adapter: some optimiser steps on the commented answers. The
clipped ratio against the model before the lesson bounds the change of each token, corrections are raised to a target
probability, and the KL divergence from the model before the lesson holds the rest.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from threading import RLock

import torch
from accelerate import Accelerator
from torch import Tensor

from text2grad.align.tokens import decode, offsets
from text2grad.checkpoint.model_card import describe_trained, model_card
from text2grad.checkpoint.run_folder import RunFolder
from text2grad.checkpoint.weights import write_weights
from text2grad.critics.base import validate_feedback
from text2grad.distributed.learner import Learner
from text2grad.distributed.processes import SINGLE_PROCESS
from text2grad.distributed.sharding import place_policy
from text2grad.errors import UserError
from text2grad.explain import token_texts
from text2grad.models import loading
from text2grad.models.lora import LoraSettings
from text2grad.models.policy import Policy
from text2grad.models.precision import device_type
from text2grad.models.prompts import encode_prompts
from text2grad.rewards.credit import Credit
from text2grad.rollout.samplers import HFSampler
from text2grad.schema import Example, Feedback
from text2grad.studio.lesson import Control, CorrectionRow, Lesson, TaughtAnswer, TokenRow
from text2grad.trainer.batch import Rollout, RolloutRewards, make_batch, rollout_rewards
from text2grad.trainer.config import CorrectionSettings, PolicySettings
from text2grad.trainer.corrections import CorrectionBatch, rollout_corrections
from text2grad.trainer.offline import completion_ids
from text2grad.trainer.scoring import score_with_branches
from text2grad.trainer.state import KLController, RunningScale, TrainerState
from text2grad.trainer.update import update

# Chosen on texts that benchmarks/studio_teach.py does not report. Corrections weigh less than in training: with few of
# them, a larger weight teaches to end answers early rather than what was wrong with them.
SETTINGS = PolicySettings(
    num_iterations=4,
    learning_rate=1.8e-4,
    epsilon=0.5,
    beta=0.1,
    kl_placement="loss",
    estimator="local",
    vf_coef=0.0,
    corrections=CorrectionSettings(weight=0.1, target_probability=0.5, robustness=0.0, prefix="sampled"),
    max_completion_length=64,
    max_tokens_per_batch=1024,
)
CREDIT = Credit(total="spans")  # people give no scores, and a lesson has nothing to compare a score with

Weights = dict[str, Tensor]
LearnedRows = tuple[list[TokenRow], list[CorrectionRow]]  # the tokens and the corrections of one answer


class Teacher:
    """A model with a LoRA adapter that learns from lessons. Each is kept or discarded before the next one.

    model: a name or folder, as of `text2grad train --model`. device: cpu, or None for the GPU where there is one.
    settings: `num_iterations` steps of `learning_rate`, bounded by `epsilon` and `beta`; `max_completion_length` limits
    the answers that are generated. All methods may be called from several threads; they take turns.
    """

    def __init__(self, model: str, device: str | None = None, settings: PolicySettings = SETTINGS) -> None:
        self.model_name, self._lock = model, RLock()
        self.tokenizer = loading.load_tokenizer(model)
        loaded = loading.load_model(model)
        self.settings = settings = settings.for_device(device or device_type())
        accelerator = Accelerator(cpu=device == "cpu", mixed_precision="bf16" if settings.bf16 else "no")
        self._context = int(getattr(loaded.config, "max_position_embeddings", 1 << 30))
        end_ids = loading.end_ids(loaded, self.tokenizer)
        torch.manual_seed(0)  # the adapter's initial weights
        self.policy = Policy(loaded, LoraSettings().to_peft(), keep_reference=False)
        full_policy = place_policy(self.policy, accelerator, SINGLE_PROCESS)
        self._sampler = HFSampler(full_policy, bool(settings.bf16), end_ids, self.tokenizer.pad_token_id, True)
        self._end_ids, self._accelerator = end_ids, accelerator
        self._pending: tuple[str, Weights] | None = None
        self._kept: list[tuple[str, Weights]] = []
        self._lessons = 0

    @property
    def pending(self) -> str | None:
        """The id of the lesson that is neither kept nor discarded."""
        return self._pending[0] if self._pending else None

    @property
    def kept(self) -> list[str]:
        """The ids of the lessons that were kept, in their order."""
        return [identifier for identifier, _ in self._kept]

    def generate(self, prompt: str) -> str:
        """Return the greedy answer of the model as it is now."""
        (answer,) = self.generate_all([prompt])
        return answer

    def generate_all(self, prompts: Sequence[str]) -> list[str]:
        """Return the greedy answers to several prompts, in one batch."""
        with self._lock:
            return [decode(answer, self.tokenizer) for answer in self._generate(self._encode_texts(prompts))]

    def teach(self, examples: Sequence[tuple[Example, Feedback]], control_prompts: Sequence[str] = ()) -> Lesson:
        """Apply the feedback on these answers, and return what it changed. `keep` or `discard` it next.

        control_prompts: prompts that should not change; they are measured, not trained on.
        """
        with self._lock:
            self._check_nothing_pending()
            start = time.perf_counter()
            rollout = self._rollout([example for example, _ in examples])
            rewards, corrections = self._read(rollout, [feedback for _, feedback in examples])
            prompts = rollout.prompts + self._encode_texts(control_prompts)
            answers_before = self._generate(prompts)
            controls = list(zip(prompts, answers_before, strict=True))[len(examples) :]
            held = [self._distributions(prompt, answer) for prompt, answer in controls]
            before = self._weights()
            try:
                rows = self._learn(rollout, rewards, corrections)
                nats = [_mean_kl(old, self._distributions(*row)) for old, row in zip(held, controls, strict=True)]
                answers_after = self._generate(prompts)
            except BaseException:  # whatever happens, a lesson is learned as a whole or not at all
                self._restore(before)
                raise
            texts = [
                (decode(old, self.tokenizer), decode(new, self.tokenizer))
                for old, new in zip(answers_before, answers_after, strict=True)
            ]
            self._lessons += 1
            self._pending = (f"lesson-{self._lessons}", before)
            return Lesson(
                id=self._pending[0],
                seconds=time.perf_counter() - start,
                answers=_taught_answers(rollout.examples, rows, texts[: len(examples)]),
                refused_corrections=corrections.refused,
                controls=[
                    Control(prompt=prompt, answer_before=old, answer_after=new, nats_per_token=moved)
                    for prompt, (old, new), moved in zip(control_prompts, texts[len(examples) :], nats, strict=True)
                ],
            )

    def keep(self, lesson: str) -> None:
        """Keep a lesson; the next one builds on it."""
        with self._lock:
            self._kept.append(self._take_pending(lesson))

    def discard(self, lesson: str) -> None:
        """Forget a lesson: the weights are as before it, bit for bit."""
        with self._lock:
            self._restore(self._take_pending(lesson)[1])

    def undo(self) -> str:
        """Take back the last lesson that was kept, bit for bit, and return its id."""
        with self._lock:
            self._check_nothing_pending()
            if not self._kept:
                raise UserError("there is no lesson to undo: none was kept")
            identifier, weights = self._kept.pop()
            self._restore(weights)
            return identifier

    def save(self, folder: Path) -> Path:
        """Write a folder as a run has it, with the adapter in `checkpoints/final`; `text2grad export` merges it."""
        with self._lock:
            self._check_nothing_pending()
            run, model = RunFolder(folder), self.policy.model
            card = model_card(
                base=self.model_name,
                trained=describe_trained(model),
                is_adapter=True,
                step=len(self._kept) * self.settings.num_iterations,
                settings=self.settings.model_dump(mode="json"),
                names={"critic": "people, in the studio", "lessons": str(len(self._kept))},
            )
            write_weights(run.final, model, self.tokenizer, card, step=len(self._kept))
            return run.final

    def _check_nothing_pending(self) -> None:
        if self._pending is not None:
            raise UserError(f"{self._pending[0]} is neither kept nor discarded; keep or discard it first")

    def _take_pending(self, lesson: str) -> tuple[str, Weights]:
        if self._pending is None or self._pending[0] != lesson:
            raise UserError(f'lesson "{lesson}" is not the one that waits ({self.pending or "none does"})')
        taken, self._pending = self._pending, None
        return taken

    def _rollout(self, examples: Sequence[Example]) -> Rollout:
        """Return the answers as ids; one that cannot be taught is rejected by its id."""
        if not examples:
            raise UserError("nothing to teach: give at least one answer with feedback")
        prompts, completions = self._encode(examples), []
        for example, prompt in zip(examples, prompts, strict=True):
            ids = completion_ids(example, self.tokenizer) if example.completion else None
            if ids is None:
                raise UserError(f'answer "{example.id}" cannot be taught: it is empty, or has odd characters')
            if len(prompt) + len(ids) > self._context:
                raise UserError(f'answer "{example.id}" with its prompt is longer than {self._context} tokens')
            completions.append(ids)
        return Rollout(
            prompts=prompts,
            completions=completions,
            ended=[ids[-1] in self._end_ids for ids in completions],
            offsets=[offsets(ids, self.tokenizer) for ids in completions],
            examples=list(examples),
        )

    def _read(self, rollout: Rollout, feedback: Sequence[Feedback]) -> tuple[RolloutRewards, CorrectionBatch]:
        """Return what the feedback says about tokens; feedback that says nothing at all is rejected."""
        feedback = [validate_feedback(*pair) for pair in zip(feedback, rollout.examples, strict=True)]
        for example, item in zip(rollout.examples, feedback, strict=True):
            if item.status == "failed":
                raise UserError(f'the feedback on answer "{example.id}" failed: {item.error}; leave it out')
        rewards = rollout_rewards(rollout, feedback, CREDIT, seed=0, step=0)
        corrections = rollout_corrections(
            rollout, feedback, range(len(feedback)), self.tokenizer, self._context, self.settings.corrections
        )
        if not rewards.tokens.any() and not len(corrections):
            raise UserError("the feedback praises, blames and corrects no words, so nothing can be learned; mark some")
        return rewards, corrections

    def _learn(self, rollout: Rollout, rewards: RolloutRewards, corrections: CorrectionBatch) -> list[LearnedRows]:
        """Update the adapter. Returns the tokens and corrections of each answer."""
        args, everything = self.settings, range(len(rollout.examples))
        trained = list(self._adapter().values())
        optimizer = torch.optim.AdamW(trained, lr=args.learning_rate, weight_decay=args.weight_decay)
        learner = Learner(self.policy, optimizer, self._accelerator)
        before, branches_before = score_with_branches(learner, rollout, everything, args, False, corrections.branches)
        corrections = corrections.with_reference(branches_before)
        state = TrainerState(0, KLController(args.beta), RunningScale())
        batch = make_batch(rollout, rewards, before, before, args, state)
        result = update(learner, rollout, batch, args, corrections)
        if result.error is not None:
            raise UserError(f"{result.error}; nothing was changed: lower the learning rate")
        after, branches_after = score_with_branches(learner, rollout, everything, args, False, corrections.branches)
        rows: list[LearnedRows] = []
        for i, ids in enumerate(rollout.completions):
            scores = (tensor[i, : len(ids)] for tensor in (rewards.tokens, before.logprobs, after.logprobs))
            texts = [rollout.examples[i].completion[start:end] for start, end in rollout.offsets[i]]
            rows.append((_token_rows(texts, *scores), []))
        corrected_before, corrected_after = corrections.split(branches_before), corrections.split(branches_after)
        for k in range(len(corrections)):
            sample = corrections.sample(k)
            texts = token_texts(*corrections.tokens(k, rollout.completions[sample]), self.tokenizer)
            weight = corrections.weights[k].expand(len(texts))
            tokens = _token_rows(texts, weight, corrected_before[k], corrected_after[k])
            place, _ = corrections.replaced_range(k, rollout.completions[sample])
            rows[sample][1].append(CorrectionRow(token=place, tokens=tokens))
        return rows

    def _encode(self, examples: Sequence[Example]) -> list[list[int]]:
        return encode_prompts(examples, self.tokenizer, False, self._context, self.settings.max_completion_length)

    def _encode_texts(self, prompts: Sequence[str]) -> list[list[int]]:
        examples = [Example(id=f"prompt {number}", prompt=prompt) for number, prompt in enumerate(prompts, 1)]
        return self._encode(examples) if examples else []

    def _generate(self, prompts: Sequence[list[int]]) -> list[list[int]]:
        """Return the ids of greedy answers."""
        uniforms = torch.zeros(len(prompts), self.settings.max_completion_length)
        with self._sampler.session() as generate:
            completions: list[list[int]] = generate(prompts, uniforms, 0.0).completions
        return completions

    @torch.no_grad()
    def _distributions(self, prompt: list[int], answer: list[int]) -> Tensor:
        """Return log-probabilities of the whole vocabulary at each token of an answer: (tokens, vocabulary)."""
        ids = torch.tensor([prompt + answer], device=self._accelerator.device)
        logits = self.policy.model(input_ids=ids, use_cache=False).logits[0, len(prompt) - 1 : -1]
        return torch.log_softmax(logits.float(), dim=-1)

    def _adapter(self) -> dict[str, torch.nn.Parameter]:
        trained = self.policy.trainable()
        return {name: parameter for name, parameter in trained.items() if not name.startswith("value_head")}

    def _weights(self) -> Weights:
        return {name: parameter.detach().clone() for name, parameter in self._adapter().items()}

    @torch.no_grad()
    def _restore(self, weights: Weights) -> None:
        for name, parameter in self._adapter().items():
            parameter.copy_(weights[name])


def _taught_answers(
    examples: Sequence[Example], rows: Sequence[LearnedRows], texts: Sequence[tuple[str, str]]
) -> list[TaughtAnswer]:
    """Return what a lesson did to each of its answers; texts: greedy answers to the same prompts, before and after."""
    return [
        TaughtAnswer(
            id=example.id,
            prompt=example.prompt_text,
            completion=example.completion,
            tokens=tokens,
            corrections=corrected,
            answer_before=old,
            answer_after=new,
        )
        for example, (tokens, corrected), (old, new) in zip(examples, rows, texts, strict=True)
    ]


def _token_rows(texts: Sequence[str], rewards: Tensor, before: Tensor, after: Tensor) -> list[TokenRow]:
    """rewards, before, after: (tokens,); the latter two are log-probabilities."""
    numbers = zip(rewards.tolist(), before.exp().tolist(), after.exp().tolist(), strict=True)
    return [
        TokenRow(text=text, reward=reward, before=old, after=new)
        for text, (reward, old, new) in zip(texts, numbers, strict=True)
    ]


def _mean_kl(before: Tensor, after: Tensor) -> float:
    """KL(before || after), mean over tokens. Both: (tokens, vocabulary), log-probabilities."""
    return float((before.exp() * (before - after)).sum(-1).mean())
