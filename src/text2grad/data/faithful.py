"""Texts that agree with their sources, from public data sets: what corruptions are made of.

Each example has the text as its completion, and its source in `meta["document"]`, which is empty where the prompt is a
question alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from text2grad.data import defacto, fgrlhf, scitldr, summaries, xquad
from text2grad.data.split import Split
from text2grad.schema import Example

_SENTENCE = re.compile(r"\S.*?[.!?](?=\s+[A-Z\"“(]|\s*$)", re.DOTALL)


def from_scitldr(split: Split) -> Iterator[Example]:
    """Yield the first summary of every abstract, with and without instruction, and the abstract's first sentence."""
    for example in scitldr.load(split):
        yield from _summaries(example)


def from_summaries(split: Split) -> Iterator[Example]:
    """Yield the summaries of the quickstart's texts, with and without instruction, and each text's first sentence."""
    for example in summaries.load(split):
        yield from _summaries(example)


def from_xquad(split: Split) -> Iterator[Example]:
    """Yield the answers in a few words, in their sentences, and in their sentences for the question alone.

    `meta["other_answers"]` are the answers to the other questions about the paragraph. Every sentence of a paragraph is
    also a summary of it.
    """
    examples = list(xquad.load(split))
    answers: dict[str, list[str]] = {}
    for example in examples:
        answers.setdefault(str(example.meta["document"]), []).append(_first(example))
    for number, document in enumerate(answers):
        for position, match in enumerate(_SENTENCE.finditer(document)):
            name = f"xquad-{split}-{number}-{position}"
            yield Example(id=name, prompt=document, completion=match[0], meta={"document": document})
    for example in examples:
        document, question, answer = str(example.meta["document"]), str(example.meta["question"]), _first(example)
        others = [other for other in answers[document] if other != answer]
        meta = {"document": document, "question": question, "other_answers": others}
        short = example.model_copy(update={"completion": answer, "meta": meta})
        yield short
        sentence = _sentence_with(answer, document)
        if sentence is not None:
            prompt = fgrlhf.PROMPT.format(document=document, question=question)
            update = {"id": f"{example.id}-sentence", "prompt": prompt, "completion": sentence}
            yield short.model_copy(update=update)
            yield _question_only(short.model_copy(update=update))


def from_defacto(path: str | Path) -> Iterator[Example]:
    """Yield the summaries without an error, and the corrected ones of the others."""
    for example in defacto.read(path):
        if not example.meta["has_error"]:
            update = {"feedback": None, "reference": None, "meta": {"document": example.prompt_text}}
            yield example.model_copy(update=update)
    for example in defacto.read_corrected(path):
        update = {"feedback": None, "reference": None, "meta": {"document": example.prompt_text}}
        yield example.model_copy(update=update)


def from_fgrlhf(examples: Iterable[Example]) -> Iterator[Example]:
    """Yield the corrected answers and the gold answers, to the passages and to the question alone.

    examples: of `fgrlhf.read`, with feedback.
    """
    for example in examples:
        meta = {"document": example.meta["document"], "question": example.meta["question"]}
        for name, text in (("corrected", example.meta["corrected"]), ("gold", example.reference)):
            if isinstance(text, str) and text.strip():
                update = {"id": f"{example.id}-{name}", "completion": text.strip(), "feedback": None, "meta": meta}
                faithful = example.model_copy(update=update | {"reference": None})
                yield faithful
                yield _question_only(faithful)


def _question_only(example: Example) -> Example:
    """Return the answer without its source, which stays in `meta["passage"]`."""
    meta = example.meta | {"document": "", "passage": example.meta["document"]}
    update = {"id": f"{example.id}-question", "prompt": str(example.meta["question"]), "meta": meta}
    return example.model_copy(update=update)


def _first(example: Example) -> str:
    reference = example.reference
    assert reference
    return reference if isinstance(reference, str) else reference[0]


def _summaries(example: Example) -> Iterator[Example]:
    document, reference = str(example.meta["document"]), _first(example).strip()
    if reference:
        with_prompt = example.model_copy(update={"completion": reference, "reference": None})
        yield with_prompt
        yield with_prompt.model_copy(update={"id": f"{example.id}-plain", "prompt": document})
    match = _SENTENCE.search(document)
    if match is not None:
        update = {"id": f"{example.id}-lead", "prompt": document, "completion": match[0], "reference": None}
        yield example.model_copy(update=update)


def _sentence_with(answer: str, document: str) -> str | None:
    return next((match[0] for match in _SENTENCE.finditer(document) if answer in match[0]), None)
