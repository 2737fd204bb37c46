"""Source file -> critic -> output file. Nothing is held but what is under way."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from text2grad.annotate.keys import META, record_key
from text2grad.annotate.store import Store, sole_writer
from text2grad.annotate.summary import Summary
from text2grad.critics.base import Critic, acollect_feedback, collect_feedback, critic_traits
from text2grad.critics.fingerprint import critic_digest
from text2grad.errors import UserError
from text2grad.schema import Example, Feedback, read_examples

_START_SECONDS = 0.3  # over which the workers of a run start, one after the other
_MOST_BATCHES_WAITING = 4  # for the disk; then the workers wait too
_FLUSH_SECONDS = 1.0  # a kill may cost the answers of the last second, which are asked for again


def annotate(
    source: Path,
    out: Path,
    critic: Critic,
    *,
    concurrency: int | None = None,
    batch_size: int | None = None,
    retry_failed: bool = False,
    on_progress: Callable[[Summary], None] = lambda summary: None,
) -> Summary:
    """Give every record of `source` the critic's feedback, in `out`, in the order in which answers come.

    A record that `out` already has from the same critic with the same settings is not asked about again, so a run
    that was killed continues where it stopped. Records that another critic or other settings made are moved to
    `NAME.stale.jsonl` beside it. Records with the same content, id included, are one record.

    concurrency: how many records are under way at once, for a critic with `acritique`.
    batch_size: records in one call of a critic without `acritique`, and in one synced write.
    Either of them None: the critic's attribute of that name, else 16 and 32.
    retry_failed: ask again about records whose feedback failed.
    on_progress: called after every write, with the summary so far.

    Stops with a UserError when the source is malformed or the critic says that it cannot go on; what is finished by
    then, or when Ctrl-C is pressed, is in `out`.
    """
    if source.resolve() == out.resolve():
        raise UserError(f"{out} is the source itself; give another file to write to")
    with sole_writer(out):
        store = Store(out, critic_digest(critic))
        traits = critic_traits(critic)
        run = _Run(store, critic, batch_size or traits.batch_size, on_progress)
        store.open(run.summary, retry_failed)
        on_progress(run.summary)
        if traits.acritique is not None:
            asyncio.run(run.concurrently(run.questions(source), concurrency or traits.concurrency))
        else:
            run.in_batches(run.questions(source))
        return run.summary


class _Run:
    """One pass over the source."""

    def __init__(self, store: Store, critic: Critic, batch_size: int, on_progress: Callable[[Summary], None]) -> None:
        self.summary = Summary()
        self._store = store
        self._batch_size = batch_size
        self._on_progress = on_progress
        self._critic, self._traits = critic, critic_traits(critic)
        self._began = time.monotonic()
        self._finished: list[dict[str, Any]] = []

    def questions(self, source: Path) -> Iterator[tuple[bytes, Example]]:
        """The records that are still to do, with their keys."""
        for example in read_examples(source):
            key = record_key(example, self._store.critic, self._traits.reads_feedback)
            if key not in self._store.done:
                self._store.done.add(key)
                yield key, example

    def in_batches(self, questions: Iterator[tuple[bytes, Example]]) -> None:
        while batch := list(islice(questions, self._batch_size)):
            feedback = collect_feedback(self._critic, [example for _, example in batch])
            for (key, example), given in zip(batch, feedback, strict=True):
                self._finish(key, example, given)
            self._flush()

    async def concurrently(self, questions: Iterator[tuple[bytes, Example]], concurrency: int) -> None:
        """`concurrency` workers share the questions. When one cannot go on, the others finish what they have begun."""
        stopped: list[Exception] = []
        over = False

        async def work() -> None:
            nonlocal over
            try:
                while not stopped and (question := next(questions, None)) is not None:
                    key, example = question
                    (feedback,) = await acollect_feedback(self._critic, [example])
                    self._finish(key, example, feedback)
                    if len(self._finished) >= self._batch_size:
                        full.set()
                    if len(self._finished) >= _MOST_BATCHES_WAITING * self._batch_size:
                        written.clear()
                        await written.wait()
            except UserError as error:
                stopped.append(error)
            over = True

        full, written, closing = asyncio.Event(), asyncio.Event(), asyncio.Event()
        writing = asyncio.ensure_future(self._keep_writing(full, written, closing, stopped))
        try:
            async with asyncio.TaskGroup() as workers:
                for _ in range(concurrency):
                    if over:
                        break
                    workers.create_task(work())
                    # In step, all would send and all would wait at the same time, and the waits would add up.
                    await asyncio.sleep(_START_SECONDS / concurrency)
        finally:
            closing.set()
            full.set()
            await writing
            if self._traits.aclose is not None:
                await self._traits.aclose()
        if stopped:
            raise stopped[0]

    def _finish(self, key: bytes, example: Example, feedback: Feedback) -> None:
        meta = example.meta | {META: {"key": key.hex(), "critic": self._store.critic}}
        annotated = example.model_copy(update={"feedback": feedback, "meta": meta})
        record = annotated.model_dump(mode="json", exclude_defaults=True)
        self._finished.append(record)
        self.summary.add(record)
        self.summary.added += 1

    async def _keep_writing(
        self, full: asyncio.Event, written: asyncio.Event, closing: asyncio.Event, stopped: list[Exception]
    ) -> None:
        """Write when a batch is full, and every second. Waiting for the disk must not keep answers waiting."""
        last = False
        while not last:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(full.wait(), _FLUSH_SECONDS)
            full.clear()
            last = closing.is_set()
            finished, self._finished = self._finished, []
            try:
                await asyncio.to_thread(self._write, finished)
            except Exception as error:  # whatever it is: the workers wait for this task
                stopped.append(error)
            written.set()
            self._report()

    def _flush(self) -> None:
        finished, self._finished = self._finished, []
        self._write(finished)
        self._report()

    def _write(self, finished: list[dict[str, Any]]) -> None:
        if finished:
            self._store.append(finished)

    def _report(self) -> None:
        self.summary.seconds = time.monotonic() - self._began
        if (ledger := critic_traits(self._critic).ledger) is not None:
            self.summary.tokens_in = ledger.tokens_in
            self.summary.tokens_out = ledger.tokens_out
            self.summary.cost = ledger.cost
        self._on_progress(self.summary)
