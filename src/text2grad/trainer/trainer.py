"""The policy optimiser: sample, listen, reward, update. It knows no task; it sees ids, masks and token rewards."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import torch
from datasets import Dataset
from peft import LoraConfig, PeftModel
from torch import Tensor
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from text2grad.checkpoint.model_card import card_of
from text2grad.checkpoint.run_folder import RunFolder
from text2grad.checkpoint.state import Progress, load_checkpoint, save_checkpoint
from text2grad.checkpoint.weights import read_weights, write_weights
from text2grad.critics.base import Critic
from text2grad.distributed.learner import Learner
from text2grad.distributed.processes import Processes, make_accelerator
from text2grad.distributed.sharding import place_policy
from text2grad.errors import UserError
from text2grad.files import recover_folder
from text2grad.models import loading
from text2grad.models.policy import Policy, Scores
from text2grad.models.prompts import PromptBudget, encode_prompts
from text2grad.rollout.rng import Stream, stream
from text2grad.rollout.samplers import HFSampler, Sampler, SamplingRequest, gather_samples
from text2grad.rollout.sampling import Sampled, noise
from text2grad.rollout.vllm import TrainedPolicy, vllm_sampler
from text2grad.schema import Example, Feedback, from_dataset
from text2grad.trainer.advantage import KLControl, RunningScale, explained_variance, kl_per_token, normalize
from text2grad.trainer.batch import Rollout, make_rollout, rollout_rewards
from text2grad.trainer.callbacks import Callback, Callbacks, Metrics, first_reason
from text2grad.trainer.config import Text2GradConfig
from text2grad.trainer.estimators import estimate
from text2grad.trainer.evaluation import evaluation_due, fixed_subset, heldout_figures, judged, require_heldout
from text2grad.trainer.failure_guard import FailureGuard
from text2grad.trainer.gap import gap_metrics, truncated_weights
from text2grad.trainer.memory import release_free_memory
from text2grad.trainer.metrics import sample_records, step_metrics
from text2grad.trainer.monitor import Monitor
from text2grad.trainer.schedule import learning_rate_factor
from text2grad.trainer.scoring import collect_feedback_beside, score
from text2grad.trainer.selection import Selection
from text2grad.trainer.stopwatch import Stopwatch
from text2grad.trainer.trackers import Trackers, require_trackers
from text2grad.trainer.update import Batch, update

log = logging.getLogger(__name__)
NOTHING_LEARNED = (
    "no word was found better or worse than another, so nothing was learned: does the critic say anything?"
)


class Text2GradTrainer:
    """Trains a causal language model from a critic's written feedback.

    model: a name, a path, or a model. critic: anything with `critique(examples) -> list[Feedback]`.
    train_dataset: examples, or a Hugging Face dataset with a `prompt` column.
    eval_dataset: held-out prompts in the same form, for an evaluation every `eval_steps` steps.
    callbacks: are told what happens, and may ask the run to stop.
    peft_config: train this LoRA adapter instead of all weights.
    plain_prompts: use prompts as plain text, for models without a chat template.
    """

    def __init__(
        self,
        model: str | Path | PreTrainedModel | PeftModel,
        critic: Critic,
        args: Text2GradConfig,
        train_dataset: Sequence[Example] | Dataset,
        processing_class: PreTrainedTokenizerBase | None = None,
        peft_config: LoraConfig | None = None,
        plain_prompts: bool = False,
        eval_dataset: Sequence[Example] | Dataset = (),
        callbacks: Sequence[Callback] = (),
    ) -> None:
        self.critic, self.plain_prompts = critic, plain_prompts
        self.run = RunFolder(args.output_dir)
        require_trackers(args.report_to)
        require_heldout(args.eval_steps, len(eval_dataset))
        self.accelerator = make_accelerator(args.bf16, args.report_to, self.run.trackers)
        self.args = args = args.on(self.accelerator.device.type)
        self.processes = Processes.from_accelerator(self.accelerator)
        self.base = str(model) if isinstance(model, str | Path) else str(model.config.name_or_path)
        if isinstance(model, str | Path):
            processing_class = processing_class or loading.load_tokenizer(model)
            frozen_in_bf16 = args.bf16 and peft_config is not None
            model = loading.load_model(model, torch.bfloat16 if frozen_in_bf16 else torch.float32)
        self.tokenizer = processing_class or loading.load_tokenizer(str(model.config.name_or_path))
        self.end_ids = loading.end_ids(model, self.tokenizer)
        self.context = int(getattr(model.config, "max_position_embeddings", 1 << 30))
        self.examples, heldout = _examples(train_dataset), _examples(eval_dataset)
        self.prompts = self.encode(self.examples)
        if heldout:
            self.encode(heldout)  # a prompt that does not fit should be known now, not after hours of training
        self.heldout = fixed_subset(heldout, args.eval_examples)

        torch.manual_seed(args.seed)  # the adapter's initial weights
        policy = Policy(model, peft_config, share_prompts=args.share_prompts, torch_compile=args.torch_compile)
        if args.gradient_checkpointing:
            policy.model.gradient_checkpointing_enable({"use_reentrant": False})
        self.policy, self.full_policy = policy, place_policy(policy, self.accelerator, self.processes)
        groups: list[dict[str, Any]] = [
            {"params": [p for n, p in policy.trainable().items() if not n.startswith("value_head")]},
            {"params": list(policy.value_head.parameters()), "lr": args.value_learning_rate},
        ]
        optimizer = torch.optim.AdamW(groups, lr=args.learning_rate, weight_decay=args.weight_decay)
        self.full_rates = [group["lr"] for group in optimizer.param_groups]
        self.optimizer = self.accelerator.prepare_optimizer(optimizer)
        self.learner = Learner(policy, self.optimizer, self.accelerator, self.processes)
        self.hf_sampler = HFSampler(
            self.full_policy, args.bf16, self.end_ids, self.tokenizer.pad_token_id, args.fast_decoding
        )
        self.sampler = self._sampler()
        self.progress = Progress(
            step=0,
            kl_control=KLControl(
                args.beta, args.kl_controller_target if args.kl_control == "adaptive" else None, args.kl_horizon
            ),
            reward_scale=RunningScale(),
        )
        settings = args.model_dump(mode="json", exclude={"output_dir"})
        trackers = [Trackers(self.accelerator, settings, self.run.root)] if args.report_to else []
        self.callbacks = Callbacks([*callbacks, *trackers], self.processes)
        self.monitor, self.selection, self.failure_guard = Monitor(), Selection(), FailureGuard(self.run.checkpoint)
        self.started = self.best_is_loaded = False

    def _sampler(self) -> Sampler:
        if self.args.rollouts == "transformers":
            return self.hf_sampler
        args = self.args
        max_length = max(map(len, self.prompts)) + args.max_completion_length
        trained = TrainedPolicy(self.policy, self.accelerator, self.tokenizer, self.end_ids, max_length)
        return vllm_sampler(
            args.rollouts,
            trained,
            args.temperature,
            args.bf16,
            args.vllm_server_base_url,
            args.vllm_gpu_memory_utilization,
        )

    def encode(self, examples: Sequence[Example]) -> list[list[int]]:
        """Prompt ids; a prompt that leaves no room for its answer is refused."""
        room = PromptBudget(self.context, self.args.max_completion_length, self.args.max_prompt_length)
        return encode_prompts(examples, self.tokenizer, room, self.plain_prompts)

    def start(self, resume: bool = False) -> None:
        """Open the run in `output_dir`: a new one, or with `resume` the one that is there, at its last checkpoint."""
        if resume:
            self._resume()
        else:
            self.processes.run_on_main(self.run.start)
            self._save_checkpoint()
        self.started = True

    def _resume(self) -> None:
        for folder in (self.run.checkpoint, self.run.best):
            self.processes.run_on_main(partial(recover_folder, folder))
        found = self.processes.run_on_all(lambda: load_checkpoint(self.run.checkpoint, self.policy, self.optimizer))
        self.progress = found[self.processes.rank]
        self.processes.run_on_main(lambda: self.run.rewind(self.progress.step))
        self.monitor, self.selection, self.best_is_loaded = Monitor(), Selection(), False
        for metrics in self.run.steps():
            self._refuse_other_batches(metrics["samples"])
            self.monitor.observe(metrics)
            self.selection.observe(metrics)
        if self.selection.best is not None and self.selection.best.step == self.progress.step:
            self.save_model(self.run.best)  # the run may have been killed between its checkpoint and this

    def _refuse_other_batches(self, before: int) -> None:
        """A resumed run goes on with the prompts that come next, which steps of another size would not."""
        if before != self.samples_per_step:
            raise UserError(
                f"the run in {self.run.root} has {before} answers a step, but this launch has {self.samples_per_step} "
                f"({self.processes.world_size} times {self.args.samples_per_step}); change per_device_train_batch_size"
            )

    def _save_checkpoint(self) -> None:
        save_checkpoint(self.run.checkpoint, self.policy, self.optimizer, self.progress, self.processes)

    def train(self, resume: bool = False) -> None:
        """Run to `max_steps`. A resumed run draws the same random numbers as one that never stopped.

        A broken update leaves the checkpoint before it alone. The run ends early when a callback asks for it, when
        `early_stopping_patience` is spent, or, with `stop_on_hacking`, at the first sign that the reward is gamed.
        """
        if resume or not self.started:
            self.start(resume)
        self.callbacks.on_start(self.progress.step, self.args.max_steps)
        try:
            stop = self._reason_to_stop()
            while stop is None and self.progress.step < self.args.max_steps:
                stop = self._advance()
            if stop is not None and self.processes.is_main:
                log.warning("the run ends after step %d: %s", self.progress.step, stop)
            if self.args.load_best_at_end and self.selection.best is not None:
                self.processes.run_on_all(lambda: read_weights(self.run.best, self.policy.model))
                self.best_is_loaded, self.started = True, False  # going on means to resume from the checkpoint
        finally:
            self.callbacks.on_end()

    def _advance(self) -> str | None:
        """One step, evaluated where that is due, recorded and saved. Returns why the run should end, if it should."""
        metrics, samples = self.step(self.progress.step + 1)
        metrics = self.processes.broadcast_from_main(metrics)  # clocks may differ, decisions must not
        due = evaluation_due(metrics["step"], self.args) and not metrics["skipped"]
        figures = self.evaluate() if due else {}
        metrics |= figures
        release_free_memory()
        self._warn(metrics)
        self.processes.run_on_main(partial(self.run.record, metrics, samples))
        self.progress.step += 1
        best = self.selection.observe(metrics)
        asked = self.callbacks.on_evaluate({"step": metrics["step"], **figures}) if due else None
        stop = first_reason([asked, self.callbacks.on_step(metrics), self._reason_to_stop()])
        last = stop is not None or self.progress.step == self.args.max_steps
        # The best weights are saved after a checkpoint of their step: resuming then never goes back behind them.
        if not metrics["skipped"] and (last or best or self.progress.step % self.args.save_steps == 0):
            self._save_checkpoint()
            self.callbacks.on_save(self.run.checkpoint)
        if best:
            self.save_model(self.run.best)
        self.failure_guard.observe(metrics)
        return stop

    def _reason_to_stop(self) -> str | None:
        if self.args.stop_on_hacking and self.monitor.hacking:
            return "its reward seems to be gamed"
        return self.selection.reason_to_stop(self.args.early_stopping_patience)

    def evaluate(self) -> Metrics:
        """Figures of the held-out answers that the policy gives now; training goes on as if it had not been asked."""
        watch = Stopwatch()
        with watch.part("evaluation"):
            figures = heldout_figures(judged(self, self.heldout))
        return self.processes.broadcast_from_main(figures | watch.parts)

    def _warn(self, metrics: Metrics) -> None:
        """Say what is wrong with a step, and keep it with its metrics."""
        broken = [f"{metrics['broken']}; its step is left out"] if metrics["broken"] else []
        idle = [NOTHING_LEARNED] if metrics["grad_norm"] == 0 else []
        metrics["warnings"] = [*broken, *idle, *self.monitor.observe(metrics)]
        for sentence in metrics["warnings"] if self.processes.is_main else ():
            log.warning("step %d: %s", metrics["step"], sentence)

    def step(self, step: int) -> tuple[Metrics, list[dict[str, Any]]]:
        """One step: sample, listen, reward, update. Returns its metrics and the samples kept for the report."""
        args, watch = self.args, Stopwatch()
        self.set_learning_rate(step)
        with watch.part("sampling"):
            rollout = self.rollout(step)
        with watch.part("listening_and_scoring"):
            feedback, now, reference = self.critique_and_score_rollout(rollout)
        rewards, valid = rollout_rewards(rollout, feedback, args.credit, args.seed, step)
        batch = self.advantages(rollout, rewards, valid, self.behaviour(now, reference), reference)
        with watch.part("update"):
            outcome = update(self.learner, rollout, batch, args)
        self.progress.skipped_updates += int(outcome.stats["skipped"])
        kl = kl_per_token(now.logprobs, reference.logprobs) * rollout.mask
        if valid.any():
            self.progress.kl_control.update(float(kl.sum(1)[valid].mean()), int(valid.sum()))
        metrics = step_metrics(step, rollout, feedback, rewards, valid, batch, kl, outcome) | {
            "beta": self.progress.kl_control.beta,
            "learning_rate": self.optimizer.param_groups[0]["lr"],
            "seconds": watch.seconds,
            **watch.parts,
            **gap_metrics(now.logprobs, rollout.sampled_logprobs, batch.mask, args.importance_sampling_clip_max),
            "tokens_per_second": sum(map(len, rollout.completions)) / watch.parts["seconds_sampling"],
        }
        samples = []
        if args.logged_samples and step % args.logging_steps == 0:
            after = self.score(rollout, rows=range(min(args.logged_samples, len(rollout.examples))))
            samples = sample_records(step, rollout, feedback, rewards, valid, batch, after.logprobs)
        return metrics, samples

    def critique_and_score_rollout(self, rollout: Rollout) -> tuple[list[Feedback], Scores, Scores]:
        """The critic's feedback, and the answers' scores under the policy and under the reference."""

        def passes() -> tuple[Scores, Scores]:
            return self.score(rollout), self.score(rollout, reference=True)

        feedback, scores = collect_feedback_beside(self.critic, rollout.examples, passes, self.learner)
        return feedback, *scores

    def behaviour(self, now: Scores, reference: Scores) -> Scores:
        """How the policy that gave the answers scores them: the ratio of the update is taken against it."""
        return now

    def rollout(self, step: int) -> Rollout:
        """Answers to the step's prompts, sampled at the training temperature, each process its own."""
        args = self.args
        chosen = [i for i in self._prompts_of(step) for _ in range(args.num_generations)]
        prompts = [self.prompts[i] for i in chosen]
        own = self.processes.local_slice(len(chosen), args.num_generations)
        draws = SamplingRequest(args.seed, step, own, args.temperature, args.max_completion_length)
        asked = [prompts[i] for i in own[:: args.num_generations]]
        sampled = gather_samples(self.sampler.sample(asked, args.num_generations, draws), self.processes)
        return make_rollout([self.examples[i] for i in chosen], prompts, sampled, self.end_ids, self.tokenizer)

    def answer(
        self, examples: Sequence[Example], temperature: float, reference: bool = False, batch_size: int = 24
    ) -> list[Example]:
        """One answer to each prompt; with temperature 0 the most probable one.

        reference: answer as the model did before training.
        """
        completions: list[list[int]] = []
        prompts = self.encode(examples)
        own = self.processes.local_slice(len(examples))
        with self.hf_sampler.session(reference) as generate:
            for start in range(own.start, own.stop, batch_size):
                rows = range(start, min(start + batch_size, own.stop))
                uniforms = noise(Stream.EVALUATION, self.args.seed, 0, rows, self.args.max_completion_length)
                completions += generate([prompts[i] for i in rows], uniforms, temperature).completions
                release_free_memory()
        sampled = gather_samples(Sampled(completions, None), self.processes)
        return make_rollout(examples, prompts, sampled, self.end_ids, self.tokenizer).examples

    def score(self, rollout: Rollout, reference: bool = False, rows: Sequence[int] | None = None) -> Scores:
        """Log-probabilities, entropy and values of the sampled tokens, each (samples, tokens) on the CPU."""
        rows = range(len(rollout.examples)) if rows is None else rows
        return score(self.policy, self.learner, rollout, rows, self.args, reference)

    def advantages(self, rollout: Rollout, rewards: Tensor, valid: Tensor, old: Scores, reference: Scores) -> Batch:
        """r_t = clip(d_t / scale) - beta * KL_t, then the estimator, then normalisation over the step's samples.

        With `kl_placement: loss` the KL is left to the loss.
        """
        args, beta = self.args, self.progress.kl_control.beta
        in_reward = args.kl_placement == "reward"
        usable = valid & torch.tensor(rollout.ended) if args.mask_truncated_completions else valid
        mask = rollout.mask * usable.unsqueeze(1)
        self.progress.reward_scale.update(rewards.sum(1)[valid])
        scaled = (rewards / self.progress.reward_scale.std).clamp(-args.reward_clip, args.reward_clip)
        kl = kl_per_token(old.logprobs, reference.logprobs)
        penalised = scaled - beta * kl if in_reward else scaled
        advantages, returns = estimate(
            args.estimator, penalised, old.values, mask, args.num_generations, args.gamma, args.lam
        )
        cap, sampled = args.importance_sampling_clip_max, rollout.sampled_logprobs
        return Batch(
            mask=mask,
            old_logprobs=old.logprobs,
            reference_logprobs=reference.logprobs,
            old_values=old.values,
            advantages=normalize(advantages, mask, args.advantage_normalization),
            returns=returns,
            explained_variance=explained_variance(old.values, returns, mask) if args.value_weight else float("nan"),
            anchor=0.0 if in_reward else beta,
            weights=None if cap is None or sampled is None else truncated_weights(old.logprobs, sampled, cap),
        )

    def set_learning_rate(self, step: int) -> None:
        """The step's learning rates, from the schedule alone."""
        args = self.args
        factor = learning_rate_factor(step, args.max_steps, args.warmup_steps, args.lr_scheduler_type)
        for group, full in zip(self.optimizer.param_groups, self.full_rates, strict=True):
            group["lr"] = full * factor

    def save_model(self, folder: Path | None = None) -> Path:
        """The trained model or adapter with its tokenizer and card, as `from_pretrained` reads it."""
        folder = folder or self.run.final
        with self.full_policy.summon(reference=False) as policy:
            self.processes.run_on_main(lambda: write_weights(folder, policy.model, self.tokenizer, card_of(self)))
        self.callbacks.on_save(folder)
        return folder

    @property
    def samples_per_step(self) -> int:
        """Answers of all processes in one step."""
        return self.args.samples_per_step * self.processes.world_size

    @property
    def trained_steps(self) -> int:
        """How many steps the weights have learned from: all, or as many as the best ones had where these are loaded."""
        best = self.selection.best if self.best_is_loaded else None
        return self.progress.step if best is None else best.step

    def _prompts_of(self, step: int) -> list[int]:
        """Which prompts a step asks: every epoch is a new permutation, keyed by (seed, epoch)."""
        count = self.samples_per_step // self.args.num_generations
        chosen = []
        for position in range((step - 1) * count, step * count):
            epoch, place = divmod(position, len(self.examples))
            order = stream(Stream.DATA_ORDER, self.args.seed, epoch).permutation(len(self.examples))
            chosen.append(int(order[place]))
        return chosen


def _examples(data: Sequence[Example] | Dataset) -> list[Example]:
    return list(from_dataset(data) if isinstance(data, Dataset) else data)
