"""One process of a matcher pool: `python -m text2grad.reward.matcher_process SOCKET`; it ends when that closes."""

from __future__ import annotations

import signal
import sys
from multiprocessing.connection import Connection

import numpy as np
from llguidance import LLTokenizer

from text2grad.reward.matcher_pool import Opening, Step
from text2grad.reward.matchers import OwnMatchers
from text2grad.reward.settings import Layout


def main() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the pool's to handle
    link = Connection(int(sys.argv[1]))
    try:
        vocabulary, layout = link.recv()
        matched = vocabulary.to_match()
        share: Share | None = None
        while True:
            message: Opening | Step = link.recv()
            try:
                if isinstance(message, Opening):
                    share = Share(message, matched, layout)
                else:
                    assert share is not None, "a step before the first batch"
                    share.step(message)
                link.send(None)
            except RuntimeError as error:
                link.send(str(error))
    except (EOFError, ConnectionError):
        return  # the pool is gone


class Share:
    """The judgements of a batch that this process keeps, their next masks always filled in."""

    def __init__(self, opening: Opening, vocabulary: LLTokenizer, layout: Layout) -> None:
        self._bits = np.memmap(opening.path, np.int32, "r+", shape=opening.shape)
        self._places = {row: place for place, row in enumerate(opening.rows)}
        self._matchers = OwnMatchers(vocabulary, opening.answers, layout, threads=1)
        self._matchers.fill(range(len(opening.rows)), self._bits, opening.rows)

    def step(self, step: Step) -> None:
        rows, tokens = zip(*step, strict=True)
        places = [self._places[row] for row in rows]
        self._matchers.advance(places, tokens)
        self._matchers.fill(places, self._bits, rows)


if __name__ == "__main__":
    main()
