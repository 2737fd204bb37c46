"""Training runs of `evidence.py`, one alone or several of a task in lockstep."""

from __future__ import annotations

import math
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

import harness
import torch
from evidence_answers import sample_answers, to_rollout
from evidence_arms import ARMS, Arm
from evidence_critics import Judge, TaskJudge, judge_pool
from evidence_plan import Run
from evidence_reward import reward_critic
from evidence_start import start_fingerprint, start_of
from evidence_tasks import TASKS, Task
from one_fault import OneFault
from peft import LoraConfig
from stacked_trainer import TrainerStack
from transformers import PreTrainedTokenizerBase

from text2grad import Text2GradConfig, Text2GradTrainer
from text2grad.align.tokens import overlapping
from text2grad.critics.base import Critic, collect_feedback
from text2grad.evaluation.metrics import critic_score
from text2grad.models.loading import load_tokenizer
from text2grad.models.special_tokens import encode_texts
from text2grad.schema import Example, Feedback
from text2grad.trainer.batch import Rollout
from text2grad.trainer.scoring import score

QUICK_STEPS = 2
CURVE_PROMPTS = 96  # of an evaluation during training; the last one is on all
QUICK: dict[str, Any] = {"per_device_train_batch_size": 4, "num_generations": 2, "max_completion_length": 24}
QUICK_PROMPTS = 4
KEPT_TEXTS, DIGITS = 8, 5  # answers of which a run keeps the text, and digits of its numbers: runs are committed
LOGGED = ("kl", "reward", "completions/mean_length", "corrections/count", "pairs")
ADAPTER = LoraConfig(r=16, lora_alpha=32, target_modules="all-linear")
Row = dict[str, Any]


class Untrained(NamedTuple):
    """What all arms share that have a seed: the answers of the untrained model, and what is measured of them.

    rollout: of the first ones. blamed: (answers, tokens), 1 on tokens that the judge blames. point: of the curve.
    """

    rows: list[Row]
    rollout: Rollout
    blamed: torch.Tensor
    point: Row


class CountingCritic:
    """Counts the answers that the critic was asked about, and their tokens."""

    def __init__(self, critic: Critic, tokenizer: PreTrainedTokenizerBase) -> None:
        self.critic, self.tokenizer = critic, tokenizer
        self.calls = self.tokens = 0

    def critique(self, examples: Sequence[Example]) -> list[Feedback]:
        self.calls += len(examples)
        self.tokens += sum(map(len, encode_texts([e.completion for e in examples], self.tokenizer))) + len(examples)
        return collect_feedback(self.critic, examples)


def run(spec: Run, starts: Path, device: str, steps: int, quick: bool) -> dict[str, Any]:
    """Train once and return the curve, and the metrics of every held-out answer before and after."""
    task, start = TASKS[spec.task], start_of(TASKS[spec.task], starts, quick)
    with tempfile.TemporaryDirectory() as folder:
        args = config_of(spec, folder, device, steps, quick)
        judge = TaskJudge(task)
        critic = critic_of(spec, judge, start, starts, device)
        trainer = Text2GradTrainer(start, critic, args, task.train(), peft_config=ADAPTER)
        untrained = look_before(trainer, judge, task, heldout_of(spec, quick))
        return train(trainer, spec, judge, untrained, start, steps, quick, device)


def run_together(
    specs: Sequence[Run], starts: Path, device: str, steps: int, quick: bool
) -> list[dict[str, Any] | None]:
    """As `run`, for several runs of one task and half that share a model. None: a run that failed."""
    (task_name,) = {spec.task for spec in specs}
    task, start = TASKS[task_name], start_of(TASKS[task_name], starts, quick)
    with judge_pool(task) as judge, tempfile.TemporaryDirectory() as folder:
        configs = [config_of(spec, folder, device, steps, quick) for spec in specs]
        critics = [critic_of(spec, judge, start, starts, device) for spec in specs]
        template = Text2GradTrainer(start, critics[0], configs[0], task.train(), peft_config=ADAPTER)
        stack = TrainerStack(template, configs, critics)
        by_trainer = {id(trainer): spec for trainer, spec in zip(stack.trainers, specs, strict=True)}
        firsts = {spec.seed: id(trainer) for trainer, spec in zip(stack.trainers, specs, strict=True)}

        def look(trainer: Text2GradTrainer) -> Untrained | None:
            is_first = id(trainer) in firsts.values()
            return look_before(trainer, judge, task, heldout_of(by_trainer[id(trainer)], quick)) if is_first else None

        looks = dict(zip(map(id, stack.trainers), stack.run(look), strict=True))

        def learn(trainer: Text2GradTrainer) -> dict[str, Any]:
            spec = by_trainer[id(trainer)]
            untrained = looks[firsts[spec.seed]]
            assert untrained is not None, "the look before training failed"
            return train(trainer, spec, judge, untrained, start, steps, quick, device)

        return stack.run(learn)


