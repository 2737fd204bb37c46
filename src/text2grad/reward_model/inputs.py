"""What the reward model reads: the source, the answer, and the answer once more.

A causal model has not seen the rest of the answer when it reads one of its words; the repetition has.
The judged answer is never cut. What is too long loses the middle of its source.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from transformers import PreTrainedTokenizerBase, PreTrainedTokenizerFast

from text2grad.errors import UserError
from text2grad.reward_model.settings import Layout, Reading
from text2grad.schema import Example, Range

SOURCE, ANSWER = "\ue000source\ue001", "\ue000answer\ue001"  # stand for the texts while the template is rendered
QUESTIONS: dict[Reading, str] = {
    "once": f"{SOURCE}\n\nAnswer: {ANSWER}\n\nWhat is right and what is wrong with this answer?",
    "twice": f"{SOURCE}\n\nAnswer: {ANSWER}\n\nWhat is right and what is wrong with this answer?",
    "around": f"Answer: {ANSWER}\n\n{SOURCE}\n\nWhat is right and what is wrong with the answer?",
}
CUT = "\n[...]\n"  # what stands for the middle of a source that was too long


class TooLongError(ValueError):
    """The answer alone does not fit, or there is none; the message says so."""


@dataclass(frozen=True)
class Question:
    """Ids to read, up to where the judgement begins.

    judged: the places in ids of the answer's tokens that the head reads, as a half-open range.
    offsets: the characters of the answer that each of them covers.
    source_cut: how many tokens of the source were left out.
    """

    ids: list[int]
    judged: Range
    offsets: list[Range]
    source_cut: int


class Reader:
    """Examples to questions, with the tokenizer and the chat template of the base model."""

    def __init__(self, tokenizer: PreTrainedTokenizerBase, layout: Layout) -> None:
        if not isinstance(tokenizer, PreTrainedTokenizerFast):
            raise UserError(f'model "{tokenizer.name_or_path}" has no fast tokenizer; a reward model needs one')
        if tokenizer.chat_template is None:
            raise UserError(
                f'model "{tokenizer.name_or_path}" has no chat template; put a chat_template.jinja beside its tokenizer'
            )
        self._tokenizer = tokenizer
        self._layout = layout
        self._pieces = _pieces(tokenizer, layout.reading)
        self._cut: list[int] = self._encoded([CUT])["input_ids"][0]
        fixed = sum(len(piece) for piece in self._pieces if isinstance(piece, list))
        self._copies = sum(piece == ANSWER for piece in self._pieces)
        self._room = layout.max_length - fixed

    def read(self, example: Example) -> Question:
        """The question about an example's completion; raises TooLongError where the answer alone is too long."""
        (question,) = self.read_all([example])
        if isinstance(question, TooLongError):
            raise question
        return question

    def read_all(self, examples: Sequence[Example]) -> list[Question | TooLongError]:
        """One question, or the reason why there is none, for each example; all texts are encoded at once."""
        if not examples:
            return []
        answers = self._encoded([example.completion for example in examples], return_offsets_mapping=True)
        sources = self._encoded([example.prompt_text for example in examples])["input_ids"]
        return [
            self._question(*given)
            for given in zip(sources, answers["input_ids"], answers["offset_mapping"], strict=True)
        ]

    def _question(self, source: list[int], answer: list[int], offsets: list[Range]) -> Question | TooLongError:
        if not answer:
            return TooLongError("empty: there is no answer to judge")
        room = self._room - self._copies * len(answer)
        if room < min(len(source), len(self._cut)):
            return TooLongError(
                f"too long: the answer has {len(answer)} tokens and is read {self._copies} times; only "
                f"{self._layout.max_length} fit (max_length)"
            )
        kept = cut_middle(source, room, self._cut)
        ids: list[int] = []
        judged = (0, 0)
        for piece in self._pieces:
            if piece == ANSWER:
                judged = (len(ids), len(ids) + len(answer))
            ids += {SOURCE: kept, ANSWER: answer}[piece] if isinstance(piece, str) else piece
        lost = len(source) - len(kept) + len(self._cut) if kept is not source else 0
        return Question(ids, judged, [(start, end) for start, end in offsets], source_cut=lost)

    def _encoded(self, texts: list[str], **options: Any) -> Any:
        # What somebody wrote must not end a turn: the names of special tokens are read as plain text.
        return self._tokenizer(texts, add_special_tokens=False, split_special_tokens=True, **options)


def cut_middle(ids: list[int], room: int, mark: list[int]) -> list[int]:
    """At most `room` ids: the beginning and the end, with the mark between them. The same list where all of it fits."""
    if len(ids) <= room:
        return ids
    kept = room - len(mark)
    head = (kept + 1) // 2
    return [*ids[:head], *mark, *ids[len(ids) - (kept - head) :]]


def _pieces(tokenizer: PreTrainedTokenizerBase, reading: Reading) -> list[list[int] | str]:
    """The rendered template as ids, with SOURCE and ANSWER in their places; the last ANSWER is the judged one."""
    question = [{"role": "user", "content": QUESTIONS[reading]}]
    rendered: Any = tokenizer.apply_chat_template(question, add_generation_prompt=True, tokenize=False)
    if reading != "once":
        rendered += f"Answer: {ANSWER}\n"
    pieces: list[list[int] | str] = []
    for part in _split(rendered, (SOURCE, ANSWER)):
        pieces.append(
            part if part in (SOURCE, ANSWER) else list(tokenizer(part, add_special_tokens=False)["input_ids"])
        )
    return pieces


def _split(text: str, marks: Sequence[str]) -> list[str]:
    """The text in pieces, each of the marks a piece of its own."""
    parts = [text]
    for mark in marks:
        parts = [piece for part in parts for piece in _around(part, mark)]
    return [part for part in parts if part]


def _around(text: str, mark: str) -> list[str]:
    if text == mark:
        return [text]
    first, *rest = text.split(mark)
    return [first, *(piece for part in rest for piece in (mark, part))]
