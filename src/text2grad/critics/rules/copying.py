"""Where a summary copies its source: long runs in the source's own words and order."""

from __future__ import annotations

from typing import NamedTuple

from text2grad.critics.rules.source import Source
from text2grad.text.words import Key, Text

LONG_RUN = 12
WHOLE_SENTENCE, WHOLE_SENTENCE_SHARE = 4, 0.85

_SEED = 3
# How many words of the summary and of the source a run may skip at once: a word changed, dropped or put in.
_EDITS = ((1, 1), (0, 1), (1, 0), (1, 2), (2, 1), (2, 2), (0, 2), (2, 0))
# The same three words stand in few places, except in texts made to be slow.
_MOST_PLACES = 4


class _Run(NamedTuple):
    end: int
    taken: list[int]


def copied_runs(summary: Text, source: Source) -> list[range]:
    """Word ranges, each within a sentence, that take LONG_RUN words from the source or nearly all of a sentence there.

    A word changed, dropped or put in here and there does not end a run.
    """
    runs = []
    for sentence in summary.sentences:
        start = sentence.start
        while start < sentence.stop:
            run = _longest_run(summary.keys, start, sentence.stop, source)
            if run is not None and _is_copy(run.taken, source.text):
                runs.append(range(start, run.end))
                start = run.end
            else:
                start += 1
    return runs


def _longest_run(keys: tuple[Key, ...], start: int, stop: int, source: Source) -> _Run | None:
    """The longest run that begins at word `start` and ends before word `stop`, if at least _SEED words agree."""
    places = source.trigrams.get(keys[start : min(start + _SEED, stop)])
    if places is None:
        return None
    runs = [_follow(keys, start, stop, source.text.keys, place) for place in places[:_MOST_PLACES]]
    return max(runs, key=lambda run: len(run.taken))


def _follow(ours: tuple[Key, ...], i: int, stop: int, theirs: tuple[Key, ...], j: int) -> _Run:
    """The run that begins at our word `i` and their word `j`, through small edits, up to our word `stop`."""
    taken = []
    while True:
        while i < stop and j < len(theirs) and ours[i] == theirs[j]:
            taken.append(j)
            i, j = i + 1, j + 1
        for skip, skip_there in _EDITS:
            a, b = i + skip, j + skip_there
            if a + _SEED <= stop and ours[a : a + _SEED] == theirs[b : b + _SEED]:
                i, j = a, b
                break
        else:
            return _Run(i, taken)


def _is_copy(taken: list[int], source: Text) -> bool:
    if len(taken) >= LONG_RUN:
        return True
    if len(taken) < WHOLE_SENTENCE_SHARE * WHOLE_SENTENCE:
        return False
    touched = {source.words[place].sentence for place in taken}
    return any(
        len(whole) >= WHOLE_SENTENCE and sum(place in whole for place in taken) >= WHOLE_SENTENCE_SHARE * len(whole)
        for whole in (source.sentences[sentence] for sentence in touched)
    )
