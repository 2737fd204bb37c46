"""Matchers in processes of their own, for decoding on a GPU.

A small model's step takes a GPU a few milliseconds. Compiling grammars and filling masks hold the interpreter's lock,
so threads would wait for each other and the decoding loop for all of them; processes compute the next masks while the
GPU computes the next logits. Tokens and masks lie in a file in memory; sockets only say when to look.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import tempfile
import weakref
from collections.abc import Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path

import numpy as np

from text2grad.lm.vocabulary import Masks, Vocabulary
from text2grad.reward.settings import Layout

MOST_PROCESSES = 8
NOTHING = -1
_MEMORY = Path("/dev/shm")
_GONE = "a process that keeps grammars has ended; what it wrote stands above"


class MatcherPool:
    """Processes that wait for batches; they end with the pool."""

    def __init__(self, vocabulary: Vocabulary, layout: Layout, processes: int | None = None) -> None:
        """processes: one for every two cores, up to a limit, where None."""
        count = processes or max(1, min(MOST_PROCESSES, len(os.sched_getaffinity(0)) // 2))
        self._words = (vocabulary.rows + 31) // 32
        started = [_start() for _ in range(count)]
        self._links = [link for link, _ in started]
        self.processes = [process for _, process in started]
        self._end = weakref.finalize(self, _stop, self._links, self.processes)
        self._last: PooledMatchers | None = None
        for link in self._links:
            link.send((vocabulary, layout))

    def open(self, answers: Sequence[str]) -> PooledMatchers:
        """Matchers for a batch, which end those of the batch before. Returns at once: compiling begins now."""
        if self._last is not None:
            self._last.settle()
        self._last = PooledMatchers(self._links, answers, self._words)
        return self._last

    def close(self) -> None:
        """End the processes."""
        self._end()


class Board:
    """What a pool and its processes share about a batch, in a file.

    masks: (answers, words of 32 bits). tokens: (answers,), what each judgement got in the last step, or NOTHING.
    """

    def __init__(self, path: str, answers: int, words: int) -> None:
        self.masks: Masks = np.memmap(path, np.int32, "r+", shape=(answers, words))
        self.tokens: Masks = np.memmap(path, np.int32, "r+", offset=self.masks.nbytes, shape=(answers,))


@dataclass(frozen=True)
class Opening:
    """A process's share of a batch. path, size, words: of the board; rows: its lines there, one for each answer."""

    path: str
    size: int
    words: int
    rows: list[int]
    answers: list[str]


STEP = None  # tokens of the process's share are on the board


class PooledMatchers:
    """The judgements of a batch, dealt out to the processes in turns. See lm.guide.Guide."""

    def __init__(self, links: Sequence[Connection], answers: Sequence[str], words: int) -> None:
        self._links = links
        self._file = tempfile.NamedTemporaryFile(dir=_MEMORY if _MEMORY.is_dir() else None)  # noqa: SIM115
        self._board = Board(self._file.name, len(answers), words)
        for index, link in enumerate(links):
            rows = list(range(index, len(answers), len(links)))
            _send(link, Opening(self._file.name, len(answers), words, rows, [answers[row] for row in rows]))
        self._waiting = list(links)

    def advance(self, rows: Sequence[int], tokens: Sequence[int]) -> None:
        self.settle()
        self._board.tokens.fill(NOTHING)
        self._board.tokens[list(rows)] = tokens
        for index in {row % len(self._links) for row in rows}:
            _send(self._links[index], STEP)
            self._waiting.append(self._links[index])

    def masks(self, rows: Sequence[int]) -> Masks:
        self.settle()
        return self._board.masks[list(rows)]

    def settle(self) -> None:
        """Wait until all masks are there; what went wrong in a process is raised here."""
        waiting, self._waiting = self._waiting, []
        errors = [_receive(link) for link in waiting]
        self._file.close()  # all have it open by now
        for error in errors:
            if error is not None:
                raise RuntimeError(error)


def _start() -> tuple[Connection, subprocess.Popen[bytes]]:
    ours, theirs = socket.socketpair()
    with theirs:
        command = [sys.executable, "-P", "-m", "text2grad.reward.matcher_process", str(theirs.fileno())]
        process = subprocess.Popen(command, pass_fds=[theirs.fileno()])
    return Connection(ours.detach()), process


def _stop(links: Sequence[Connection], processes: Sequence[subprocess.Popen[bytes]]) -> None:
    for link in links:
        link.close()
    for process in processes:
        process.wait()


def _send(link: Connection, message: Opening | None) -> None:
    try:
        link.send(message)
    except ConnectionError as gone:
        raise RuntimeError(_GONE) from gone


def _receive(link: Connection) -> str | None:
    """Wait for a process: what went wrong there, if anything."""
    try:
        error: str | None = link.recv()
    except (EOFError, ConnectionError) as gone:
        raise RuntimeError(_GONE) from gone
    return error
