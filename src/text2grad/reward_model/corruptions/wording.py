"""The words of critiques: every kind of fault is said in several ways."""

from __future__ import annotations

from random import Random

_EXCHANGED = (
    'It should be "{original}", not "{written}".',
    "The source says {original}, not {written}.",
    '"{written}" is wrong: it was {original}.',
    "It was {original} rather than {written}.",
    'Replace "{written}" with "{original}".',
    'Change "{written}" to "{original}".',
    'The summary says "{written}", but the text has "{original}".',
    "{written} is incorrect; the correct one is {original}.",
    "Not {written}: {original}.",
    "The answer gets this wrong. It is {original}, and not {written}.",
)
_REVERSED = (
    'This is the wrong way round: "{written}" should be "{original}".',
    'The opposite is true: it is "{original}", not "{written}".',
    'The relation is reversed. Change "{written}" to "{original}".',
    "The source says {original}, not {written}.",
    'It should be "{original}" instead of "{written}".',
)
_NEW = (
    'Nothing in the source mentions "{written}"; it says "{original}".',
    "{written} does not appear in the text. It should be {original}.",
    'The source does not name {written}; replace it with "{original}".',
    "{written} is made up: the text has {original}.",
    "It was {original}, not {written}.",
)
_NEGATED = (
    'The source says the opposite: it should be "{original}".',
    'The negation is wrong. Change "{written}" to "{original}".',
    'It should be "{original}" rather than "{written}".',
)
_NOT = (
    'The "not" is wrong: the source says the opposite.',
    'Remove the "not"; the source says that this is so.',
    "The sentence is negated, and the text is not. Delete the not.",
)
_ADDED = (
    'The source does not say "{written}". Remove it.',
    'Remove "{written}".',
    'There is nothing about "{written}" in the text.',
    "{written} cannot be found in the source and should be removed.",
    'The words "{written}" are not supported by the source.',
    'Delete "{written}": it is not mentioned anywhere.',
    "This was added: {written}",
)
_OFF_TOPIC = (
    'This does not answer the question: "{written}"',
    'Irrelevant to the question: "{written}" Remove it.',
    "The question does not ask for this: {written}",
    'Remove "{written}", which is beside the point.',
)
_REPEATED = (
    "The answer repeats itself: {written}",
    'This was said before and can be removed: "{written}"',
    'Redundant: "{written}"',
)
_OMITTED = (
    "It does not say: {original}",
    'Missing: "{original}"',
    'It leaves out "{original}".',
    'The text also says "{original}", which should be added.',
    'Add "{original}".',
)
CLEAN = (
    "All of it agrees with the source.",
    "Nothing is wrong here.",
    "The source supports every word.",
    "No errors: this is what the text says.",
    "This is correct.",
    "There is no mistake in it.",
)
_SENTENCES = {
    "name": _EXCHANGED,
    "new name": _NEW,
    "number": _EXCHANGED,
    "date": _EXCHANGED,
    "unit": _EXCHANGED,
    "answer": _EXCHANGED,
    "word": _NEW,
    "relation": _REVERSED,
    "not": _NEGATED,
    "added not": _NOT,
    "added phrase": _ADDED,
    "added clause": _ADDED,
    "added sentence": _ADDED,
    "digression": _OFF_TOPIC,
    "repetition": _REPEATED,
    "omission": _OMITTED,
}


def describe_fault(kind: str, written: str, original: str, rng: Random) -> str:
    """Return one sentence of a critique. written, original: the words as they stand, and as they should."""
    sentence = rng.choice(_SENTENCES["added not" if kind == "not" and not original else kind])
    return sentence.format(written=written.strip(" ,;"), original=original.strip(" ,;"))
