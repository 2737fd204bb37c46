"""Real processes for tests: forked from a server that has imported the libraries once, connected over gloo."""

from __future__ import annotations

import ctypes
import faulthandler
import multiprocessing
import os
import signal
import tempfile
import time
from collections.abc import Callable, Sequence
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import psutil
import pytest
import torch
from peft import LoraConfig
from support import PROMPTS, VowelCritic
from torch import Tensor
from torch.distributed import TCPStore

from text2grad import Text2GradConfig, Text2GradTrainer
from text2grad.distributed.environment import Parallelism
from text2grad.distributed.processes import make_accelerator
from text2grad.errors import UserError
from text2grad.models.loading import load_model
from text2grad.rollout.samplers import Sampler, SamplingRequest
from text2grad.rollout.sampling import Sampled
from text2grad.schema import Example, Feedback, Omission
from text2grad.trainer.callbacks import Callback, Metrics
from text2grad.trainer.offline import OfflineTrainer

IDLE_SECONDS = 60  # for which processes in a deadlock are observed
IDLE_LIMIT = 0.5  # seconds of processor time that they use meanwhile, all together: gloo's threads wake up now and then
MAX_PROCESSOR_SECONDS = 120  # of all processes of a test, which needs a tenth
_server = multiprocessing.get_context("forkserver")
_server.set_forkserver_preload(["text2grad.trainer.trainer", "peft", "transformers.models.llama.modeling_llama"])


def launch(work: Callable[..., None], *arguments: Any, count: int = 2, parallelism: Parallelism = "ddp") -> None:
    """Run `work(*arguments)` on `count` processes, as a launcher would.

    Fails with what all of them have printed, and where each of them was, if one fails or they do not end in time.
    """
    # The store they meet at is here, as `torchrun` does it: no other test can be given its port, and it outlives them.
    store = TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
    with tempfile.TemporaryDirectory() as folder:
        outputs = [Path(folder, str(rank)) for rank in range(count)]
        environments = [
            {
                "MASTER_ADDR": "127.0.0.1",
                "MASTER_PORT": str(store.port),
                "TORCHELASTIC_USE_AGENT_STORE": "True",
                "RANK": str(rank),
                "LOCAL_RANK": str(rank),
                "WORLD_SIZE": str(count),
                "LOCAL_WORLD_SIZE": str(count),
                "OMP_NUM_THREADS": "1",
                "ACCELERATE_USE_FSDP": str(parallelism == "fsdp2").lower(),
                "FSDP_VERSION": "2",
            }
            for rank in range(count)
        ]
        processes = [
            _server.Process(target=_process, args=(environment, output, work, arguments))
            for environment, output in zip(environments, outputs, strict=True)
        ]
        for process in processes:
            process.start()
        failure = _wait(processes)
        codes = [process.exitcode for process in processes]  # of those that ended by themselves
        _abort(processes)
        if failure is not None:
            printed = [output.read_text(errors="replace") for output in outputs if output.exists()]
            pytest.fail("\n".join([f"{failure}; exit codes: {codes} (None: still running, aborted)", *printed]))


def _wait(processes: Sequence[BaseProcess]) -> str | None:
    """Wait until all have ended. Returns why that is not going to happen, or None.

    The limits are in processor time: on a busy machine a test may take minutes, and processes that wait for each other
    use next to none.
    """
    checked, used = time.monotonic(), dict.fromkeys((process.pid for process in processes), 0.0)
    while running := [process for process in processes if process.is_alive()]:
        if any(process.exitcode for process in processes):
            break
        time.sleep(0.05)
        if time.monotonic() - checked < IDLE_SECONDS:
            continue
        checked, before = time.monotonic(), used
        found = {process.pid: _processor_seconds(process) for process in running}
        used = {pid: seconds for pid, seconds in found.items() if seconds is not None}
        if sum(used.values()) > MAX_PROCESSOR_SECONDS:
            return f"not done after {MAX_PROCESSOR_SECONDS} s of processor time"
        if len(used) == len(before) and sum(used.values()) - sum(before.values()) < IDLE_LIMIT:
            return f"a deadlock: next to no processor time was used for {IDLE_SECONDS} s"
    return "a process failed" if any(process.exitcode for process in processes) else None


