"""Several critics on one answer: what they say becomes one Feedback.

The rule, in one place:

- The critiques stand one below the other, in the order of the critics; every phrase still points at its own words.
- Spans keep their critic. Spans over the same characters with the same label are one: the gravest, whose `critic` names
  all sources, as "code+lint". Praise and blame of the same characters stay side by side; the mapping adds them up.
- Omissions with the same text are one, the gravest.
- Where a critic gives graded scores, which replace spans, the spans of the others join them as severity with a sign.
- The score is the mean of the scores that are there. Give critics together whose scores have a similar scale.
- It is ok if at least one critic is. What kept the others from judging stays in `error`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeVar

from text2grad.critics.base import Critic, collect_feedback
from text2grad.critics.fingerprint import critic_digest
from text2grad.critics.registry import make_critic
from text2grad.errors import UserError
from text2grad.schema import Example, Feedback, Omission, Range, Span

Pointing = TypeVar("Pointing", Span, Omission)


class CombinedCritic:
    """Asks every critic about every answer and merges what they say; see the module's docstring for the rule.

    critics: critics, or their names, or mappings with `name` and `options`, as in a run's YAML file.
    """

    def __init__(self, critics: Sequence[Critic | str | Mapping[str, Any]]) -> None:
        if not critics or isinstance(critics, str):
            raise UserError("combined: give a list of at least one critic, as [code, lint]")
        self.critics = [_made(critic) for critic in critics]

    def critique(self, examples: Sequence[Example]) -> list[Feedback]:
        """One Feedback for each example, in order. The critics are asked one after the other."""
        said = [collect_feedback(critic, examples) for critic in self.critics]
        return [merge(feedbacks) for feedbacks in zip(*said, strict=True)]

    def fingerprint(self) -> str:
        """Changes with the settings of any critic."""
        return json.dumps(["combined", [critic_digest(critic) for critic in self.critics]])


def merge(feedbacks: Sequence[Feedback]) -> Feedback:
    """One Feedback from several on the same answer; see the module's docstring for the rule."""
    if not feedbacks:
        raise ValueError("there is no feedback to merge")
    if len(feedbacks) == 1:
        return feedbacks[0]
    failed = [feedback for feedback in feedbacks if feedback.status == "failed"]
    errors = "; ".join(f"{feedback.critic}: {feedback.error}" for feedback in failed)
    critic = _joined(feedback.critic for feedback in feedbacks)
    raw = _raw(feedbacks)
    judged = [feedback for feedback in feedbacks if feedback.status == "ok"]
    if not judged:
        return Feedback.failure(critic, errors, raw)
    critique, shifts = _stacked([feedback.critique for feedback in judged])
    moved = list(zip(judged, shifts, strict=True))
    given = [feedback.score for feedback in judged if feedback.score is not None]
    return Feedback(
        reasoning="\n".join(feedback.reasoning for feedback in judged if feedback.reasoning) or None,
        critique=critique,
        spans=_spans(span for feedback, shift in moved for span in _shifted(feedback.spans, shift)),
        omissions=_omissions(omission for feedback, shift in moved for omission in _shifted(feedback.omissions, shift)),
        unmatched=list(dict.fromkeys(quote for feedback in judged for quote in feedback.unmatched)),
        scores=_scores(judged),
        score=sum(given) / len(given) if given else None,
        critic=critic,
        raw=raw,
        error=errors or None,
    )


def _made(critic: Critic | str | Mapping[str, Any]) -> Critic:
    if isinstance(critic, str):
        return make_critic(critic, {})
    if not isinstance(critic, Mapping):
        return critic
    if not critic.keys() <= {"name", "options"} or "name" not in critic:
        raise UserError(f"combined: {dict(critic)} is no critic; give name and, where it has any, options")
    return make_critic(critic["name"], critic.get("options") or {})


def _stacked(critiques: Sequence[str]) -> tuple[str, list[int]]:
    """The critiques one below the other, and where each begins."""
    text, shifts = "", []
    for critique in critiques:
        text += "\n" if text and critique else ""
        shifts.append(len(text))
        text += critique
    return text, shifts


def _shifted(items: Sequence[Pointing], shift: int) -> list[Pointing]:
    return [item.model_copy(update={"phrase": _moved(item.phrase, shift)}) for item in items]


def _moved(phrase: Range | None, shift: int) -> Range | None:
    return (phrase[0] + shift, phrase[1] + shift) if phrase else None


def _spans(spans: Iterable[Span]) -> list[Span]:
    """Spans over the same characters with the same label become the gravest of them, with all their sources."""
    alike: dict[tuple[int, int, str], list[Span]] = {}
    for span in spans:
        alike.setdefault((span.start, span.end, span.label), []).append(span)
    return [
        max(group, key=lambda span: span.severity).model_copy(update={"critic": _joined(one.critic for one in group)})
        for group in alike.values()
    ]


def _omissions(omissions: Iterable[Omission]) -> list[Omission]:
    gravest: dict[str, Omission] = {}
    for omission in omissions:
        if omission.text not in gravest or omission.severity > gravest[omission.text].severity:
            gravest[omission.text] = omission
    return list(gravest.values())


def _scores(feedbacks: Sequence[Feedback]) -> list[tuple[int, int, float]] | None:
    graded = [score for feedback in feedbacks for score in feedback.scores or []]
    if all(feedback.scores is None for feedback in feedbacks):
        return None
    marked = _spans(span for feedback in feedbacks if feedback.scores is None for span in feedback.spans)
    return graded + [(span.start, span.end, span.severity * (1 if span.label == "good" else -1)) for span in marked]


def _raw(feedbacks: Sequence[Feedback]) -> str | None:
    """What the critics replied, as a JSON list of [critic, reply]."""
    replies = [[feedback.critic, feedback.raw] for feedback in feedbacks if feedback.raw is not None]
    return json.dumps(replies, ensure_ascii=False) if replies else None


def _joined(names: Iterable[str]) -> str:
    return "+".join(dict.fromkeys(part for name in names for part in name.split("+")))
