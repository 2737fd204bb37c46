"""A language model that says which of two answers is better, asked in both orders.

Models prefer the answer that they read first, or last. An answer wins only if it is preferred in both orders.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Sequence
from typing import Any, Literal

from text2grad.critics.llm.endpoint import CompletionError, Endpoint
from text2grad.critics.llm.endpoint_critic import gather_or_cancel, run_coroutine
from text2grad.critics.llm.fence import Fence, split_control_tokens
from text2grad.critics.llm.reply import without_thinking
from text2grad.critics.llm.settings import LLMSettings
from text2grad.schema import Example

Verdict = Literal["first", "second", "tie"]
SCHEMA = {
    "type": "object",
    "properties": {"reasoning": {"type": "string"}, "winner": {"type": "string", "enum": ["1", "2", "tie"]}},
    "required": ["reasoning", "winner"],
    "additionalProperties": False,
}
_WINNER = re.compile(r"""["']winner["']\s*:\s*["']?(1|2|tie)\b""", re.IGNORECASE)
_TASK = """Which of two answers to a task is better? Judge whether they are right, complete and to the point; their \
length and their order do not matter.

The task:
{prompt}
{reference}
Answer 1:
{first}

Answer 2:
{second}

Reply with one JSON object: {{"reasoning": "...", "winner": "1", "2" or "tie"}}"""


class PairwiseJudge:
    """Compares answers behind an OpenAI-compatible endpoint. options: the fields of LLMSettings."""

    def __init__(self, **options: Any) -> None:
        self.settings = LLMSettings.parse(options, where="judge")
        self._endpoint = Endpoint(self.settings, SCHEMA)
        self.ledger = self._endpoint.ledger

    def judge(
        self, pairs: Sequence[tuple[Example, Example]], on_progress: Callable[[int, int], object] = lambda *_: None
    ) -> list[Verdict | None]:
        """Return which answer of each pair, to the same prompt, is better; None where a reply failed.

        A UserError (wrong key, unknown model, endpoint down, maximum cost reached) ends it.
        """
        return run_coroutine(self._judge_all(pairs, on_progress))

    async def _judge_all(
        self, pairs: Sequence[tuple[Example, Example]], on_progress: Callable[[int, int], object]
    ) -> list[Verdict | None]:
        slots, done = asyncio.Semaphore(self.settings.concurrency), 0

        async def judge(pair: tuple[Example, Example]) -> Verdict | None:
            nonlocal done
            async with slots:
                verdict = combine(await self._ask(*pair), await self._ask(*reversed(pair)))
            done += 1
            on_progress(done, len(pairs))
            return verdict

        try:
            return await gather_or_cancel([judge(pair) for pair in pairs])
        finally:
            await self._endpoint.aclose()

    async def _ask(self, first: Example, second: Example) -> Verdict | None:
        try:
            reply = await self._endpoint.complete(render(first, second))
        except CompletionError:
            return None
        return parse_winner(reply.content)


def combine(verdict: Verdict | None, swapped: Verdict | None) -> Verdict | None:
    """Return the verdict on a pair from those on both of its orders: a tie where they do not agree."""
    if verdict is None or swapped is None:
        return None
    mirrored: dict[Verdict, Verdict] = {"first": "second", "second": "first", "tie": "tie"}
    return verdict if verdict == mirrored[swapped] else "tie"


def parse_winner(reply: str) -> Verdict | None:
    """Return the winner that a reply names; None where it names none, or several: one may be quoted from an answer."""
    found = {winner.lower() for winner in _WINNER.findall(without_thinking(reply))}
    names: dict[str, Verdict] = {"1": "first", "2": "second", "tie": "tie"}
    return names[found.pop()] if len(found) == 1 else None


def render(first: Example, second: Example) -> str:
    """Return the prompt; the texts stand between tags that they cannot close (`fence.py`)."""
    reference = first.reference
    given = {
        "prompt": ("task", first.prompt_text),
        "first": ("answer", first.completion),
        "second": ("answer", second.completion),
        "reference": ("reference", "\n".join(reference) if isinstance(reference, list) else reference or ""),
    }
    texts = {name: (tag, split_control_tokens(text)) for name, (tag, text) in given.items()}
    fence = Fence(text for _, text in texts.values())
    fenced = {name: fence.wrap(tag, text) for name, (tag, text) in texts.items()}
    good = f"\nA good answer, for comparison:\n{fenced['reference']}\n" if reference else ""
    return f"{fence.instructions}\n\n{_TASK.format(**fenced | {'reference': good})}"
