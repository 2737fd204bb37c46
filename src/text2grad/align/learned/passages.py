"""The part of a long source that matters for one answer and one comment on it."""

from __future__ import annotations

import re
from collections import Counter

_SENTENCE_BREAK = re.compile(r"(?<=[.!?])\s+|\n+")
_WORD = re.compile(r"\w+")
_ALIKE = 5  # words that begin with the same letters count as one


def relevant(source: str, query: str, most_words: int) -> str:
    """The sentences of `source` that share most with `query`, in their order, about `most_words` words in all.

    A shared word counts the more, the fewer sentences have it; long sentences are held against their length.
    """
    sentences = [sentence for sentence in _SENTENCE_BREAK.split(source) if sentence.strip()]
    words = [_WORD.findall(sentence.lower()) for sentence in sentences]
    bags = [{word[:_ALIKE] for word in each} for each in words]
    spread = Counter(start for bag in bags for start in bag)
    asked = {word[:_ALIKE] for word in _WORD.findall(query.lower()) if len(word) > 3}
    scores = [
        sum(1 / spread[start] for start in bag & asked) / (len(each) + 5) ** 0.5
        for bag, each in zip(bags, words, strict=True)
    ]
    chosen: list[int] = []
    room = most_words
    for i in sorted(range(len(sentences)), key=lambda i: -scores[i]):
        if not chosen or len(words[i]) <= room:
            chosen.append(i)
            room -= len(words[i])
    return " ".join(sentences[i] for i in sorted(chosen))
