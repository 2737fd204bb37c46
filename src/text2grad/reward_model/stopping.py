"""Ctrl-C while a trainer works: the step under way is finished and saved, and nothing is lost."""

from __future__ import annotations

import signal
import sys
import threading
from types import FrameType
from typing import Any, Self

from transformers import TrainerCallback

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class StopWithCheckpoint(TrainerCallback):
    """A context manager beside a trainer's callback. `asked` says whether somebody wanted to stop.

    Of several processes each would stop at a step of its own, and wait there for the others; `alone` is false then, and
    signals do what they always do. They can be heard in the main thread only.
    """

    def __init__(self, alone: bool) -> None:
        self.asked = False
        self._listens = alone and threading.current_thread() is threading.main_thread()
        self._before: dict[signal.Signals, Any] = {}

    def __enter__(self) -> Self:
        if self._listens:
            heard = [number for number in _SIGNALS if signal.getsignal(number) is not signal.SIG_IGN]
            self._before = {number: signal.signal(number, self._hear) for number in heard}
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        if self.asked:
            control.should_save = control.should_training_stop = True

    def _hear(self, _: int, __: FrameType | None) -> None:
        if self.asked:
            raise KeyboardInterrupt
        self.asked = True
        print("Stopping after this step, which is saved; once more stops at once.", file=sys.stderr, flush=True)