def _processor_seconds(process: BaseProcess) -> float | None:
    try:
        times = psutil.Process(process.pid).cpu_times()
    except psutil.NoSuchProcess:  # it has just ended
        return None
    return float(times.user + times.system)


def _abort(processes: Sequence[BaseProcess]) -> None:
    """End all processes that still run; they print where they are, before they notice that others have left."""
    for process in processes:
        if process.is_alive():
            assert process.pid is not None
            os.kill(process.pid, signal.SIGABRT)
    for process in processes:
        process.join(20)
        process.kill()
        process.join()


def _process(environment: dict[str, str], output: Path, work: Callable[..., None], arguments: Sequence[Any]) -> None:
    os.environ |= environment
    with output.open("w") as printed:
        os.dup2(printed.fileno(), 1)
        os.dup2(printed.fileno(), 2)
    torch.set_num_threads(1)
    faulthandler.enable()  # on a crash: the Python stacks of all threads, and the native ones
    torch._C._set_print_stack_traces_on_fatal_signal(True)
    work(*arguments)
    torch.distributed.barrier()  # gloo may crash where a process leaves while another one still talks to it
    torch.distributed.destroy_process_group()


class Picky(VowelCritic):
    """Fails on the completions of one prompt, wherever they are in the batch."""

    def critique(self, examples: Sequence[Example]) -> list[Feedback]:
        return [
            Feedback.failure("vowels", "planted") if example.id == "2" else self.comment(example)
            for example in examples
        ]


class Choosy(VowelCritic):
    """Fails on all prompts but one."""

    usable: tuple[str, ...] = ("0",)

    def critique(self, examples: Sequence[Example]) -> list[Feedback]:
        return [
            self.comment(example) if example.id in self.usable else Feedback.failure("vowels", "planted")
            for example in examples
        ]


class Correcting(Choosy):
    """Of two prompts, says that a z should stand in the place of the first vowel and at the start."""

    usable = ("0", "3")

    def comment(self, example: Example) -> Feedback:
        feedback = super().comment(example)
        spans = [span.model_copy(update={"replacement": "z"}) for span in feedback.spans if span.label == "poor"][:1]
        missing = Omission(text="z", insert_at=0, insertion="zzz", severity=0.5)
        return feedback.model_copy(update={"spans": spans, "omissions": [missing]})


class Refusing(VowelCritic):
    """Ends the run on one of the processes, in the second step."""

    def __init__(self, process: int) -> None:
        super().__init__()
        self.process = str(process)
        self.calls = 0

    def critique(self, examples: Sequence[Example]) -> list[Feedback]:
        self.calls += 1
        if os.environ["RANK"] == self.process and self.calls == 2:
            raise UserError("the budget is spent")
        return super().critique(examples)


class Scripted(VowelCritic):
    """Scores held-out completions by evaluation; each process calls it at most once per evaluation."""

    def __init__(self, scores: Sequence[float]) -> None:
        super().__init__()
        self.scores = list(scores)

    def critique(self, examples: Sequence[Example]) -> list[Feedback]:
        if not examples[0].id.startswith("h"):
            return super().critique(examples)
        score = self.scores.pop(0)
        return [Feedback(critic="script", score=score) for _ in examples]


class Diary(Callback):
    """Records the events in a file of its process, and stops the run after the second step."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def on_step(self, metrics: Metrics) -> str | None:
        self._write(f"step {metrics['step']}")
        return "enough" if metrics["step"] == 2 else None

    def on_save(self, folder: Path) -> None:
        self._write(f"save {folder.name}")

    def on_end(self) -> None:
        self._write("end")

    def _write(self, line: str) -> None:
        with (self.folder / f"diary.{os.environ['RANK']}").open("a", encoding="utf-8") as diary:
            diary.write(line + "\n")


class Biased:
    """A sampler to which each token of the step's n-th answer is n tenths of a nat less probable than it is."""

    def __init__(self, sampler: Sampler) -> None:
        self.sampler = sampler

    def sample(self, prompts: Sequence[Sequence[int]], num_generations: int, request: SamplingRequest) -> Sampled:
        completions, logprobs = self.sampler.sample(prompts, num_generations, request)
        assert logprobs is not None
        rows = zip(request.samples, logprobs, strict=True)
        return Sampled(completions, [[logprob - n / 10 for logprob in row] for n, row in rows])


