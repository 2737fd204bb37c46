"""Kill training runs and resume them: `python kill_support.py FOLDER MODEL KILLS SEED`.

One run goes through. KILLS others are killed with SIGKILL, half of them before a file operation in their folder, spread
evenly over the run, half of them at a random moment; every third one is killed again while it resumes. Each must end
equal to the first one. The processes are forked, so that the libraries are imported once.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

from support import PROMPTS, Silent, VowelCritic

from text2grad.config.run import RunConfig
from text2grad.pipeline import run
from text2grad.schema import Example, Feedback, write_examples

CHANGES = {"os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.truncate"}
TIMED_OUT = 120  # seconds
VARIANTS = [{"save_steps": 1, "num_generations": 2}, {"save_steps": 3, "kl_controller": "adaptive"}]


class ScoringCritic(VowelCritic):
    """With a score that depends on the completion alone."""

    def comment(self, example: Example) -> Feedback:
        share = sum(c in "aeiou" for c in example.completion) / max(len(example.completion), 1)
        return super().comment(example).model_copy(update={"score": 1 - 2 * share})


def main(folder: Path, model: str, kills: int, seed: int) -> None:
    write_data(folder)
    draw = random.Random(seed)
    through = [count_operations(folder, model, variant) for variant in range(len(VARIANTS))]
    for number in range(kills):
        variant = number % len(VARIANTS)
        operations, seconds = through[variant]
        name = f"killed-{number}"
        killed = 0
        for attempt in range(2 if number % 3 == 0 else 1):
            resume = (folder / name / "config.yaml").exists()
            settings = make_config(folder, name, model, variant)
            if number // len(VARIANTS) % 2 == attempt:
                step = max(2 * len(VARIANTS) * operations // (kills + 1), 1)
                moment = 1 + (number // (2 * len(VARIANTS)) * step + draw.randrange(step)) % operations
                status = fork(lambda: [kill_before(moment, settings.output_dir), train(settings, resume)])  # noqa: B023
            else:
                status = fork(lambda: train(settings, resume), kill_after=draw.uniform(0, 0.6 * seconds))  # noqa: B023
            killed += os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL
        resume = (folder / name / "config.yaml").exists()
        last_step = last_checkpoint(folder / name)
        status = fork(lambda: train(make_config(folder, name, model, variant), resume))  # noqa: B023
        one, other = (read_run_folder(folder / run) for run in (f"through-{variant}", name))
        different = sorted(key for key in one.keys() | other.keys() if one.get(key) != other.get(key))
        report = {"kills": killed, "resumed_from": last_step, "status": status, "different": different}
        print(json.dumps(report), flush=True)


def write_data(folder: Path) -> None:
    write_examples(folder / "train.jsonl", PROMPTS)
    write_examples(folder / "heldout.jsonl", [Example(id=f"h{i}", prompt=f"Say {i}.", reference="fox") for i in (1, 2)])


def make_config(folder: Path, name: str, model: str, variant: int) -> RunConfig:
    policy = {
        "max_steps": 5,
        "per_device_train_batch_size": 4,
        "max_completion_length": 8,
        "learning_rate": 0.01,
        "bf16": False,
        "eval_steps": 1,
        "load_best_model_at_end": True,
        **VARIANTS[variant],
    }
    values: dict[str, Any] = {
        "model": {"name": model, "lora": {"r": 2, "alpha": 4}},
        "data": {"train": str(folder / "train.jsonl"), "eval": str(folder / "heldout.jsonl")},
        "critic": {"name": "kill_support:ScoringCritic"},
        "evaluate": {"resamples": 20},
        "policy": policy,
        "output_dir": folder / name,
    }
    return RunConfig.parse(values, where="test")


def train(config: RunConfig, resume: bool) -> None:
    run(config, Silent(), resume)


def fork(work: Callable[[], object], kill_after: float | None = None) -> int:
    """Do `work` in a process of its own and return its status. kill_after: seconds until it is killed."""
    child = os.fork()
    if not child:
        code = 1
        try:
            work()
            code = 0
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stderr.flush()
            os._exit(code)
    deadline = time.monotonic() + (TIMED_OUT if kill_after is None else kill_after)
    while True:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return status
        if time.monotonic() > deadline:
            os.kill(child, signal.SIGKILL)
            return os.waitpid(child, 0)[1]
        time.sleep(0.002)


def on_change(folder: Path, act: Callable[[], None]) -> None:
    """Call `act` before every operation that changes a file or folder in `folder`."""

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        opened = event == "open" and (arguments[2] or 0) & (os.O_WRONLY | os.O_RDWR | os.O_CREAT)
        if not opened and event not in CHANGES:
            return
        relative = event in ("os.remove", "os.rmdir") and arguments[-1] != -1  # to a folder: `shutil.rmtree`
        if relative or str(arguments[0]).startswith(str(folder)):
            act()

    sys.addaudithook(hook)


def kill_before(moment: int, folder: Path) -> None:
    """Kill this process before the given operation, counted from 1."""
    left = [moment]

    def act() -> None:
        left[0] -= 1
        if not left[0]:
            os.kill(os.getpid(), signal.SIGKILL)

    on_change(folder, act)


def count_operations(folder: Path, model: str, variant: int) -> tuple[int, float]:
    """Let a run go through; return the number of its file operations and its duration."""
    config = make_config(folder, f"through-{variant}", model, variant)
    count, start = folder / f"operations-{variant}", time.monotonic()

    def work() -> None:
        operations = [0]

        def act() -> None:
            operations[0] += 1

        on_change(config.output_dir, act)
        train(config, resume=False)
        count.write_text(str(operations[0]))

    assert fork(work) == 0
    return int(count.read_text()), time.monotonic() - start


def last_checkpoint(folder: Path) -> int | None:
    for name in ("last", "previous"):
        path = folder / "checkpoints" / name / "trainer_state.json"
        if path.exists():
            return int(json.loads(path.read_text())["step"])
    return None


def read_run_folder(folder: Path) -> dict[str, Any]:
    """Return what equal runs have in common: everything but times, paths and a leftover of a kill."""
    skipped = {"config.yaml", "report.html", "text2grad_files.json", "README.md", "metrics.jsonl"}
    files: dict[str, Any] = {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and path.name not in skipped and not path.name.startswith(".")
        if not any(part.startswith(".") or part == "previous" for part in path.relative_to(folder).parts)
    }
    lines = map(json.loads, (folder / "metrics.jsonl").read_text().splitlines())
    files["metrics"] = [{k: v for k, v in m.items() if not k.startswith(("time/", "tokens_per"))} for m in lines]
    return files


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
