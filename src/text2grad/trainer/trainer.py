"""The trainer: sample, critique, token rewards, advantages, update. It sees ids, masks and rewards, and no task."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

from datasets import Dataset
from peft import LoraConfig, PeftModel
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from text2grad.checkpoint.checkpoint import check_models, find_checkpoint, load_checkpoint, save_checkpoint
from text2grad.checkpoint.model_card import describe_trained, model_card, read_names
from text2grad.checkpoint.run_folder import RunFolder
from text2grad.checkpoint.weights import check_weights, read_weights, write_weights
from text2grad.critics.base import Critic, check_critic, collect_in_batches
from text2grad.distributed.learner import Learner
from text2grad.distributed.processes import Processes, make_accelerator
from text2grad.distributed.sharding import place_policy
from text2grad.errors import UserError
from text2grad.folders import remove_leftovers
from text2grad.models.policy import Scores
from text2grad.models.prompts import encode_prompts
from text2grad.rollout.completing import BATCH_SIZE, OnProgress, complete_prompts, ignore_progress
from text2grad.rollout.samplers import HFSampler, SamplingRequest, gather_samples
from text2grad.rollout.sampling import Sampled
from text2grad.rollout.vllm.completions import TrainedPolicy
from text2grad.schema import Example, Feedback, from_dataset
from text2grad.trainer.batch import Rollout, make_batch, make_rollout, prompt_indices, rollout_rewards
from text2grad.trainer.callbacks import Callback, Callbacks, Metrics, first_reason
from text2grad.trainer.config import Text2GradConfig
from text2grad.trainer.corrections import NO_CORRECTIONS, CorrectionBatch, rollout_corrections
from text2grad.trainer.data_checks import data_warnings
from text2grad.trainer.evaluation import eval_metrics, fixed_subset, should_evaluate
from text2grad.trainer.guards import BestCheckpoint, FailureGuard, check_some_critique
from text2grad.trainer.metrics import (
    correction_change,
    correction_records,
    sample_records,
    sampling_metrics,
    step_metrics,
)
from text2grad.trainer.monitor import RewardHackingMonitor
from text2grad.trainer.policy_setup import load_initial, make_optimizer, make_policy, make_sampler
from text2grad.trainer.scoring import (
    LoggedFeedback,
    behaviour_scores,
    collect_feedback_during,
    score,
    score_with_branches,
    token_kl,
)
from text2grad.trainer.state import KLController, RunningScale, TrainerState
from text2grad.trainer.trackers import Trackers, require_trackers
from text2grad.trainer.update import update
from text2grad.trainer.utils import StepTimer, learning_rate_factor, release_free_memory

log = logging.getLogger(__name__)
NO_GRADIENT = "all advantages are 0, so nothing was learned: check that the critic comments on the completions"


class Text2GradTrainer:
    """Train a causal language model from a critic's written feedback.

    model: a name, a path, a run to continue from, or a model.
    critic: anything with `critique(examples) -> list[Feedback]`.
    train_dataset: examples, or a Hugging Face dataset with a `prompt` column.
    eval_dataset: held-out prompts in the same form, for an evaluation every `eval_steps` steps.
    callbacks: called at every stage of the run; they may end it.
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
        check_critic(critic, f"the critic {getattr(critic, '__name__', type(critic).__name__)}")
        self.critic, self.plain_prompts = critic, plain_prompts
        self.card_names: dict[str, str] = {}  # more rows of the model card, or other ones
        self.run = RunFolder(args.output_dir)
        require_trackers(args.report_to)
        if args.eval_steps is not None and not len(eval_dataset):
            raise UserError(
                "eval_steps is set but there are no held-out prompts: set data.eval, or pass an eval_dataset to the "
                "trainer"
            )
        self.accelerator = make_accelerator(args.bf16, args.report_to, self.run.trackers)
        self.args = args = args.for_device(self.accelerator.device.type)
        self.processes = Processes.from_accelerator(self.accelerator)
        initial = load_initial(model, processing_class, peft_config, bool(args.bf16))
        self.tokenizer, self.base_model = initial.tokenizer, initial.base
        self.end_ids, self.context = initial.end_ids, initial.context
        self.examples, eval_examples = _to_examples(train_dataset), _to_examples(eval_dataset)
        for warning in data_warnings(self.examples, eval_examples) if self.processes.is_main else ():
            log.warning("%s", warning)
        self.prompts = self.encode_prompts(self.examples)
        if eval_examples:
            self.encode_prompts(eval_examples)  # reject a prompt that does not fit now, not after hours of training
        self.eval_examples = fixed_subset(eval_examples, args.max_eval_samples)

        policy = make_policy(initial.model, peft_config, args, self.accelerator.device)
        self.policy, self.full_policy = policy, place_policy(policy, self.accelerator, self.processes)
        self.optimizer = make_optimizer(policy, args, fused=self.accelerator.device.type == "cuda")
        self.base_learning_rates = [group["lr"] for group in self.optimizer.param_groups]
        self.learner = Learner(policy, self.optimizer, self.accelerator, self.processes)
        self.hf_sampler = HFSampler(
            self.full_policy, bool(args.bf16), self.end_ids, self.tokenizer.pad_token_id, args.fast_decoding
        )
        max_length = max(map(len, self.prompts)) + args.max_completion_length
        trained = TrainedPolicy(
            policy.model, self.accelerator, self.tokenizer, self.end_ids, max_length, self.run.engine_weights
        )
        self.sampler = make_sampler(args, self.hf_sampler, trained)
        kl_target = args.kl_controller_target if args.kl_controller == "adaptive" else None
        self.state = TrainerState(0, KLController(args.beta, kl_target, args.kl_controller_horizon), RunningScale())
        settings = args.model_dump(mode="json", exclude={"output_dir"})
        trackers = [Trackers(self.accelerator, settings, self.run.root)] if args.report_to else []
        self.callbacks = Callbacks([*callbacks, *trackers], self.processes)
        self.monitor, self.best_checkpoint = RewardHackingMonitor(), BestCheckpoint()
        self.failure_guard = FailureGuard(self.run.checkpoint)
        self.started = self.best_is_loaded = False

    def train(self, resume: bool = False) -> None:
        """Train up to `max_steps`. A resumed run draws the same random numbers as an uninterrupted one.

        A failed update is not checkpointed. The run ends early when a callback returns a reason, when
        `early_stopping_patience` is exceeded, or, with `stop_on_hacking`, at the first sign of reward hacking. Raises
        UserError where every critique of the run failed.
        """
        with self.locked():
            if resume or not self.started:
                self.start(resume)
            self._train()

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Let no other process write the run folder meanwhile; may be nested."""
        with ExitStack() as stack:
            self.processes.run_on_main(lambda: stack.enter_context(self.run.lock()))
            yield

    def _train(self) -> None:
        self.callbacks.on_start(self.state.step, self.args.max_steps)
        try:
            stop = self._stop_reason()
            while stop is None and self.state.step < self.args.max_steps:
                stop = self._train_step()
            if stop is not None and self.processes.is_main:
                log.warning("the run ends after step %d: %s", self.state.step, stop)
            self.processes.run_on_main(lambda: check_some_critique(self.run.steps()))
            if self.args.load_best_model_at_end and self.best_checkpoint.best is not None:
                self._load_best_model()
        finally:
            self.callbacks.on_end()

    def _load_best_model(self) -> None:
        saved, best = self.processes.run_on_main(lambda: check_weights(self.run.best)), self.best_checkpoint.best
        assert best is not None
        if saved != best.step:  # the run fell back to a checkpoint before its best step, which then turned out worse
            if self.processes.is_main:
                log.warning("the weights of step %d, the best, are lost: the run ends with the last ones", best.step)
            return
        self.processes.run_on_all(lambda: read_weights(self.run.best, self.policy.model))
        self.best_is_loaded, self.started = True, False  # further training resumes from the checkpoint

    def step(self, step: int) -> tuple[Metrics, list[dict[str, Any]]]:
        """Run one step. Returns its metrics and the samples to log."""
        args, timer = self.args, StepTimer()
        self.set_learning_rate(step)
        with timer.stage("rollout"):
            rollout = self.rollout(step)
        with timer.stage("critique_and_score"):
            feedback, corrections, current, reference = self.critique_and_score(rollout)
        rewards = rollout_rewards(rollout, feedback, args.credit, args.seed, step)
        old = behaviour_scores(rollout, current, reference)
        batch = make_batch(rollout, rewards, old, reference, args, self.state)
        with timer.stage("update"):
            result = update(self.learner, rollout, batch, args, corrections)

        self.state.skipped_updates += int(result.stats["skipped"])
        kl = token_kl(rollout, current, reference)
        if rewards.valid.any():
            self.state.kl_controller.update(float(kl.sum(1)[rewards.valid].mean()), int(rewards.valid.sum()))
        seconds = timer.metrics()
        metrics = step_metrics(step, rollout, feedback, rewards, batch, corrections, kl, result) | {
            "beta": self.state.kl_controller.beta,
            "learning_rate": self.optimizer.param_groups[0]["lr"],
            **seconds,
            **sampling_metrics(
                current.logprobs, rollout.sampled_logprobs, batch.mask, args.importance_sampling_clip_max
            ),
            "tokens_per_second": sum(map(len, rollout.completions))
            / seconds["time/step" if rollout.logged else "time/rollout"],
        }
        samples = []
        if args.num_logged_completions and step % args.log_completions_steps == 0:
            logged = range(min(args.num_logged_completions, len(rollout.examples)))
            after, branches = score_with_branches(self.learner, rollout, logged, args, False, corrections.branches)
            corrected = corrections.split(branches)
            taught = correction_records(rollout, corrections, result.corrections, corrected, self.tokenizer)
            samples = sample_records(step, rollout, feedback, rewards, batch, kl, after.logprobs, taught)
            metrics |= correction_change(result.corrections, corrected)
        return metrics, samples

    def rollout(self, step: int) -> Rollout:
        """Sample completions of the step's prompts, each process its share."""
        args = self.args
        chosen = [i for i in self._prompt_indices(step) for _ in range(args.num_generations)]
        prompts = [self.prompts[i] for i in chosen]
        own = self.processes.local_slice(len(chosen), args.num_generations)
        request = SamplingRequest(args.seed, step, own, args.temperature, args.max_completion_length)
        own_prompts = [prompts[i] for i in own[:: args.num_generations]]
        sampled = gather_samples(self.sampler.sample(own_prompts, args.num_generations, request), self.processes)
        return make_rollout([self.examples[i] for i in chosen], prompts, sampled, self.end_ids, self.tokenizer)

    def critique_and_score(self, rollout: Rollout) -> tuple[list[Feedback], CorrectionBatch, Scores, Scores]:
        """Return the critic's feedback, its corrections, and the scores under the current policy and the reference.

        Where the reference has to score the corrections too, it waits for the critic: one pass is cheaper than two.
        """
        wait = bool(self.args.corrections.weight and self.args.corrections.kl)

        def forward_passes() -> tuple[Scores, Scores | None]:
            return self.score(rollout), None if wait else self.score(rollout, reference=True)

        critic = LoggedFeedback() if rollout.logged else self.critic
        feedback, (current, reference) = collect_feedback_during(forward_passes, critic, rollout.examples, self.learner)
        corrections = self.find_corrections(rollout, feedback)
        if reference is None:
            rows, branches = range(len(rollout.examples)), corrections.branches
            reference, logprobs = score_with_branches(self.learner, rollout, rows, self.args, True, branches)
            corrections = corrections.with_reference(logprobs)
        return feedback, corrections, current, reference

    def find_corrections(self, rollout: Rollout, feedback: Sequence[Feedback]) -> CorrectionBatch:
        """Return the corrections of the samples that are trained on; none where they have no weight."""
        args = self.args
        if not args.corrections.weight:
            return NO_CORRECTIONS
        samples = [i for i, ended in enumerate(rollout.ended) if ended or not args.mask_truncated_completions]
        settings, floor = args.corrections, args.credit.min_confidence
        return rollout_corrections(rollout, feedback, samples, self.tokenizer, self.context, settings, floor)

    def score(self, rollout: Rollout, reference: bool = False, rows: Sequence[int] | None = None) -> Scores:
        """Compute log-probabilities, entropy and values of the sampled tokens, each (samples, tokens) on the CPU."""
        rows = range(len(rollout.examples)) if rows is None else rows
        return score(self.learner, rollout, rows, self.args, reference)

    def _train_step(self) -> str | None:
        """Run one step, evaluate where due, record and save. Returns why the run should end, or None."""
        metrics, samples = self.step(self.state.step + 1)
        metrics = self.processes.broadcast_from_main(metrics)  # clocks may differ between processes, decisions must not
        evaluates = should_evaluate(metrics["step"], self.args) and not metrics["skipped"]
        evaluation = self.evaluate() if evaluates else {}
        metrics |= evaluation
        release_free_memory()
        self._warn(metrics)
        self.processes.run_on_main(partial(self.run.record, metrics, samples))
        self.state.step += 1
        is_best = self.best_checkpoint.observe(metrics)
        eval_reason = self.callbacks.on_evaluate({"step": metrics["step"], **evaluation}) if evaluates else None
        stop = first_reason([eval_reason, self.callbacks.on_step(metrics), self._stop_reason()])
        last = stop is not None or self.state.step == self.args.max_steps
        if evaluates or last or self.state.step % self.args.logging_steps == 0:
            self.callbacks.on_log(metrics)
        # The best weights are saved after a checkpoint of their step: resuming then never restarts before them.
        if not metrics["skipped"] and (last or is_best or self.state.step % self.args.save_steps == 0):
            self._save_checkpoint(self.run.previous)
            self.callbacks.on_save(self.run.checkpoint)
        if is_best:
            self.save_model(self.run.best)
        self.failure_guard.observe(metrics)
        return stop

    def _stop_reason(self) -> str | None:
        if self.args.stop_on_hacking and self.monitor.hacking:
            return "signs of reward hacking"
        return self.best_checkpoint.stop_reason(self.args.early_stopping_patience)

    def _warn(self, metrics: Metrics) -> None:
        """Log the warnings about a step, and store them with its metrics."""
        skipped = [f"{metrics['update_error']}; the update is skipped"] if metrics["update_error"] else []
        idle = [NO_GRADIENT] if metrics["grad_norm"] == 0 else []
        metrics["warnings"] = [*skipped, *idle, *self.monitor.observe(metrics)]
        for sentence in metrics["warnings"] if self.processes.is_main else ():
            log.warning("step %d: %s", metrics["step"], sentence)

    def evaluate(self) -> Metrics:
        """Return metrics of completions of the held-out prompts; training is not affected."""
        timer = StepTimer()
        with timer.stage("evaluation"):
            metrics = eval_metrics(self.generate_with_feedback(self.eval_examples))
        return self.processes.broadcast_from_main(metrics | timer.stages)

    def generate_with_feedback(self, examples: Sequence[Example], reference: bool = False) -> list[Example]:
        """Return completions at the evaluation temperature, with the critic's feedback. reference: as in `generate`."""
        return self.add_feedback(self.generate(examples, self.args.generation_temperature, reference))

    def add_feedback(self, completed: Sequence[Example], on_progress: OnProgress = ignore_progress) -> list[Example]:
        """Return the examples with the critic's feedback. on_progress: as in `generate`."""
        feedback = self.processes.map(lambda share: collect_in_batches(self.critic, share, on_progress), completed)
        return [e.model_copy(update={"feedback": item}) for e, item in zip(completed, feedback, strict=True)]

    def generate(
        self,
        examples: Sequence[Example],
        temperature: float,
        reference: bool = False,
        batch_size: int = BATCH_SIZE,
        on_progress: OnProgress = ignore_progress,
    ) -> list[Example]:
        """Return one completion per prompt; temperature 0 is greedy. reference: sample from the untrained model.

        on_progress: called on each process with the numbers of finished and all examples of its share.
        """
        prompts = self.encode_prompts(examples)
        own = self.processes.local_slice(len(examples))

        def report(done: int, total: int) -> None:
            on_progress(done, total)
            release_free_memory()

        with self.hf_sampler.session(reference) as generate:
            completions = complete_prompts(
                generate,
                [prompts[i] for i in own],
                temperature,
                self.args.max_completion_length,
                self.args.seed,
                first=own.start,
                batch_size=batch_size,
                on_progress=report,
            )
        sampled = gather_samples(Sampled(completions, None), self.processes)
        return make_rollout(examples, prompts, sampled, self.end_ids, self.tokenizer).examples

    def start(self, resume: bool = False) -> None:
        """Start a new run in `output_dir`, or with `resume` continue the one there from its last checkpoint."""
        with self.locked():
            if resume:
                self._resume()
            else:
                self.processes.run_on_main(self.run.start)
                self._save_checkpoint(previous=None)
        self.started = True

    def _resume(self) -> None:
        self.processes.run_on_main(lambda: check_models(self.run))
        folder = self.processes.run_on_main(lambda: find_checkpoint(self.run))
        self.processes.run_on_main(partial(remove_leftovers, self.run.checkpoint))
        states = self.processes.run_on_all(lambda: load_checkpoint(folder, self.policy, self.optimizer))
        self.state = TrainerState(**states[self.processes.rank])
        self.processes.run_on_main(lambda: self.run.rewind(self.state.step))
        self._observe_recorded()
        best = self.best_checkpoint.best
        if best is not None and best.step == self.state.step:
            self.save_model(self.run.best)  # the run may have been killed between its checkpoint and this
        elif best is not None and self.args.load_best_model_at_end:
            self.processes.run_on_main(lambda: check_weights(self.run.best))  # now, not at the end of the run

    def _observe_recorded(self) -> None:
        """Rebuild what is remembered of the steps so far from their metrics."""
        self.monitor, self.best_checkpoint, self.best_is_loaded = RewardHackingMonitor(), BestCheckpoint(), False
        for metrics in self.run.steps():
            if metrics.get("samples") != self.samples_per_step:  # the run would continue with other prompts
                raise UserError(
                    f"the run in {self.run.root} has {metrics.get('samples')} completions per step, but this launch "
                    f"has {self.samples_per_step} ({self.processes.world_size} times {self.args.samples_per_step}); "
                    f"change per_device_train_batch_size"
                )
            self.monitor.observe(metrics)
            self.best_checkpoint.observe(metrics)

    def _save_checkpoint(self, previous: Path | None) -> None:
        save_checkpoint(self.run.checkpoint, self.policy, self.optimizer, asdict(self.state), self.processes, previous)

    def save_model(self, folder: Path | None = None) -> Path:
        """Save the trained model or adapter with its tokenizer and card, for `from_pretrained`."""
        folder = folder or self.run.final
        with self.full_policy.summon(reference=False) as policy:
            self.processes.run_on_main(
                lambda: write_weights(
                    folder, policy.model, self.tokenizer, self.create_model_card(), step=self.trained_steps
                )
            )
        self.callbacks.on_save(folder)
        return folder

    def create_model_card(self, evaluation: dict[str, Any] | None = None) -> str:
        """Return the card of the current weights. evaluation: held-out metrics before and after training."""
        model, step = self.policy.model, self.trained_steps
        return model_card(
            base=self.base_model,
            trained=describe_trained(model),
            is_adapter=isinstance(model, PeftModel),
            step=step,
            settings=self.args.model_dump(mode="json"),
            names={"critic": type(self.critic).__name__, **read_names(self.run.config), **self.card_names},
            scores=[evaluated for evaluated in self.best_checkpoint.scores if evaluated.step <= step],
            evaluation=evaluation,
        )

    def encode_prompts(self, examples: Sequence[Example]) -> list[list[int]]:
        """Return prompt ids; a prompt that leaves too few tokens for its completion is rejected."""
        limits = self.context, self.args.max_completion_length, self.args.max_prompt_length
        return encode_prompts(examples, self.tokenizer, self.plain_prompts, *limits)

    def set_learning_rate(self, step: int) -> None:
        """Set the learning rates of a step from the schedule."""
        args = self.args
        factor = learning_rate_factor(step, args.max_steps, args.warmup_steps, args.lr_scheduler_type)
        for group, base in zip(self.optimizer.param_groups, self.base_learning_rates, strict=True):
            group["lr"] = base * factor

    @property
    def samples_per_step(self) -> int:
        """Completions of all processes per step."""
        return self.args.samples_per_step * self.processes.world_size

    @property
    def trained_steps(self) -> int:
        """Steps that the current weights were trained for: fewer than all where the best weights are loaded."""
        best = self.best_checkpoint.best if self.best_is_loaded else None
        return self.state.step if best is None else best.step

    def _prompt_indices(self, step: int) -> list[int]:
        num_prompts = self.samples_per_step // self.args.num_generations
        return prompt_indices(step, num_prompts, len(self.examples), self.args.seed)


def _to_examples(data: Sequence[Example] | Dataset) -> list[Example]:
    has_rows = isinstance(data, Dataset) or (len(data) > 0 and isinstance(data[0], Mapping))
    return list(from_dataset(data) if has_rows else data)
