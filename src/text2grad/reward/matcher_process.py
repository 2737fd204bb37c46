"""One process of a matcher pool: `python -m text2grad.reward.matcher_process SOCKET`; it ends when that closes."""

from __future__ import annotations

import signal
import sys
from multiprocessing.connection import Connection

from llguidance import LLTokenizer

from text2grad.reward.matcher_pool import NOTHING, STEP, Board, Opening
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
            message: Opening | None = link.recv()
            try:
                if message is not STEP:
                    share = Share(message, matched, layout)
                else:
                    assert share is not None, "a step before the first batch"
                    share.step()
                link.send(None)
            except RuntimeError as error:
                link.send(str(error))
    except (EOFError, ConnectionError):
        return  # the pool is gone


class Share:
    """The judgements of a batch that this process keeps, their next masks always filled in."""

    def __init__(self, opening: Opening, vocabulary: LLTokenizer, layout: Layout) -> None:
        self._board = Board(opening.path, opening.size, opening.words)
        self._rows = opening.rows
        self._matchers = OwnMatchers(vocabulary, opening.answers, layout, threads=1)
        self._matchers.fill(range(len(opening.rows)), self._board.masks, opening.rows)

    def step(self) -> None:
        tokens = self._board.tokens[self._rows].tolist()
        places = [place for place, token in enumerate(tokens) if token != NOTHING]
        self._matchers.advance(places, [tokens[place] for place in places])
        self._matchers.fill(places, self._board.masks, [self._rows[place] for place in places])


if __name__ == "__main__":
    main()
