"""What can be wrong with a summary, one pure function a rule: (summary, source) -> marks. See `grounding` for the rules."""

from __future__ import annotations

import re
from collections.abc import Iterator

from text2grad.critics.lexicon import ARTICLES, AUXILIARIES, CONJUNCTIONS, IRREGULAR_VERBS, PREPOSITIONS, SUBJECTS
from text2grad.critics.marks import Mark, mark
from text2grad.critics.source import Source, name_runs
from text2grad.critics.words import Text

NUMBER, NAME, WORD = 0.8, 0.7, 0.25
COPIED_PER_WORD, COPIED_LEAST = 0.05, 0.6
REPEATED_PER_WORD, REPEATED_LEAST = 0.05, 0.3
LISTED_PER_WORD, LISTED_LEAST = 0.1, 0.3
PADDING_PER_WORD = 0.05
FILLER, BROKEN, LAYOUT, UNFINISHED = 0.5, 0.3, 0.2, 0.3

# A long fault is marked over a few words only: where it begins is where it could have been avoided.
REACH = 6

_COPIED_RUN = 12
_COPIED_SENTENCE, _COPIED_SHARE = 4, 0.85
_EDITS = ((1, 1), (0, 1), (1, 0), (1, 2), (2, 1), (2, 2), (0, 2), (2, 0))
_SHORTEST_SENTENCE = 4
_FUNCTION_SHARE = 0.12
_ENUMERATED_WORDS = 4
_RESTATED_SHARE, _RESTATED_WORDS = 0.8, 4

_NEVER_FOLLOWS = dict.fromkeys(ARTICLES, ARTICLES | CONJUNCTIONS | PREPOSITIONS - {"above", "like", "inside", "outside", "past", "near", "down", "up", "under", "over", "out", "off", "in"} | AUXILIARIES - {"being", "need", "must", "can", "will", "may", "might"})
_NEVER_FOLLOWS["of"] = CONJUNCTIONS | {"is", "are", "was", "were", "has", "had", "have", "will", "would", "of"}

_FILLER = re.compile(
    r"""(?:sure|certainly|of\ course|here(?:'s|’s|\ is|\ are)|below\ is|in\ (?:summary|short|conclusion)
    |to\ (?:summari[sz]e|sum\ up)|(?:in\ )?(?:this|the)\ (?:text|article|passage|document|paper|report|story|author|summary
    |piece|essay|study|work|research|speaker|writer)s?)\b[^.!?\n:]{0,40}?
    (?:\b(?:summary|version|text|sentences?|discuss|describ|highlight|explor|explain|present|provid|focus|examin|mention
    |outlin|talk|report|tell|detail|emphasi[sz]|about|state|say|note|propose|investigat)\w*|[,:])""",
    re.VERBOSE | re.IGNORECASE,
)
_LINE_BREAK = re.compile(r"\s*\n\s*(?:(?:[-*•#>]+|\d+[.)])\s+)?|^\s*(?:[-*•#>]+|\d+[.)])\s+")
_COMPLETE = re.compile(r"[.!?…。！？][\"'”’»)\]*]*\s*$")


def unsupported_numbers(summary: Text, source: Source) -> Iterator[Mark]:
    for i, word in enumerate(summary.words):
        previous = summary.words[i - 1] if i and not word.opens else None
        if word.lexeme.is_number and not source.supports_number(word, previous):
            yield mark("number", summary, range(i, i + 1), NUMBER)


def unsupported_names(summary: Text, source: Source) -> Iterator[Mark]:
    """One mark for each run of unsupported words in a name: of "Jo Falcato", only "Jo" if the source knows Falcato."""
    for name in name_runs(summary):
        start = None
        supported = [*source.supports_name([summary.words[i] for i in name]), True]
        for i, known in enumerate(supported, name.start):
            if not known and start is None:
                start = i
            elif known and start is not None:
                yield mark("name", summary, range(start, i), NAME)
                start = None


def unsupported_words(summary: Text, source: Source) -> Iterator[Mark]:
    names = {i for name in name_runs(summary) for i in name}
    for i, word in enumerate(summary.words):
        ordinary = word.is_content and not word.lexeme.is_number and i not in names
        if ordinary and not source.supports_word(word):
            yield mark("word", summary, range(i, i + 1), WORD)


