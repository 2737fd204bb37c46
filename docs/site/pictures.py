"""Draw the pictures of the concept pages from what the library computes: `python docs/site/pictures.py`.

Text takes the colour of the page (`currentColor`); the style is for viewers that show the file alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import get_args

import numpy as np
import torch
from transformers import PreTrainedTokenizerBase

from text2grad import Feedback, Span, span_advantages, token_rewards
from text2grad.align.reading import read_comment
from text2grad.align.tokens import decode, offsets
from text2grad.models.loading import load_tokenizer
from text2grad.models.special_tokens import encode_texts
from text2grad.rewards.corrections import Completion, find_corrections
from text2grad.rewards.credit import Credit, Mode
from text2grad.schema import Omission
from text2grad.trainer.advantages import ESTIMATORS

FOLDER = Path(__file__).parents[1] / "pictures"
STYLE = "<style>svg{color:#1f2328}@media(prefers-color-scheme:dark){svg{color:#e6edf3}}</style>"
GOOD, POOR, NEUTRAL = "#3b82c4", "#d9772b", "#8a8f98"  # a pair that is safe for colour blindness, on light and on dark
WIDTH, CHARACTER = 760, 8.4  # of a 14 pixel monospace font
ANSWER = "We meet on Friday at noon. Bring cake."
COMMENT = "The meeting was on Monday, not Friday. Cake is a nice touch."
END = "end"


class Drawing:
    """An SVG picture that grows downwards."""

    def __init__(self) -> None:
        self.parts: list[str] = []
        self.height = 0.0

    def text(
        self, x: float, y: float, content: str, anchor: str = "start", fill: str = "currentColor", size: int = 14
    ) -> None:
        """Write a line of text."""
        self.parts.append(
            f'<text x="{x:g}" y="{y:g}" text-anchor="{anchor}" fill="{fill}" font-size="{size}" xml:space="preserve">'
            f"{escape(content)}</text>"
        )

    def box(self, x: float, y: float, width: float, height: float, fill: str, opacity: float = 1.0) -> None:
        """Draw a filled rectangle."""
        self.parts.append(
            f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="3" fill="{fill}" '
            f'fill-opacity="{opacity:g}"/>'
        )

    def line(self, x1: float, y1: float, x2: float, y2: float, stroke: str = NEUTRAL) -> None:
        """Draw a line."""
        self.parts.append(f'<path d="M{x1:g} {y1:g}L{x2:g} {y2:g}" stroke="{stroke}" fill="none"/>')

    def svg(self, title: str) -> str:
        """Return the file."""
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {self.height:g}" role="img" '
            f'font-family="ui-monospace, monospace">{STYLE}<title>{escape(title)}</title>{"".join(self.parts)}</svg>\n'
        )


def colour(value: float) -> str:
    """Return the colour of praise or blame."""
    return GOOD if value > 0 else POOR


class Answer:
    """The answer of the pictures: its ids, its tokens, and where each stands on the line."""

    def __init__(self, tokenizer: PreTrainedTokenizerBase, text: str = ANSWER) -> None:
        (ids,) = encode_texts([text], tokenizer)
        self.text, self.ids = text, [*ids, int(tokenizer.eos_token_id)]
        self.ranges = offsets(self.ids, tokenizer)
        self.tokens = [text[start:end] for start, end in self.ranges[:-1]] + [END]
        self.lefts: list[float] = []
        at = 0.0
        for token in self.tokens:
            self.lefts.append(at)
            at += len(token) * CHARACTER + 8
        self.width = at

    def draw_tokens(self, drawing: Drawing, x: float, y: float, values: Sequence[float]) -> None:
        """Draw the tokens in a row, each coloured by its value."""
        for token, left, value in zip(self.tokens, self.lefts, values, strict=True):
            width = len(token) * CHARACTER + 4
            drawing.box(x + left, y - 15, width, 21, colour(value) if value else NEUTRAL, 0.65 if value else 0.18)
            drawing.text(x + left + 2, y, token)

    def draw_bars(self, drawing: Drawing, x: float, y: float, values: Sequence[float], scale: float) -> None:
        """Draw a bar per token around the line at `y`; `scale` pixels for 1."""
        drawing.line(x, y, x + self.width, y)
        for token, left, value in zip(self.tokens, self.lefts, values, strict=True):
            width, height = len(token) * CHARACTER + 4, abs(value) * scale
            if height >= 0.5:
                drawing.box(x + left, y - height if value > 0 else y, width, height, colour(value))


def feedback_on(answer: Answer) -> Feedback:
    """Return what the pictures' comment says about the answer, as the library reads it."""
    reading = read_comment(COMMENT, answer.text)
    return Feedback(critic="human", critique=COMMENT, spans=reading.spans, omissions=reading.omissions)


