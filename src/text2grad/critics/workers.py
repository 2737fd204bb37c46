"""Critics in plain Python on all cores: worker processes that stay for the next step.

A step has hundreds of completions, and a rule critic takes milliseconds for each, on one core, while the trainer's
other thread wants that core too. The workers are separate programs: a fork of a process that uses a GPU is not safe,
and `multiprocessing` would run the user's main script again.
"""

from __future__ import annotations

import atexit
import os
import pickle
import signal
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import cache, partial
from queue import SimpleQueue
from typing import IO, Any

from text2grad.errors import describe_exception
from text2grad.schema import Example, Feedback

MIN_CORES, MAX_WORKERS = 4, 16
MIN_EXAMPLES = 64  # fewer are done before the workers have them
_LENGTH_BYTES = 8  # before each message between this process and a worker
CHUNK = 8  # examples per request; completions differ in length, so that small ones balance the workers


def critique_on_all_cores(critic: Any, examples: Sequence[Example]) -> list[Feedback]:
    """Return what `critic.critique(examples)` does, from worker processes where there are enough cores and examples.

    critic: its feedback on an example depends on that example alone (`CriticTraits.independent`).
    """
    workers = num_workers()
    if workers < MIN_CORES or len(examples) < MIN_EXAMPLES:
        feedback: list[Feedback] = critic.critique(examples)
        return feedback
    return _shared_pool(workers).critique(critic, examples)


def num_workers() -> int:
    """Return this process's share of the machine's cores, at most MAX_WORKERS."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(cores // int(os.environ.get("LOCAL_WORLD_SIZE", "1")), MAX_WORKERS)


class WorkerPool:
    """Worker processes that critique chunks of examples. They end with this process, or with `close`."""

    def __init__(self, count: int) -> None:
        self._count = count
        self._workers = [_start_worker() for _ in range(count)]
        self._idle: SimpleQueue[subprocess.Popen[bytes]] = SimpleQueue()
        for worker in self._workers:
            self._idle.put(worker)

    def critique(self, critic: Any, examples: Sequence[Example]) -> list[Feedback]:
        """Return one Feedback per example, in order; raises what the critic raises."""
        chunks = [examples[start : start + CHUNK] for start in range(0, len(examples), CHUNK)]
        with ThreadPoolExecutor(self._count) as threads:
            return [item for part in threads.map(partial(self._ask, critic), chunks) for item in part]

    def _ask(self, critic: Any, examples: Sequence[Example]) -> list[Feedback]:
        worker = self._idle.get()
        assert worker.stdin is not None
        assert worker.stdout is not None
        try:
            _send(worker.stdin, pickle.dumps((critic, list(examples))))
            message = _receive(worker.stdout)
        except (EOFError, OSError) as error:
            self._workers.append(worker := _start_worker())
            raise RuntimeError("a worker process of the critic was killed; another one replaces it") from error
        finally:
            self._idle.put(worker)
        answer = pickle.loads(message)
        if isinstance(answer, BaseException):
            raise answer
        feedback: list[Feedback] = answer
        return feedback

    def close(self) -> None:
        """End the workers."""
        for worker in self._workers:
            worker.communicate()


@cache
def _shared_pool(count: int) -> WorkerPool:
    pool = WorkerPool(count)
    atexit.register(pool.close)
    return pool


def _start_worker() -> subprocess.Popen[bytes]:
    path = os.pathsep.join(entry for entry in sys.path if entry)  # the critic's class must be found there too
    environment = os.environ | {"PYTHONPATH": path, "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-P", "-m", "text2grad.critics.workers"]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment)


def main() -> None:
    """Answer requests on the standard input until it ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent, which then ends the workers
    requests, answers = sys.stdin.buffer, sys.stdout.buffer
    sys.stdout = sys.stderr  # whatever a critic prints must not be taken for an answer
    with suppress(EOFError):
        while True:
            _send(answers, _answer(_receive(requests)))


def _answer(request: bytes) -> bytes:
    try:
        critic, examples = pickle.loads(request)
        return pickle.dumps(critic.critique(examples))
    except Exception as error:
        with suppress(Exception):  # some exceptions cannot be sent, others not be made again from what was sent
            message = pickle.dumps(error)
            pickle.loads(message)
            return message
        return pickle.dumps(RuntimeError(describe_exception(error)))


def _send(stream: IO[bytes], message: bytes) -> None:
    """Write a message with its length before it: the next one starts behind it, whatever becomes of this one."""
    stream.write(len(message).to_bytes(_LENGTH_BYTES, "big") + message)
    stream.flush()


def _receive(stream: IO[bytes]) -> bytes:
    """Return the next message; raises EOFError where the stream ends before its end."""
    length = int.from_bytes(_read(stream, _LENGTH_BYTES), "big")
    return _read(stream, length)


def _read(stream: IO[bytes], length: int) -> bytes:
    data = stream.read(length)
    if len(data) < length:
        raise EOFError(f"{len(data)} of {length} bytes")
    return data


if __name__ == "__main__":
    main()
