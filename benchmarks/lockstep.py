"""Threads that compute together: each asks for work; once all wait, the requests of one kind are answered at once."""

from __future__ import annotations

import threading
import traceback
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

T = TypeVar("T")
Handler = Callable[[list[tuple[int, Any]]], list[Any]]  # (member, payload) of each request -> results


class _Request(NamedTuple):
    kind: str
    payload: Any
    reply: list[Any]  # gets ("result", value) or ("error", exception)


class Lockstep:
    """Runs one job per member, each in a thread of its own; handlers run in the calling thread.

    handlers: by kind of request, the first kind first where requests of several kinds wait.
    """

    def __init__(self, handlers: Mapping[str, Handler]) -> None:
        self._handlers = handlers
        self._changed = threading.Condition()
        self._waiting: dict[int, _Request] = {}
        self._active: set[int] = set()

    def request(self, member: int, kind: str, payload: Any = None) -> Any:
        """Wait for the answer to a request of a member. Called in the member's thread, or in one that it waits for."""
        reply: list[Any] = []
        with self._changed:
            self._waiting[member] = _Request(kind, payload, reply)
            self._changed.notify_all()
            self._changed.wait_for(lambda: bool(reply))
        outcome, value = reply[0]
        if outcome == "error":
            raise value
        return value

    def run(self, jobs: Sequence[Callable[[], T]]) -> list[T | None]:
        """Return what each job returns; None, and its traceback on the terminal, where it raised."""
        results: list[T | None] = [None] * len(jobs)
        self._active = set(range(len(jobs)))

        def work(member: int) -> None:
            try:
                results[member] = jobs[member]()
            except Exception:
                traceback.print_exc()
            with self._changed:
                self._active.discard(member)
                self._changed.notify_all()

        threads = [threading.Thread(target=work, args=(member,), daemon=True) for member in range(len(jobs))]
        for thread in threads:
            thread.start()
        while self._answer_some():
            pass
        for thread in threads:
            thread.join()
        return results

    def _answer_some(self) -> bool:
        """Wait until every member that works has a request, and answer those of one kind. False: all have finished."""
        with self._changed:
            self._changed.wait_for(lambda: self._active <= self._waiting.keys())
            if not self._active:
                return False
            kind = next(kind for kind in self._handlers if any(r.kind == kind for r in self._waiting.values()))
            chosen = {member: request for member, request in sorted(self._waiting.items()) if request.kind == kind}
        try:
            values = self._handlers[kind]([(member, request.payload) for member, request in chosen.items()])
            replies = [("result", value) for value in values]
        except Exception as error:
            replies = [("error", error)] * len(chosen)
        with self._changed:
            for (member, request), reply in zip(chosen.items(), replies, strict=True):
                del self._waiting[member]
                request.reply.append(reply)
            self._changed.notify_all()
        return True