def fillers(summary: Text, source: Source) -> Iterator[Mark]:
    """Sentences that open with talk about the text, unless the source itself talks so."""
    for sentence in summary.sentences:
        match = _FILLER.match(summary.string, summary.words[sentence.start].start)
        if match is None:
            continue
        words = [i for i in sentence if summary.words[i].start < match.end()]
        if not all(source.supports_word(summary.words[i]) for i in words if summary.words[i].is_content):
            yield mark("filler", summary, range(words[0], words[-1] + 1), FILLER)


def copied_runs(summary: Text, source: Source) -> list[range]:
    """Word ranges that follow the source for long, a changed, added or dropped word here and there not counted."""
    runs = []
    keys = [word.lexeme.key for word in summary.words]
    for sentence in summary.sentences:
        i = sentence.start
        while i < sentence.stop - 2:
            best = max(
                (_follow(keys, i, sentence.stop, source, place) for place in source.trigrams.get(tuple(keys[i : i + 3]), [])[:4]),
                key=lambda run: len(run[1]),
                default=(i, []),
            )
            if _is_copy(best[1], source):
                runs.append(range(i, best[0]))
                i = best[0]
            else:
                i += 1
    return runs


def _follow(keys: list[str | float], i: int, stop: int, source: Source, place: int) -> tuple[int, list[int]]:
    """Where the run that begins at `i` and at the source's `place` ends, and the source words that it took."""
    theirs = source.keys
    taken: list[int] = []
    while True:
        while i < stop and place < len(theirs) and keys[i] == theirs[place]:
            taken.append(place)
            i, place = i + 1, place + 1
        for skip, skip_there in _EDITS:
            a, b = i + skip, place + skip_there
            if a + 3 <= stop and keys[a : a + 3] == theirs[b : b + 3]:
                i, place = a, b
                break
        else:
            return i, taken


def _is_copy(taken: list[int], source: Source) -> bool:
    if len(taken) >= _COPIED_RUN:
        return True
    if len(taken) < _COPIED_SENTENCE * _COPIED_SHARE:
        return False
    sentences = {source.text.words[place].sentence for place in taken}
    return any(
        len(whole) >= _COPIED_SENTENCE and sum(place in whole for place in taken) >= _COPIED_SHARE * len(whole)
        for whole in (source.text.sentences[s] for s in sentences)
    )