def alignment(tokenizer: PreTrainedTokenizerBase) -> str:
    """A comment, the characters that it is about, and their tokens."""
    answer, drawing = Answer(tokenizer), Drawing()
    feedback = feedback_on(answer)
    drawing.text(0, 16, "comment", fill=NEUTRAL)
    drawing.text(90, 16, COMMENT)
    drawing.text(0, 110, "answer", fill=NEUTRAL)
    for span in feedback.spans:
        value = 1.0 if span.label == "good" else -1.0
        assert span.phrase is not None
        said = 90 + CHARACTER * (span.phrase[0] + span.phrase[1]) / 2
        about = 90 + CHARACTER * (span.start + span.end) / 2
        drawing.box(
            90 + CHARACTER * span.phrase[0], 22, CHARACTER * (span.phrase[1] - span.phrase[0]), 3, colour(value)
        )
        drawing.line(said, 26, about, 92, colour(value))
        label = f"{span.label}, {span.confidence:.2f}" + (f", instead: {span.replacement}" if span.replacement else "")
        beside = about + (said - about) * (92 - 64) / (92 - 26) + (10 if value > 0 else -10)  # the line at this height
        drawing.text(beside, 64, label, "start" if value > 0 else "end", colour(value), size=12)
        drawing.box(90 + CHARACTER * span.start, 95, CHARACTER * (span.end - span.start), 21, colour(value), 0.65)
    drawing.text(90, 110, answer.text)
    drawing.text(0, 160, "tokens", fill=NEUTRAL)
    answer.draw_tokens(
        drawing, 90, 160, token_rewards(feedback, answer.ranges, credit=Credit(mode="uniform")).rewards.tolist()
    )
    drawing.height = 176
    return drawing.svg("A comment, the words of the answer that it is about, and their tokens")


def credit(tokenizer: PreTrainedTokenizerBase) -> str:
    """The token rewards of one answer in each credit mode."""
    answer, drawing = Answer(tokenizer), Drawing()
    start = answer.text.index("on Friday")
    feedback = Feedback(
        critic="human",
        critique="Not on Friday. Nice cake. It does not say where.",
        spans=[
            Span(start=start, end=start + len("on Friday"), label="poor"),
            Span(start=answer.text.index("cake"), end=len(answer.text) - 1, label="good", severity=0.5),
        ],
        omissions=[Omission(text="where", severity=0.5)],
    )
    y = 20.0
    for mode in get_args(Mode):
        rewards = token_rewards(
            feedback, answer.ranges, credit=Credit(mode=mode), rng=np.random.default_rng(1)
        ).rewards.tolist()
        y += 34
        drawing.text(0, y + 5, mode)
        answer.draw_bars(drawing, 130, y, rewards, 30)
        for token, left, value in zip(answer.tokens, answer.lefts, rewards, strict=True):
            if value:
                middle = 130 + left + (len(token) * CHARACTER + 4) / 2
                drawing.text(middle, y + (13 if value > 0 else -4), f"{value:+.2g}", "middle", size=11)
        y += 42
    answer.draw_tokens(drawing, 130, y, [0.0] * len(answer.tokens))
    drawing.text(0, y + 30, f"Comment: {feedback.critique}", fill=NEUTRAL, size=12)
    drawing.height = y + 40
    return drawing.svg("The rewards of the tokens of one answer in each credit mode")


def estimators(tokenizer: PreTrainedTokenizerBase) -> str:
    """The advantages of one answer under each estimator, beside another answer to the same prompt."""
    answer, other = Answer(tokenizer), Answer(tokenizer, ANSWER.replace("Friday", "Monday"))
    start = answer.text.index("Friday")
    blamed = Feedback(critic="human", critique="Not Friday.", spans=[Span(start=start, end=start + 6, label="poor")])
    praised = Feedback(critic="human", critique="")
    rewards = torch.tensor(
        np.stack([token_rewards(said, one.ranges).rewards for said, one in ((blamed, answer), (praised, other))])
    )
    drawing, y = Drawing(), 10.0
    for name in ESTIMATORS:
        found = span_advantages(
            rewards, torch.ones_like(rewards), name, values=torch.zeros_like(rewards), group_size=2
        ).advantages[0]
        y += 12
        drawing.text(0, y + 12, name)
        answer.draw_bars(drawing, 130, y, found.tolist(), 28)
        y += 34
    answer.draw_tokens(drawing, 130, y + 14, rewards[0].tolist())
    drawing.text(0, y + 14, "reward")
    drawing.text(0, y + 42, f"The other answer: {other.text} Nothing is said about it.", fill=NEUTRAL, size=12)
    drawing.height = y + 50
    return drawing.svg("The advantages of the tokens of one answer under each estimator")


def corrections(tokenizer: PreTrainedTokenizerBase) -> str:
    """The sampled tokens, and the tokens of each correction, which branch off where the answer went wrong."""
    answer, drawing = Answer(tokenizer), Drawing()
    feedback = feedback_on(answer)
    completion = Completion(answer.ids, answer.text, answer.ranges, ended=True)
    found, _ = find_corrections(feedback, completion, tokenizer, lambda text: encode_texts([text], tokenizer)[0])
    drawing.text(0, 20, "sampled", fill=NEUTRAL)
    answer.draw_tokens(drawing, 90, 20, token_rewards(feedback, answer.ranges).rewards.tolist())
    drawing.text(0, 80, "instead", fill=NEUTRAL)
    for correction in found:
        left = 90 + answer.lefts[correction.start]
        drawing.line(left + 2, 28, left + 2, 64, GOOD)
        for token in (decode([one], tokenizer) for one in correction.ids):
            drawing.box(left, 65, len(token) * CHARACTER + 4, 21, GOOD, 0.65)
            drawing.text(left + 2, 80, token)
            left += len(token) * CHARACTER + 8
    drawing.text(0, 116, f"Comment: {COMMENT}", fill=NEUTRAL, size=12)
    drawing.height = 126
    return drawing.svg("The tokens of an answer, and the token that a comment asks for in the place of one of them")


PICTURES = {"alignment": alignment, "credit": credit, "estimators": estimators, "corrections": corrections}


def main() -> None:
    """Write all pictures."""
    FOLDER.mkdir(exist_ok=True)
    tokenizer = load_tokenizer("smollm2")
    for name, draw in PICTURES.items():
        (FOLDER / f"{name}.svg").write_text(draw(tokenizer), encoding="utf-8")


if __name__ == "__main__":
    main()