def heldout_of(spec: Run, quick: bool) -> list[Example]:
    return TASKS[spec.task].half(spec.half)[: QUICK_PROMPTS if quick else None]


def look_before(trainer: Text2GradTrainer, judge: Judge, task: Task, heldout: Sequence[Example]) -> Untrained:
    """Evaluate the untrained policy, which answers as every arm's does."""
    answers = sample_answers(trainer, heldout)
    rollout = to_rollout(trainer, heldout[:CURVE_PROMPTS], answers[:CURVE_PROMPTS])
    blamed = blamed_tokens(rollout, judge)
    rows = measure(trainer, task, judge, heldout, answers, moved=False)
    return Untrained(rows, rollout, blamed, means(rows) | probabilities(trainer, rollout, blamed))


def config_of(spec: Run, folder: str, device: str, steps: int, quick: bool) -> Text2GradConfig:
    settings = merge(
        TASKS[spec.task].settings,
        {"max_steps": steps, "num_logged_completions": 0},
        ARMS[spec.arm].settings,
        ARMS[spec.arm].partial if spec.said == "one" else {},
        spec.trainer_settings(),
        QUICK if quick else {},
        {} if device != "cpu" else {"gradient_checkpointing": False},
    )
    return Text2GradConfig(output_dir=Path(folder), seed=spec.seed, **settings)


def critic_of(spec: Run, judge: Judge, start: str, starts: Path, device: str) -> CountingCritic:
    """Return the critic of a run: the judge, who names every fault, one of its faults, or the reward model."""
    arm = ARMS[spec.arm]
    said: Critic = judge if spec.said == "all" else OneFault(judge, arm.score)
    return CountingCritic(reward_critic(starts, device) if arm.reward_model else said, load_tokenizer(start))


def train(
    trainer: Text2GradTrainer,
    spec: Run,
    judge: Judge,
    untrained: Untrained,
    start: str,
    steps: int,
    quick: bool,
    device: str,
) -> dict[str, Any]:
    """Train as the arm says, and return what `run` returns."""
    task, arm, began = TASKS[spec.task], ARMS[spec.arm], time.perf_counter()
    evaluated = task.evaluated if spec.half == "report" else ()
    record = Recorder(trainer, task, arm, judge, heldout_of(spec, quick), untrained, (*evaluated, steps))
    arm.learn(trainer, steps, record.after_step)
    record.after()
    return {
        "task": spec.task,
        "arm": spec.arm,
        "said": spec.said,
        "seed": spec.seed,
        "half": spec.half,
        "chosen": spec.settings,
        "start": start_fingerprint(start),
        "steps": steps,
        "samples_per_step": trainer.args.samples_per_step,
        "seconds": record.training_seconds,
        "all_seconds": time.perf_counter() - began,
        "curve": record.curve,
        "before": compact(untrained.rows),
        "after": compact(record.last),
        "logged": record.logged,
        "settings": trainer.args.model_dump(mode="json", exclude={"output_dir"}, exclude_defaults=True),
        "quick": quick,
        "machine": harness.machine(device),
        "commit": harness.commit(),
    }


class Recorder:
    """Evaluates a run while it trains. curve: means over the first held-out prompts, with what it took to get there.

    The curve also follows the words that the judge blames in the answers of the untrained policy (`blamed_probability`)
    and the others of the same answers (`other_probability`): means of their probabilities now.
    evaluated: the steps after which it evaluates, the last one at the end.
    """

    def __init__(
        self,
        trainer: Text2GradTrainer,
        task: Task,
        arm: Arm,
        judge: Judge,
        heldout: Sequence[Example],
        untrained: Untrained,
        evaluated: Sequence[int],
    ) -> None:
        assert isinstance(trainer.critic, CountingCritic)
        self.trainer, self.task, self.arm, self.critic, self.judge = trainer, task, arm, trainer.critic, judge
        self.heldout, self.evaluated, self.untrained = heldout, evaluated, untrained
        self.curve: list[Row] = []
        self.logged: list[Row] = []
        self.last: list[Row] = []
        self.training_seconds = 0.0
        self._add_point(0, untrained.point)
        self.started = time.perf_counter()

    def after_step(self, step: int, metrics: Row) -> None:
        """Record a step; evaluate where one is due."""
        self.training_seconds += time.perf_counter() - self.started
        self.logged.append({key: metrics[key] for key in LOGGED if key in metrics})
        if step in self.evaluated[:-1]:
            self._evaluate(step, self.heldout[:CURVE_PROMPTS])
        self.started = time.perf_counter()

    def after(self) -> None:
        """Evaluate on all held-out prompts."""
        self.last = self._evaluate(self.evaluated[-1], self.heldout)

    def _evaluate(self, step: int, heldout: Sequence[Example]) -> list[Row]:
        began, answer = time.perf_counter(), self.arm.answer
        answers = answer(self.trainer, self.critic, heldout) if answer else sample_answers(self.trainer, heldout)
        if answer:  # the arm works here, where others only answer
            self.training_seconds += time.perf_counter() - began
        rows = measure(self.trainer, self.task, self.judge, heldout, answers, moved=step == self.evaluated[-1])
        followed = probabilities(self.trainer, self.untrained.rollout, self.untrained.blamed)
        self._add_point(step, means(rows) | followed)
        return rows

    def _add_point(self, step: int, point: Row) -> None:
        cost = {
            "seconds": self.training_seconds,
            "critic_calls": self.critic.calls,
            "sampled_tokens": self.critic.tokens,
        }
        self.curve.append({"step": step, **cost, **point})