def copies(summary: Text, runs: list[range]) -> Iterator[Mark]:
    """Blame where a copied run goes on after its first few words, once for every twenty words of it."""
    for run in runs:
        for start in range(run.start, run.stop, 20):
            piece = range(start, min(run.stop, start + 20))
            middle = start + min(REACH, len(piece) // 2)
            words = range(middle, min(middle + REACH, piece.stop))
            yield mark("copied", summary, words, max(COPIED_LEAST, COPIED_PER_WORD * len(piece)))


def repetitions(summary: Text) -> Iterator[Mark]:
    yield from _repeated_runs(summary)
    yield from _restated_sentences(summary)


def _repeated_runs(summary: Text) -> Iterator[Mark]:
    """Runs of at least three words, two of them content, that the summary had before; and a word said twice in a row."""
    words = summary.words
    keys = [word.lexeme.key for word in words]
    seen: dict[tuple[str | float, ...], int] = {}
    for sentence in summary.sentences:
        i = sentence.start
        while i < sentence.stop:
            earlier = seen.get(tuple(keys[i : i + 3])) if i + 3 <= sentence.stop else None
            length = 1
            if earlier is not None:
                while i + length < sentence.stop and keys[earlier + length] == keys[i + length]:
                    length += 1
            elif i > sentence.start and keys[i] == keys[i - 1] and not words[i].lexeme.is_number:
                yield mark("repeated", summary, range(i, i + 1), REPEATED_LEAST)
            if length >= 4 and sum(words[j].is_content for j in range(i, i + length)) >= 2:
                severity = max(REPEATED_LEAST, REPEATED_PER_WORD * length)
                yield mark("repeated", summary, range(i, i + min(length, REACH)), severity)
            else:
                length = 1
            for j in range(i, min(i + length, sentence.stop - 2)):
                seen.setdefault(tuple(keys[j : j + 3]), j)
            i += length


def _restated_sentences(summary: Text) -> Iterator[Mark]:
    said: set[str | float] = set()
    for sentence in summary.sentences:
        content = {summary.words[i].lexeme.key for i in sentence if summary.words[i].is_content}
        if len(content) >= _RESTATED_WORDS and len(content & said) >= _RESTATED_SHARE * len(content):
            severity = max(REPEATED_LEAST, REPEATED_PER_WORD * len(sentence))
            yield mark("repeated", summary, range(sentence.start, min(sentence.start + REACH, sentence.stop)), severity)
        said |= content


def lists(summary: Text) -> list[range]:
    """Sentences that are none: scraps of a few words, key words with hardly a function word among them, no verb."""
    return [
        sentence
        for sentence in summary.sentences
        if len(sentence) < _SHORTEST_SENTENCE
        or sum(not summary.words[i].is_content for i in sentence) < _FUNCTION_SHARE * len(sentence)
        or _enumerates(summary, sentence)
        or not any(_hints_at_verb(summary, i, sentence) for i in sentence)
    ]


def _enumerates(summary: Text, sentence: range) -> bool:
    """Whether commas and conjunctions leave only a few words in a row, all through the sentence."""
    inner = range(sentence.start, sentence.stop - 1)
    stops = sum(any(mark in summary.between(i) for mark in ",;:|/") for i in inner)
    stops += sum(summary.words[i].text.lower() in CONJUNCTIONS for i in sentence)
    return stops >= 3 and len(sentence) < _ENUMERATED_WORDS * (stops + 1)


def _hints_at_verb(summary: Text, i: int, sentence: range) -> bool:
    """An auxiliary, a past form, a subject pronoun, or a word in -s that follows a noun and is not followed by one."""
    word = summary.words[i]
    lowered = word.text.lower()
    if lowered in AUXILIARIES or lowered in SUBJECTS:
        return True
    if not word.text.islower() or word.lexeme.is_number:
        return False
    if lowered in IRREGULAR_VERBS or (lowered.endswith("ed") and not lowered.endswith("eed")):
        return True
    if not lowered.endswith("s") or lowered.endswith(("ss", "us", "is")) or i in (sentence.start, sentence.stop - 1):
        return False
    before, after = summary.words[i - 1], summary.words[i + 1]
    follows_noun = before.is_content and not before.lexeme.is_number
    return follows_noun and (not after.is_content or after.lexeme.is_number or after.text[0].isupper())


def listings(summary: Text, sentences: list[range]) -> Iterator[Mark]:
    for sentence in sentences:
        for start in range(sentence.start, sentence.stop, 2 * REACH):
            piece = range(start, min(sentence.stop, start + 2 * REACH))
            severity = max(LISTED_LEAST, LISTED_PER_WORD * len(piece))
            yield mark("listed", summary, range(start, min(start + REACH, piece.stop)), severity)


def broken_grammar(summary: Text) -> Iterator[Mark]:
    """Articles and "of" that are followed by what never follows them: "the of", "a was", "of and", "the."."""
    for sentence in summary.sentences:
        for i in sentence:
            lowered = summary.words[i].text.lower()
            forbidden = _NEVER_FOLLOWS.get(lowered)
            if forbidden is None or summary.words[i].text.isupper():
                continue
            last = i + 1 == sentence.stop
            if not last and summary.words[i + 1].text.lower() in forbidden and summary.words[i + 1].text.islower() and summary.between(i) == " ":
                yield mark("broken", summary, range(i, i + 2), BROKEN)
            elif last and _COMPLETE.match(summary.string, summary.words[i].end):
                yield mark("broken", summary, range(i, i + 1), BROKEN)


def padding(summary: Text, budget: int) -> Iterator[Mark]:
    """The opening words of every stretch, at most a dozen words long, beyond the budget of words."""
    for sentence in summary.sentences:
        excess = range(max(budget, sentence.start), sentence.stop)
        for start in range(excess.start, excess.stop, 2 * REACH):
            piece = range(start, min(excess.stop, start + 2 * REACH))
            yield mark("padding", summary, range(start, min(start + REACH // 2, piece.stop)), PADDING_PER_WORD * len(piece))


def layout(summary: Text) -> Iterator[Mark]:
    """Line breaks and list marks; white space at the very end is none of the summary."""
    body = summary.string.rstrip()
    start = len(body) - len(body.lstrip())
    for match in _LINE_BREAK.finditer(body, start):
        if match.end() > match.start():
            yield Mark("layout", match.start(), match.end(), LAYOUT)


def unfinished(summary: Text) -> Iterator[Mark]:
    if summary.words and not _COMPLETE.search(summary.string):
        last = len(summary.words) - 1
        yield mark("unfinished", summary, range(last, last + 1), UNFINISHED)
