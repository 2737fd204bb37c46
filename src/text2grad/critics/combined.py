"""Several critics on one completion: their feedback merged into one Feedback.

The rules:

- Critiques are joined by newlines, in the order of the critics; phrases are shifted along.
- Spans keep their critic. Spans over the same characters with the same label become one, the most severe, whose
  `critic` names all sources, as "code+lint". Praise and blame of the same characters both stay; rewards add them up.
- Omissions with the same text become one, the most severe.
- Where a critic gives graded scores, which replace spans, the spans of the others join them as scores: their severity
  times their confidence, negative for blame.
- The score is the mean of their scores. Combine critics whose scores have a similar scale.
- The status is ok if at least one critic's is; the errors of the others stay in `error`. Critics, unlike people who
  comment, all judge every completion: where one failed and others give scores, the feedback is failed, since a mean
  that lacks a part is another score.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeVar

from text2grad.critics.base import Critic, collect_feedback
from text2grad.critics.fingerprint import critic_digest
from text2grad.critics.registry import make_critic
from text2grad.errors import UserError
from text2grad.schema import Example, Feedback, Omission, Span

HasPhrase = TypeVar("HasPhrase", Span, Omission)


class CombinedCritic:
    """Runs every critic on every example and merges the feedback by the rules in the module's docstring.

    critics: critics, their names, or mappings with `name` and `options`, as in a run's YAML file.
    """

    def __init__(self, critics: Sequence[Critic | str | Mapping[str, Any]]) -> None:
        if not critics or isinstance(critics, str):
            raise UserError("combined: give a list of at least one critic, as [code, lint]")
        self.critics = [_resolve_critic(critic) for critic in critics]

    def critique(self, examples: Sequence[Example]) -> list[Feedback]:
        """Return one Feedback per example, in order. The critics run one after the other."""
        collected = [collect_feedback(critic, examples) for critic in self.critics]
        return [merge_critics(feedbacks) for feedbacks in zip(*collected, strict=True)]

    def fingerprint(self) -> str:
        """Return a string that changes with the settings of any critic."""
        return json.dumps(["combined", [critic_digest(critic) for critic in self.critics]])


def merge_critics(feedbacks: Sequence[Feedback]) -> Feedback:
    """Merge what all critics say of a completion; failed where one of them failed and others give scores."""
    merged = merge_feedback(feedbacks)
    if merged.score is not None and merged.error:
        return Feedback.failure(merged.critic, merged.error, merged.raw)
    return merged


def merge_feedback(feedbacks: Sequence[Feedback]) -> Feedback:
    """Merge feedback on the same completion by the rules in the module's docstring."""
    if not feedbacks:
        raise ValueError("there is no feedback to merge")
    if len(feedbacks) == 1:
        return feedbacks[0]
    succeeded = [feedback for feedback in feedbacks if feedback.status == "ok"]
    errors = "; ".join(f"{feedback.critic}: {feedback.error}" for feedback in feedbacks if feedback.status == "failed")
    critic = _join_names(feedback.critic for feedback in feedbacks)
    raw = _merge_raw(feedbacks)
    if not succeeded:
        return Feedback.failure(critic, errors, raw)
    critique, offsets = _join_critiques([feedback.critique for feedback in succeeded])
    shifted = list(zip(succeeded, offsets, strict=True))
    scores = [feedback.score for feedback in succeeded if feedback.score is not None]
    return Feedback(
        reasoning="\n".join(feedback.reasoning for feedback in succeeded if feedback.reasoning) or None,
        critique=critique,
        spans=_merge_spans(span for feedback, offset in shifted for span in _shift(feedback.spans, offset)),
        omissions=_merge_omissions(item for feedback, offset in shifted for item in _shift(feedback.omissions, offset)),
        unmatched=list(dict.fromkeys(quote for feedback in succeeded for quote in feedback.unmatched)),
        scores=_merge_scores(succeeded),
        score=sum(scores) / len(scores) if scores else None,
        critic=critic,
        raw=raw,
        error=errors or None,
    )


def _resolve_critic(critic: Critic | str | Mapping[str, Any]) -> Critic:
    if isinstance(critic, str):
        return make_critic(critic, {})
    if not isinstance(critic, Mapping):
        return critic
    if not critic.keys() <= {"name", "options"} or "name" not in critic:
        raise UserError(f"combined: {dict(critic)} is no critic; give name and, where it has any, options")
    return make_critic(critic["name"], critic.get("options") or {})


def _join_critiques(critiques: Sequence[str]) -> tuple[str, list[int]]:
    """Return the joined text and the offset of each critique in it."""
    text, offsets = "", []
    for critique in critiques:
        text += "\n" if text and critique else ""
        offsets.append(len(text))
        text += critique
    return text, offsets


def _shift(items: Sequence[HasPhrase], offset: int) -> list[HasPhrase]:
    return [
        item.model_copy(update={"phrase": (item.phrase[0] + offset, item.phrase[1] + offset)}) if item.phrase else item
        for item in items
    ]


def _merge_spans(spans: Iterable[Span]) -> list[Span]:
    groups: dict[tuple[int, int, str], list[Span]] = {}
    for span in spans:
        groups.setdefault((span.start, span.end, span.label), []).append(span)
    return [_merge_group(group) for group in groups.values()]


def _merge_group(spans: Sequence[Span]) -> Span:
    """Merge spans of the same words: the most severe counts, with its replacement or that of the next that has one."""
    by_severity = sorted(spans, key=lambda span: -span.severity)
    replacement = next((span.replacement for span in by_severity if span.replacement is not None), None)
    critic = _join_names(span.critic for span in spans)
    return by_severity[0].model_copy(update={"critic": critic, "replacement": replacement})


def _merge_omissions(omissions: Iterable[Omission]) -> list[Omission]:
    """Keep the most severe omission of each text, and where its words are known to belong."""
    groups: dict[str, list[Omission]] = {}
    for omission in omissions:
        groups.setdefault(omission.text, []).append(omission)
    return [
        max(group, key=lambda omission: omission.severity).model_copy(
            update={field: getattr(_first_placed(group), field) for field in ("insert_at", "insertion")}
        )
        for group in groups.values()
    ]


def _first_placed(omissions: Sequence[Omission]) -> Omission:
    return next((omission for omission in omissions if omission.insertion is not None), omissions[0])


def _merge_scores(feedbacks: Sequence[Feedback]) -> list[tuple[int, int, float]] | None:
    if all(feedback.scores is None for feedback in feedbacks):
        return None
    graded = [score for feedback in feedbacks for score in feedback.scores or []]
    spans = _merge_spans(span for feedback in feedbacks if feedback.scores is None for span in feedback.spans)
    signs = {"good": 1.0, "poor": -1.0}
    return graded + [
        (span.start, span.end, signs[span.label] * span.severity * span.confidence) for span in spans if span.confidence
    ]


def _merge_raw(feedbacks: Sequence[Feedback]) -> str | None:
    """Return the raw replies of the critics as a JSON list of [critic, reply]."""
    replies = [[feedback.critic, feedback.raw] for feedback in feedbacks if feedback.raw is not None]
    return json.dumps(replies, ensure_ascii=False) if replies else None


def _join_names(names: Iterable[str]) -> str:
    return "+".join(dict.fromkeys(part for name in names for part in name.split("+")))