def trainer(model: Path, folder: Path, count: int, lora: bool, **settings: Any) -> Text2GradTrainer:
    """Return a trainer of eight completions per step, in groups of two, on `count` processes.

    settings: of the optimiser, and critic, eval_dataset and callbacks; biased: see `Biased`.
    """
    biased = settings.pop("biased", False)
    defaults: dict[str, Any] = {
        "max_steps": 5,
        "per_device_train_batch_size": 8 // count,
        "num_generations": 2,
        "num_iterations": 2,
        "max_completion_length": 10,
        "learning_rate": 3e-3,
        "estimator": "gae",
        "advantage_normalization": "whiten",
        "kl_controller": "adaptive",
        "bf16": False,
        "max_tokens_per_batch": 100,
    }
    made = Text2GradTrainer(
        model=model,
        critic=settings.pop("critic", Picky()),
        eval_dataset=settings.pop("eval_dataset", ()),
        callbacks=settings.pop("callbacks", ()),
        args=Text2GradConfig(output_dir=folder, **(defaults | settings)),
        train_dataset=PROMPTS,
        peft_config=LoraConfig(r=4, lora_alpha=8, target_modules="all-linear") if lora else None,
    )
    made.end_ids[:] = range(60)  # the tiny model hardly ever says its own; so completions differ in length
    if biased:
        made.sampler = Biased(made.sampler)
    return made


def train(
    model: Path,
    folder: Path,
    count: int,
    lora: bool,
    resume: bool = False,
    more: dict[str, Any] | None = None,
    **settings: Any,
) -> None:
    """Train and save."""
    made = trainer(model, folder, count, lora, **settings, **(more or {}))
    made.train(resume)
    made.save_model()


def train_logged(model: Path, folder: Path, count: int) -> None:
    """Train on answers that are given, with their feedback."""
    answers = ["A fox and a dog.", "Nothing.", "zzz", "The lazy fox", "one two three four five", "Go"]
    examples = [
        example.model_copy(update={"completion": answer, "feedback": VowelCritic().comment(answered)})
        for example, answer in zip(PROMPTS, answers, strict=True)
        if (answered := example.model_copy(update={"completion": answer}))
    ]
    args = Text2GradConfig(
        output_dir=folder,
        max_steps=5,
        per_device_train_batch_size=8 // count,
        learning_rate=3e-3,
        kl_placement="loss",
        bf16=False,
        max_tokens_per_batch=60,
    )
    made = OfflineTrainer(model=model, args=args, train_dataset=examples)
    made.train()
    made.save_model()


def report_error(model: Path, folder: Path, settings: dict[str, Any]) -> None:
    """Write what ended the run to a file of this process."""
    try:
        train(model, folder / "run", 2, True, **settings)
    except UserError as error:
        text = f"{type(error).__name__}: {error}"
        (folder / f"error.{os.environ['RANK']}").write_text(text, encoding="utf-8")


def report_different_weights(model: Path, folder: Path) -> None:
    """Give each process a model of its own."""
    loaded = load_model(model)
    with torch.no_grad():
        loaded.lm_head.weight.add_(int(os.environ["RANK"]))
    try:
        train(loaded, folder / "run", 2, False)  # type: ignore[arg-type]
    except UserError as error:
        (folder / f"error.{os.environ['RANK']}").write_text(str(error), encoding="utf-8")


def crash_one(started: Path) -> None:
    """Crash one process while the other waits for it."""
    make_accelerator(bf16=False)
    if os.environ["RANK"] == "1":
        while not started.exists():
            time.sleep(0.01)
        ctypes.string_at(0)
    started.touch()
    time.sleep(600)


def break_one_gradient(model: Path, folder: Path) -> None:
    """One step in which the second process's gradient is not a number."""
    made = trainer(model, folder, 2, True, max_steps=1, num_logged_completions=0)
    if os.environ["RANK"] == "1":
        made.policy.value_head.register_forward_hook(_poison)
    made.train()


def _poison(module: torch.nn.Module, inputs: tuple[Tensor], values: Tensor) -> None:
    if values.requires_grad:
        values.register_hook(lambda gradient: gradient * float("nan"))


def weights_of(model: Path, lora: bool) -> dict[str, Tensor]:
    """What training starts from."""
    with tempfile.TemporaryDirectory() as folder:
        made = trainer(model, Path(folder), 1, lora)
        return {name: p.detach() for name, p in made.policy.trainable().items()}