def means(rows: Sequence[Row]) -> Row:
    """Return the means of all numbers over the first answers."""
    numbers = [name for name, value in rows[0].items() if isinstance(value, int | float)]
    return {name: fmean(row[name] for row in rows[:CURVE_PROMPTS]) for name in numbers}


def probabilities(trainer: Text2GradTrainer, rollout: Rollout, blamed: torch.Tensor) -> Row:
    """Return the mean probabilities that the policy gives to blamed and to other tokens of a rollout."""
    found = score(trainer.learner, rollout, range(len(rollout.examples)), trainer.args, reference=False).logprobs.exp()
    chosen = {"blamed": blamed, "other": rollout.mask - blamed}
    return {f"{name}_probability": float((found * mask).sum() / mask.sum()) for name, mask in chosen.items()}


def blamed_tokens(rollout: Rollout, judge: Judge) -> torch.Tensor:
    """Return (answers, tokens): 1 on tokens of blamed spans."""
    blamed = torch.zeros_like(rollout.mask)
    for i, feedback in enumerate(collect_feedback(judge, rollout.examples)):
        for span in feedback.spans:
            if span.label == "poor":
                blamed[i, overlapping(span.start, span.end, rollout.offsets[i])] = 1
    return blamed


def compact(rows: Sequence[Row]) -> list[Row]:
    """Return the rows with rounded numbers, and with the texts of the first ones only."""
    texts = ("text", "reference")
    return [
        {
            key: float(f"{value:.{DIGITS}g}") if isinstance(value, float) else value
            for key, value in row.items()
            if key not in texts or number < KEPT_TEXTS
        }
        for number, row in enumerate(rows)
    ]


def merge(*groups: dict[str, Any]) -> dict[str, Any]:
    """Return the settings of all groups; of a setting that is a group itself, each group changes a part."""
    found: dict[str, Any] = {}
    for group in groups:
        for key, value in group.items():
            both = isinstance(value, dict) and isinstance(found.get(key), dict)
            found[key] = found[key] | value if both else value
    return found


@torch.no_grad()
def measure(
    trainer: Text2GradTrainer,
    task: Task,
    judge: Judge,
    heldout: Sequence[Example],
    answers: list[list[int]],
    moved: bool,
) -> list[Row]:
    """Return for every held-out answer the metrics, and the full critic's score and faults.

    wanted_words: length of the references. moved: add how far the policy moved (`distances`).
    """
    rollout = to_rollout(trainer, heldout, answers)
    far = distances(trainer, rollout) if moved else [{}] * len(answers)
    feedback = collect_feedback(judge, rollout.examples)
    columns = judge.metrics(rollout.examples)
    return [
        {name: values[i] for name, values in columns.items()}
        | {
            "score": critic_score(feedback[i]) if feedback[i].status == "ok" else math.nan,
            "words": len(example.completion.split()),
            "wanted_words": task.wanted_words(example),
            "tokens": len(answers[i]),
            **far[i],
            "faults": count_faults(task, feedback[i]),
            "text": example.completion,
            "reference": example.reference,
        }
        for i, example in enumerate(rollout.examples)
    ]


def distances(trainer: Text2GradTrainer, rollout: Rollout) -> list[dict[str, float]]:
    """Return of each answer how far the policy moved.

    kl: nats per answer, from the starting model. surprise: nats per token under the starting model at temperature 1.
    """
    everything, args = range(len(rollout.examples)), trainer.args
    plain_args = args.model_copy(update={"temperature": 1.0})
    policy = score(trainer.learner, rollout, everything, args, reference=False).logprobs
    start = score(trainer.learner, rollout, everything, args, reference=True).logprobs
    plain = score(trainer.learner, rollout, everything, plain_args, reference=True).logprobs
    return [
        {
            "kl": float((policy[i] - start[i]).sum()),
            "surprise": float(-plain[i].sum()) / max(1, len(completion)),
        }
        for i, completion in enumerate(rollout.completions)
    ]


def count_faults(task: Task, feedback: Feedback) -> dict[str, int]:
    """Return how often each kind of fault is named."""
    kinds = [task.kind(span) for span in feedback.spans if span.label == "poor"]
    return dict(Counter(kinds + ["missing"] * len(feedback.omissions)))
