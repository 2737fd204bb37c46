"""The policy optimiser: sample, listen, reward, update. It knows no task; it sees ids, masks and token rewards."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import torch
from datasets import Dataset
from peft import LoraConfig, PeftModel
from torch import Tensor
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from text2grad import models
from text2grad.critics import Critic
from text2grad.errors import UserError
from text2grad.files import read_json_lines, recover_folder, replace_folder
from text2grad.policy.advantage import KLControl, RunningScale, explained_variance, kl_per_token, normalize
from text2grad.policy.batch import Rollout, as_rollout, reward_rollout
from text2grad.policy.batching import pad_right, stack_rows
from text2grad.policy.checkpoint import Progress, load_checkpoint, save_checkpoint
from text2grad.policy.config import Text2GradConfig
from text2grad.policy.estimators import estimate
from text2grad.policy.learner import make_learner
from text2grad.policy.listen import listen
from text2grad.policy.memory import release_free_memory
from text2grad.policy.model import Policy, Scores
from text2grad.policy.monitor import Monitor
from text2grad.policy.processes import Processes, attempt, make_accelerator, use_device
from text2grad.policy.prompts import PromptRoom, encode_prompts
from text2grad.policy.record import sample_records, step_metrics
from text2grad.policy.rollout import noise, sample
from text2grad.policy.schedule import learning_rate_factor
from text2grad.policy.sharding import place
from text2grad.policy.stopwatch import Stopwatch
from text2grad.policy.streams import Stream, stream
from text2grad.policy.update import Batch, update
from text2grad.runs import RunFolder
from text2grad.schema import Example, Feedback, from_dataset

Metrics = dict[str, Any]
GIVE_UP_AFTER = 3  # steps in a row in which every critique failed, or the update broke
log = logging.getLogger(__name__)


class Text2GradTrainer:
    """Trains a causal language model from a critic's written feedback.

    model: a name, a path, or a model. critic: anything with `critique(examples) -> list[Feedback]`.
    train_dataset: examples, or a Hugging Face dataset with a `prompt` column.
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
    ) -> None:
        self.args, self.critic, self.plain_prompts = args, critic, plain_prompts
        self.accelerator = make_accelerator(args.bf16)
        self.processes = Processes.of(self.accelerator)
        if isinstance(model, str | Path):
            processing_class = processing_class or models.load_tokenizer(model)
            frozen_in_bf16 = args.bf16 and peft_config is not None
            model = models.load_model(model, torch.bfloat16 if frozen_in_bf16 else torch.float32)
        self.tokenizer = processing_class or models.load_tokenizer(str(model.config.name_or_path))
        self.end_ids = _end_ids(model, self.tokenizer)
        self.context: int = model.config.max_position_embeddings
        self.examples = list(from_dataset(train_dataset) if isinstance(train_dataset, Dataset) else train_dataset)
        self.prompts = self.encode(self.examples)

        torch.manual_seed(args.seed)  # the adapter's initial weights
        self.policy = policy = Policy(model, peft_config)
        if args.gradient_checkpointing:
            policy.model.gradient_checkpointing_enable({"use_reentrant": False})
            policy.model.enable_input_require_grads()
        self.full_weights = place(policy, self.accelerator, self.processes)
        groups: list[dict[str, Any]] = [
            {"params": [p for n, p in policy.trainable().items() if not n.startswith("value_head")]},
            {"params": list(policy.value_head.parameters()), "lr": args.value_learning_rate},
        ]
        optimizer = torch.optim.AdamW(groups, lr=args.learning_rate, weight_decay=args.weight_decay)
        self.full_rates = [group["lr"] for group in optimizer.param_groups]
        self.learner = make_learner(policy, optimizer, self.accelerator, self.processes, args)
        self.optimizer = self.learner.optimizer
        self.progress = Progress(
            step=0,
            kl_control=KLControl(args.beta, args.kl_target if args.kl_control == "adaptive" else None, args.kl_horizon),
            reward_scale=RunningScale(),
        )
        self.run = RunFolder(args.output_dir)
        self.monitor = Monitor()
        self.started = False

    def encode(self, examples: Sequence[Example]) -> list[list[int]]:
        """Prompt ids; a prompt that leaves no room for its answer is refused."""
        room = PromptRoom(self.context, self.args.max_completion_length, self.args.max_prompt_length)
        return encode_prompts(examples, self.tokenizer, room, self.plain_prompts)

    def start(self, resume: bool = False) -> None:
        """Open the run in `output_dir`: a new one, or with `resume` the one that is there, at its last checkpoint."""
        if resume:
            self.processes.on_main(lambda: recover_folder(self.run.checkpoint))
            found = self.processes.together(lambda: load_checkpoint(self.run.checkpoint, self.policy, self.optimizer))
            self.progress = found[self.processes.index]
            self.processes.on_main(lambda: self.run.rewind(self.progress.step))
            for _, metrics in read_json_lines(self.run.metrics):
                self._refuse_other_batches(metrics["samples"])
                self.monitor.observe(metrics)
        else:
            self.processes.on_main(self.run.start)
            self._save_checkpoint()
        self.started = True

    def train(self, resume: bool = False, on_step: Callable[[Metrics], None] = lambda metrics: None) -> None:
        """Run to `max_steps`. A resumed run draws the same random numbers as one that never stopped.

        `on_step` gets each step's metrics as they are recorded. A broken update leaves the checkpoint before it alone.
        With `stop_on_hacking` the run ends early at the first sign that the reward is being gamed.
        """
        if not self.started:
            self.start(resume)
        silent_steps = broken_steps = 0
        while self.progress.step < self.args.max_steps and not (self.args.stop_on_hacking and self.monitor.hacking):
            metrics, samples = self.step(self.progress.step + 1)
            metrics = self.processes.agree(metrics)  # clocks may differ, decisions must not
            release_free_memory()
            silent_steps = silent_steps + 1 if metrics["failed"] == metrics["samples"] else 0
            broken_steps = broken_steps + 1 if metrics["skipped"] else 0
            self._warn(metrics)
            self.processes.on_main(partial(self.run.record, metrics, samples))
            self.progress.step += 1
            last = self.progress.step == self.args.max_steps
            if not broken_steps and (last or self.progress.step % self.args.save_steps == 0):
                self._save_checkpoint()
            on_step(metrics)
            if silent_steps == GIVE_UP_AFTER:
                raise UserError(
                    f"every critique failed in {GIVE_UP_AFTER} steps in a row, last: {metrics['failure']}; "
                    f"mend the critic and continue with --resume"
                )
            if broken_steps == GIVE_UP_AFTER:
                raise UserError(
                    f"{metrics['broken']}, and so in {GIVE_UP_AFTER} steps in a row; the last good checkpoint is kept "
                    f"in {self.run.checkpoint}: lower learning_rate and start again from there"
                )

    def _save_checkpoint(self) -> None:
        save_checkpoint(self.run.checkpoint, self.policy, self.optimizer, self.progress, self.processes)

    def _refuse_other_batches(self, before: int) -> None:
        """A resumed run goes on with the prompts that come next, which steps of another size would not."""
        if before != self.samples_per_step:
            raise UserError(
                f"the run in {self.run.root} has {before} answers a step, but this launch has {self.samples_per_step} "
                f"({self.processes.count} times {self.args.samples_per_step}); change per_device_train_batch_size"
            )

    @property
    def samples_per_step(self) -> int:
        """Answers of all processes in one step."""
        return self.args.samples_per_step * self.processes.count

    def _warn(self, metrics: Metrics) -> None:
        """Say what is wrong with a step, and keep it with its metrics."""
        broken = [f"{metrics['broken']}; its step is left out"] if metrics["broken"] else []
        metrics["warnings"] = [*broken, *self.monitor.observe(metrics)]
        for sentence in metrics["warnings"] if self.processes.is_main else ():
            log.warning("step %d: %s", metrics["step"], sentence)

    def step(self, step: int) -> tuple[Metrics, list[dict[str, Any]]]:
        """One step: sample, listen, reward, update. Returns its metrics and the samples kept for the report."""
        args, watch = self.args, Stopwatch()
        self.set_learning_rate(step)
        with watch.part("sampling"):
            rollout = self.rollout(step)
        with watch.part("listening_and_scoring"):
            feedback, now, reference = self.listen_and_score(rollout)
        rewards, valid = reward_rollout(rollout, feedback, args.credit, args.seed, step)
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
            "tokens_per_second": sum(map(len, rollout.completions)) / watch.parts["seconds_sampling"],
        }
        samples = []
        if args.logged_samples and step % args.logging_steps == 0:
            after = self.score(rollout, rows=range(min(args.logged_samples, len(rollout.examples))))
            samples = sample_records(step, rollout, feedback, rewards, valid, batch, after.logprobs)
        return metrics, samples

    def listen_and_score(self, rollout: Rollout) -> tuple[list[Feedback], Scores, Scores]:
        """The critic's feedback, and the answers' scores under the policy and under the reference.

        The passes do not need the critic, so they run beside it: on a GPU, or where the critic waits on a network. On
        the CPU the two would only take the cores from each other.
        """
        own = [rollout.examples[i] for i in self.processes.own(len(rollout.examples))]

        def passes() -> tuple[Scores, Scores]:
            return self.score(rollout), self.score(rollout, reference=True)

        if self.accelerator.device.type == "cpu" and not hasattr(self.critic, "acritique"):
            heard, scores = attempt(lambda: listen(self.critic, own)), passes()
        else:
            # The critic stays in the main thread, where Ctrl-C reaches it.
            with ThreadPoolExecutor(1, initializer=partial(use_device, self.accelerator)) as pool:
                scoring = pool.submit(passes)
                heard, scores = attempt(lambda: listen(self.critic, own)), scoring.result()
        return [said for part in self.processes.share(heard) for said in part], *scores

    def behaviour(self, now: Scores, reference: Scores) -> Scores:
        """How the policy that gave the answers scores them: the ratio of the update is taken against it."""
        return now

    def rollout(self, step: int) -> Rollout:
        """Answers to the step's prompts, sampled at the training temperature, each process its own."""
        args = self.args
        chosen = [i for i in self._prompts_of(step) for _ in range(args.num_generations)]
        prompts = [self.prompts[i] for i in chosen]
        own = self.processes.own(len(chosen), args.num_generations)
        uniforms = noise(Stream.SAMPLING, args.seed, step, own, args.max_completion_length)
        with self.full_weights.filled(self.policy, reference=False) as policy:
            completions = self._sample(
                policy, [prompts[i] for i in own], uniforms, args.temperature, args.num_generations
            )
        return as_rollout(
            [self.examples[i] for i in chosen],
            prompts,
            self.processes.gather(completions),
            self.end_ids,
            self.tokenizer,
        )

    def answer(
        self, examples: Sequence[Example], temperature: float, reference: bool = False, batch_size: int = 24
    ) -> list[Example]:
        """One answer to each prompt; with temperature 0 the most probable one.

        reference: answer as the model did before training.
        """
        completions: list[list[int]] = []
        prompts = self.encode(examples)
        own = self.processes.own(len(examples))
        with self.full_weights.filled(self.policy, reference) as policy:
            for start in range(own.start, own.stop, batch_size):
                rows = range(start, min(start + batch_size, own.stop))
                uniforms = noise(Stream.EVALUATION, self.args.seed, 0, rows, self.args.max_completion_length)
                part = [prompts[i] for i in rows]
                completions += self._sample(policy, part, uniforms, temperature, reference=reference)
                release_free_memory()
        gathered = self.processes.gather(completions)
        return as_rollout(examples, prompts, gathered, self.end_ids, self.tokenizer).examples

    def _sample(
        self,
        policy: Policy,
        prompts: list[list[int]],
        uniforms: Tensor,
        temperature: float,
        num_generations: int = 1,
        reference: bool = False,
    ) -> list[list[int]]:
        """Sampled ids. prompts: one for each answer, those of a group being neighbours."""
        device = self.accelerator.device.type
        with torch.autocast(device, torch.bfloat16, enabled=self.args.bf16), policy.scorer(reference) as model:
            return sample(
                model.eval(),
                prompts[::num_generations],
                uniforms,
                temperature,
                self.end_ids,
                self.tokenizer.pad_token_id,
                num_generations,
            )

    @torch.no_grad()
    def score(self, rollout: Rollout, reference: bool = False, rows: Sequence[int] | None = None) -> Scores:
        """Log-probabilities, entropy and values of the sampled tokens, each (samples, tokens) on the CPU."""
        rows = range(len(rollout.examples)) if rows is None else rows
        width = max(map(len, rollout.completions))
        scored: list[tuple[list[int], Scores]] = []
        self.policy.eval()
        for micro in self.processes.micro_batches(rows, rollout.lengths, self.args.max_tokens_per_batch):
            picked = micro or [0]  # nothing left to score, but the others wait for this pass
            padded = pad_right(
                [rollout.prompts[i] for i in picked], [rollout.completions[i] for i in picked], self.accelerator.device
            )
            scores = self.policy(padded, self.args.temperature, reference=reference)
            if micro:
                scored.append((micro, Scores(*(tensor.cpu() for tensor in scores))))
        results = {
            i: Scores(*row)
            for micro, scores in self.processes.gather(scored)
            for i, row in zip(micro, zip(*scores, strict=True), strict=True)
        }
        return Scores(*(stack_rows([results[i][k] for i in rows], width) for k in range(3)))

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
        return Batch(
            mask=mask,
            old_logprobs=old.logprobs,
            reference_logprobs=reference.logprobs,
            old_values=old.values,
            advantages=normalize(advantages, mask, args.advantage_normalization),
            returns=returns,
            explained_variance=explained_variance(old.values, returns, mask) if args.value_weight else float("nan"),
            anchor=0.0 if in_reward else beta,
        )

    def set_learning_rate(self, step: int) -> None:
        """The step's learning rates, from the schedule alone."""
        args = self.args
        factor = learning_rate_factor(step, args.max_steps, args.warmup_steps, args.lr_scheduler_type)
        for group, full in zip(self.optimizer.param_groups, self.full_rates, strict=True):
            group["lr"] = full * factor

    def save_model(self, folder: Path | None = None) -> Path:
        """The trained model or adapter with its tokenizer, as `from_pretrained` reads it."""
        folder = folder or self.run.final
        with self.full_weights.filled(self.policy, reference=False) as policy:

            def fill(new: Path) -> None:
                policy.model.save_pretrained(new)
                self.tokenizer.save_pretrained(new)

            self.processes.on_main(lambda: replace_folder(folder, fill))
        return folder

    def _prompts_of(self, step: int) -> list[int]:
        """Which prompts a step asks: every epoch is a new permutation, keyed by (seed, epoch)."""
        count = self.samples_per_step // self.args.num_generations
        chosen = []
        for position in range((step - 1) * count, step * count):
            epoch, place = divmod(position, len(self.examples))
            order = stream(Stream.DATA_ORDER, self.args.seed, epoch).permutation(len(self.examples))
            chosen.append(int(order[place]))
        return chosen


def _end_ids(model: PreTrainedModel | PeftModel, tokenizer: PreTrainedTokenizerBase) -> list[int]:
    """Every id that ends an answer: the tokenizer's, and those of the model's generation settings."""
    configured = model.generation_config.eos_token_id
    more = configured if isinstance(configured, list) else [configured] if configured is not None else []
    return sorted({tokenizer.eos_token_id, *more})
