"""Real processes for tests: forked from a server that has imported the libraries once, connected over gloo."""

from __future__ import annotations

import multiprocessing
import os
import socket
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from peft import LoraConfig
from support import PROMPTS, VowelCritic

from text2grad import Text2GradConfig, Text2GradTrainer
from text2grad.policy.batch import Rollout, as_rollout
from text2grad.schema import Example, Feedback

PATIENCE = 100  # seconds until processes that wait for each other count as deadlocked
_server = multiprocessing.get_context("forkserver")
_server.set_forkserver_preload(["processes_support"])


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def launch(work: Callable[..., None], *arguments: Any, count: int = 2, sharded: bool = False) -> list[int]:
    """Run `work(*arguments)` on `count` processes, as a launcher would; returns their exit codes.

    As with a launcher, one that fails takes the others with it. Those that do not end in time are killed, and the test
    fails.
    """
    port = free_port()
    environments = [
        {
            "MASTER_ADDR": "127.0.0.1",
            "MASTER_PORT": str(port),
            "RANK": str(rank),
            "LOCAL_RANK": str(rank),
            "WORLD_SIZE": str(count),
            "LOCAL_WORLD_SIZE": str(count),
            "OMP_NUM_THREADS": "1",
            "ACCELERATE_USE_FSDP": str(sharded).lower(),
            "FSDP_VERSION": "2",
        }
        for rank in range(count)
    ]
    processes = [_server.Process(target=_process, args=(environment, work, arguments)) for environment in environments]
    for process in processes:
        process.start()
    deadline = time.monotonic() + PATIENCE
    while any(p.is_alive() for p in processes) and time.monotonic() < deadline:
        time.sleep(0.05)
    stuck = [p for p in processes if p.is_alive()]
    for process in stuck:
        process.kill()
    for process in processes:
        process.join()
    assert not stuck, f"{len(stuck)} of {count} processes hung"
    return [process.exitcode for process in processes]


def _process(environment: dict[str, str], work: Callable[..., None], arguments: Sequence[Any]) -> None:
    import torch

    os.environ |= environment
    torch.set_num_threads(1)
    work(*arguments)
    torch.distributed.destroy_process_group()


class Picky(VowelCritic):
    """Fails on the answers to one prompt, wherever they are in the batch."""

    def critique(self, examples: Sequence[Example]) -> list[Feedback]:
        return [
            Feedback.failure("vowels", "planted") if example.id == "2" else self.comment(example)
            for example in examples
        ]


class Replaying(Text2GradTrainer):
    """Answers are what another run sampled."""

    replayed: list[list[list[int]]]

    def rollout(self, step: int) -> Rollout:
        chosen = [i for i in self._prompts_of(step) for _ in range(self.args.num_generations)]
        examples, prompts = [self.examples[i] for i in chosen], [self.prompts[i] for i in chosen]
        return as_rollout(examples, prompts, self.replayed[step - 1], self.end_ids, self.tokenizer)


def trainer(model: Path, folder: Path, count: int, lora: bool, **settings: Any) -> Text2GradTrainer:
    """A run of eight answers a step, in groups of two, on `count` processes."""
    defaults: dict[str, Any] = {
        "max_steps": 5,
        "per_device_train_batch_size": 8 // count,
        "num_generations": 2,
        "num_iterations": 2,
        "max_completion_length": 10,
        "learning_rate": 3e-3,
        "estimator": "gae",
        "advantage_normalization": "whiten",
        "kl_control": "adaptive",
        "bf16": False,
        "max_tokens_per_batch": 100,
    }
    kind = settings.pop("kind", Text2GradTrainer)
    made: Text2GradTrainer = kind(
        model=model,
        critic=settings.pop("critic", Picky()),
        args=Text2GradConfig(output_dir=folder, **(defaults | settings)),
        train_dataset=PROMPTS,
        peft_config=LoraConfig(r=4, lora_alpha=8, target_modules="all-linear") if lora else None,
    )
    made.end_ids = list(range(60))  # the tiny model hardly ever says its own; so answers differ in length
    return made


def train(model: Path, folder: Path, count: int, lora: bool, resume: bool = False, **settings: Any) -> None:
    """Train and save."""
    made = trainer(model, folder, count, lora, **settings)
    made.train(resume)
    made.save_model()
