"""Detection of text that a summary copies from its source: long runs in the same words and order."""

from __future__ import annotations

from typing import NamedTuple

from text2grad.critics.rules.source import Source
from text2grad.text.words import Key, Text

MIN_RUN = 12

_SEED = 3
# Words of the summary and of the source that a run may skip at once: changed, dropped or inserted ones.
_EDITS = ((1, 1), (0, 1), (1, 0), (1, 2), (2, 1), (2, 2), (0, 2), (2, 0))
# Three words rarely recur; the limit bounds the time for adversarial texts.
_MAX_CANDIDATES = 4


class _Run(NamedTuple):
    end: int
    num_copied: int


def copied_runs(summary: Text, source: Source, min_run: int = MIN_RUN) -> list[range]:
    """Return word ranges, each within a sentence, that copy at least `min_run` words of the source, three or more.

    A single word changed, dropped or inserted does not end a run.
    """
    runs = []
    for sentence in summary.sentences:
        start = sentence.start
        while start < sentence.stop:
            run = _longest_run(summary.keys, start, sentence.stop, source)
            if run is not None and run.num_copied >= min_run:
                runs.append(range(start, run.end))
                start = run.end
            else:
                start += 1
    return runs


def _longest_run(keys: tuple[Key, ...], start: int, stop: int, source: Source) -> _Run | None:
    """Return the longest run from word `start` to at most word `stop`, or None if fewer than _SEED words match."""
    candidates = source.trigrams.get(keys[start : min(start + _SEED, stop)])
    if candidates is None:
        return None
    runs = [_extend(keys, start, stop, source.text.keys, position) for position in candidates[:_MAX_CANDIDATES]]
    return max(runs, key=lambda run: run.num_copied)


def _extend(summary: tuple[Key, ...], i: int, stop: int, source: tuple[Key, ...], j: int) -> _Run:
    """Extend a run from word `i` of the summary and word `j` of the source, through small edits, up to `stop`."""
    num_copied = 0
    while True:
        while i < stop and j < len(source) and summary[i] == source[j]:
            num_copied += 1
            i, j = i + 1, j + 1
        for skip, skip_source in _EDITS:
            a, b = i + skip, j + skip_source
            if a + _SEED <= stop and summary[a : a + _SEED] == source[b : b + _SEED]:
                i, j = a, b
                break
        else:
            return _Run(i, num_copied)
