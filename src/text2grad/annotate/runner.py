"""Annotation: source file -> critic -> output file, in constant memory."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from text2grad.annotate.store import META_KEY, AnnotationStore
from text2grad.annotate.summary import Summary
from text2grad.critics.base import Critic, acollect_feedback, collect_feedback, critic_traits
from text2grad.critics.fingerprint import critic_digest
from text2grad.errors import UserError
from text2grad.files import exclusive_lock
from text2grad.schema import Example, Feedback, read_examples

_START_SECONDS = 0.3  # within which the workers of a run start, one after the other
_MAX_QUEUED_BATCHES = 4  # that wait for the disk; then the workers wait too
_FLUSH_SECONDS = 1.0  # a kill loses at most the records of this time, which are annotated again


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
    """Write every record of `source` with the critic's feedback to `out`, in the order of completion.

    Records that `out` already has from the same critic with the same settings are skipped, so a killed run resumes
    where it stopped. Records of other critics or settings are moved to `NAME.stale.jsonl` beside it. Records with the
    same content, id included, are one record.

    concurrency: number of records in flight, for a critic with `acritique`.
    batch_size: records per call of a critic without `acritique`, and per synced write.
    Either of them None: the critic's attribute of that name, else 16 and 32.
    retry_failed: annotate records again whose feedback failed.
    on_progress: called after every write, with the summary so far.

    Raises UserError when the source is malformed or the critic aborts; what is finished by then, or when Ctrl-C is
    pressed, is in `out`.
    """
    out = out.resolve()  # two links to one file have one lock
    if source.resolve() == out:
        raise UserError(f"{out} is the source itself; give another file to write to")
    with exclusive_lock(out.with_name(f".{out.name}.lock"), out):
        traits = critic_traits(critic)
        store = AnnotationStore(out, critic_digest(critic), traits.reads_feedback)
        run = _Run(store, critic, batch_size or traits.batch_size, on_progress)
        store.open(run.summary, retry_failed)
        on_progress(run.summary)
        examples = run.pending_examples(source)
        if traits.acritique is not None:
            asyncio.run(run.annotate_concurrently(examples, concurrency or traits.concurrency))
        else:
            run.annotate_batches(examples)
        return run.summary


class _Run:
    """One pass over the source."""

    def __init__(
        self, store: AnnotationStore, critic: Critic, batch_size: int, on_progress: Callable[[Summary], None]
    ) -> None:
        self.summary = Summary()
        self._store = store
        self._batch_size = batch_size
        self._on_progress = on_progress
        self._critic, self._traits = critic, critic_traits(critic)
        self._start = time.monotonic()

    def pending_examples(self, source: Path) -> Iterator[tuple[bytes, Example]]:
        """Yield the examples that are not done, with their keys."""
        for example in read_examples(source):
            key, done = self._store.key(example), self._store.done
            is_new = key not in done
            self.summary.repeated += done.get(key, False)
            done[key] = True
            if is_new:
                yield key, example

    def annotate_batches(self, examples: Iterator[tuple[bytes, Example]]) -> None:
        """Annotate one batch after the other."""
        while batch := list(islice(examples, self._batch_size)):
            feedback = collect_feedback(self._critic, [example for _, example in batch])
            self._store.append([self._record(*item, given) for item, given in zip(batch, feedback, strict=True)])
            self._report()

    async def annotate_concurrently(self, examples: Iterator[tuple[bytes, Example]], concurrency: int) -> None:
        """Annotate with `concurrency` workers. When one fails, the others finish the example they have."""
        queue: asyncio.Queue[dict[str, Any] | None] = asyncio.Queue(_MAX_QUEUED_BATCHES * self._batch_size)
        errors: list[Exception] = []

        async def work() -> None:
            try:
                while not errors and (item := next(examples, None)) is not None:
                    (feedback,) = await acollect_feedback(self._critic, [item[1]])
                    await queue.put(self._record(*item, feedback))
            except UserError as error:
                errors.append(error)

        writer = asyncio.ensure_future(self._write_queue(queue, errors))
        try:
            async with asyncio.TaskGroup() as workers:
                for _ in range(concurrency):
                    workers.create_task(work())
                    # If all started at once, all would send and all would wait at the same time.
                    await asyncio.sleep(_START_SECONDS / concurrency)
        finally:
            await queue.put(None)
            await writer
            if self._traits.aclose is not None:
                await self._traits.aclose()
        if errors:
            raise errors[0]

    async def _write_queue(self, queue: asyncio.Queue[dict[str, Any] | None], errors: list[Exception]) -> None:
        """Write full batches, and every second what there is, until None comes; workers do not wait for the disk."""
        is_open = True
        while is_open:
            batch: list[dict[str, Any]] = []
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_FLUSH_SECONDS):
                    while len(batch) < self._batch_size and (record := await queue.get()) is not None:
                        batch.append(record)
                    is_open = len(batch) == self._batch_size
            try:
                await asyncio.to_thread(self._store.append, batch)
            except Exception as error:  # any: the workers wait for this task
                errors.append(error)
            self._report()

    def _record(self, key: bytes, example: Example, feedback: Feedback) -> dict[str, Any]:
        """Return the annotated record, counted in the summary."""
        meta = example.meta | {META_KEY: {"key": key.hex(), "critic": self._store.critic}}
        annotated = example.model_copy(update={"feedback": feedback, "meta": meta})
        record = annotated.model_dump(mode="json", exclude_defaults=True)
        self.summary.add(record)
        self.summary.added += 1
        return record

    def _report(self) -> None:
        self.summary.seconds = time.monotonic() - self._start
        if (ledger := critic_traits(self._critic).ledger) is not None:
            self.summary.tokens_in = ledger.tokens_in
            self.summary.tokens_out = ledger.tokens_out
            self.summary.cost = ledger.cost
        self._on_progress(self.summary)
