"""Degenerate answers to any task: silence, copies, fragments, lists, padding, repetition."""

from __future__ import annotations

import random
import re
from collections import Counter

from text2grad.critics.check.kinds import Kind, Task
from text2grad.text.words import Key

REFUSALS = ("I don't know.", "I'm sorry, but I cannot help with that.")
FILLER = (
    "It is worth noting that this is an important topic. There are many things that could be said about it, and it is "
    "always good to look at it from several sides. In conclusion, I hope that this helps; let me know if you have any "
    "further questions."
)
NUM_KEY_WORDS = 12
NUM_FRAGMENTS, FRAGMENT_WORDS = 3, 10
NUM_REPETITIONS = 4
MIN_WORDS_TO_CUT = 12  # a part of a shorter reference may still be an answer


def _copied_instruction(task: Task) -> list[str]:
    """Return the prompt without the document."""
    instruction = task.prompt.replace(task.document, " ").strip() if task.document else ""
    return [instruction] if instruction else []


def _not_the_prompt(task: Task, answers: list[str]) -> list[str]:
    """Leave out answers with the words of the prompt, which is the source where there is no document."""
    return [answer for answer in answers if _words(answer) != _words(task.prompt)]


def _words(text: str) -> list[str]:
    return re.findall(r"\w+", text.casefold())


def _copied_document(task: Task) -> list[str]:
    return _not_the_prompt(task, [task.document] if task.document else [])


def _lead_sentence(task: Task) -> list[str]:
    return _not_the_prompt(task, [f"{task.sentence(0)}."] if task.document and task.source.sentences else [])


def _source_fragments(task: Task) -> list[str]:
    """Return the first words of three sentences at even distances, each as a sentence."""
    total = len(task.source.sentences)
    if not task.document or not total:
        return []
    count = min(NUM_FRAGMENTS, total)
    chosen = [task.sentence(i * total // count).split()[:FRAGMENT_WORDS] for i in range(count)]
    return _not_the_prompt(task, [" ".join(f"{' '.join(words)}." for words in chosen)])


def _cut_source(task: Task) -> list[str]:
    words = task.document.split()
    return [" ".join(words[:FRAGMENT_WORDS])] if len(words) > FRAGMENT_WORDS else []


def _cut_reference(task: Task) -> list[str]:
    """Return the first third of a reference, at a word; a part of a program may well be a program."""
    cut = []
    for reference in [] if task.is_code else task.references[:1]:
        words = reference.split()
        if len(words) >= MIN_WORDS_TO_CUT:
            end = reference.index(words[0])
            for word in words[: len(words) // 3]:
                end = reference.index(word, end) + len(word)
            cut.append(reference[:end])
    return cut


def _key_words(task: Task) -> list[str]:
    """Return the most frequent content words of the source, in the order of their first occurrence."""
    first: dict[Key, str] = {}
    for word in task.source.words:
        if word.is_content:
            first.setdefault(word.lexeme.key, word.text)
    counts = Counter(word.lexeme.key for word in task.source.words if word.is_content)
    chosen = {key for key, _ in counts.most_common(NUM_KEY_WORDS)}
    words = [text for key, text in first.items() if key in chosen]
    return [", ".join(words)] if len(words) > 1 else []


def _all_candidates(task: Task) -> list[str]:
    """Return every name and number of the source, in order, as one list and as one sentence each."""
    text = task.source
    names = [range(name.start, name.stop) for name in text.names]
    numbers = [range(i, i + 1) for i, word in enumerate(text.words) if word.lexeme.is_number]
    runs = sorted([*names, *numbers], key=lambda run: run.start)
    found = list(dict.fromkeys(text.string[text.words[run[0]].start : text.words[run[-1]].end] for run in runs))
    if not task.document or len(found) < 2:
        return []
    return [", ".join(found), " ".join(f"It is {candidate}." for candidate in found)]


def _one_word(task: Task) -> list[str]:
    words = [word.text for word in task.source.words if word.is_content]
    return ["Yes", *words[:1]]


def _repeated_word(task: Task) -> list[str]:
    counts = Counter(word.text for word in task.source.words if word.is_content)
    return [" ".join([word] * 20) for word, _ in counts.most_common(1)]


def _shuffled_reference(task: Task) -> list[str]:
    shuffled = []
    for reference in task.references[:1]:
        words = reference.split()
        if len(words) >= MIN_WORDS_TO_CUT:
            random.Random(task.example.id).shuffle(words)
            shuffled.append(" ".join(words))
    return shuffled


def _padded(task: Task) -> list[str]:
    """Return the honest attempt with empty phrases around it, and followed by the document."""
    if not task.honest:
        return []
    answers = [f"{task.honest}\n\n{FILLER}"]
    return [*answers, f"{task.honest}\n\n{task.document}"] if task.document else answers


def _repeated_answer(task: Task) -> list[str]:
    return ["\n".join([task.honest] * NUM_REPETITIONS)] if task.honest else []


TEXT_KINDS = (
    Kind("empty", "nothing at all", lambda task: [""]),
    Kind("white space", "blanks and line breaks", lambda task: [" ", "\n\n \n"]),
    Kind("refusal", '"I don\'t know."', lambda task: list(REFUSALS)),
    Kind("one word", '"Yes", or the first content word of the source', _one_word),
    Kind("repeated word", "the most frequent word of the source, twenty times", _repeated_word),
    Kind("prompt copied", "the prompt", lambda task: [task.prompt]),
    Kind("instruction copied", "the prompt without its document", _copied_instruction),
    Kind("source copied", "the whole document", _copied_document),
    Kind("lead sentence", "the first sentence of the document", _lead_sentence),
    Kind("source fragments", "the first ten words of three sentences of the document", _source_fragments),
    Kind("source cut off", "the first ten words of the document", _cut_source),
    Kind("reference cut off", "the first third of the reference", _cut_reference),
    Kind("reference shuffled", "the words of the reference in random order", _shuffled_reference),
    Kind("key words", "the most frequent content words of the source", _key_words),
    Kind("all candidates", "every name and number of the document", _all_candidates),
    Kind("padding", "an honest answer, then empty phrases or the document", _padded, spoils_honest=True),
    Kind("repetition", "an honest answer four times", _repeated_answer, spoils_honest=True),
)
