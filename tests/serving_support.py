"""A scripted critic, and the reward server on a real socket."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from text2grad.reward_model.serving.app import ServeSettings, create_server
from text2grad.schema import Example, Feedback, Span
from text2grad.web.server import bind


class FirstWord:
    """Blames the first character of every answer and repeats the prompt; waits for `go`."""

    def __init__(self) -> None:
        self.seen: list[Example] = []
        self.go = threading.Event()
        self.go.set()

    def critique(self, examples: Sequence[Example]) -> list[Feedback]:
        self.seen += examples
        assert self.go.wait(30)
        span = Span(start=0, end=1, label="poor", severity=0.25)
        return [Feedback(critic="first", critique=example.prompt_text, spans=[span]) for example in examples]


@contextmanager
def running(critic: Any, settings: ServeSettings) -> Iterator[str]:
    server = create_server(critic, settings)
    with bind("127.0.0.1", 0) as listening:
        thread = threading.Thread(target=server.run, args=([listening],))
        thread.start()
        try:
            yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join()
