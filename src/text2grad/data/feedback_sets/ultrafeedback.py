"""UltraFeedback: four completions per instruction, with GPT-4's critique and ratings (openbmb/UltraFeedback).

Tested on files of that shape, not on the set itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from statistics import fmean
from typing import Any

from text2grad.data.feedback_sets.fields import optional_text, rescale, text_field
from text2grad.data.rows import Row
from text2grad.schema import Example, Feedback

ASPECTS = ("instruction_following", "honesty", "truthfulness", "helpfulness")


def convert(row: Row) -> Iterator[Example]:
    """Yield every completion; the prompt has the system prompt under which it was written.

    The critique is GPT-4's, or else its rationales for the ratings. The score is the mean rating of the four aspects,
    scaled from 1..5 to -1..1: `overall_score` is 10 for some bad completions in the published files, so it counts only
    where no aspect is rated.
    """
    fields = row.fields
    instruction = text_field(fields, "instruction")
    for number, completion in enumerate(fields["completions"], 1):
        ratings = aspect_ratings(completion.get("annotations") or {})
        critique = optional_text(completion, "critique") or _rationales(completion.get("annotations") or {})
        score = _score(ratings, completion.get("overall_score"))
        if not critique and score is None:
            raise ValueError(f"completion {number} has neither a critique nor a rating")
        yield Example(
            id=f"{row.name}-{number}",
            prompt=_prompt(instruction, optional_text(completion, "custom_system_prompt")),
            completion=text_field(completion, "response"),
            feedback=Feedback(critique=critique.strip(), score=score, critic="gpt-4"),
            meta={
                "source": fields.get("source"),
                "model": completion.get("model"),
                "principle": completion.get("principle"),
                "overall_score": completion.get("overall_score"),
                "ratings": ratings,
            },
        )


def aspect_ratings(annotations: Mapping[str, Any]) -> dict[str, float]:
    """Return the rating of each aspect; "N/A" is none."""
    ratings = {}
    for aspect in ASPECTS:
        rating = str((annotations.get(aspect) or {}).get("Rating", ""))
        if rating.replace(".", "", 1).isdigit():
            ratings[aspect] = float(rating)
    return ratings


def _score(ratings: Mapping[str, float], overall: float | None) -> float | None:
    if ratings:
        return rescale(fmean(ratings.values()), 1, 5)
    return None if overall is None else rescale(float(overall), 1, 10)


def _rationales(annotations: Mapping[str, Any]) -> str:
    rationales = (optional_text(annotations.get(aspect) or {}, "Rationale") for aspect in ASPECTS)
    return "\n".join(dict.fromkeys(" ".join(text.split()) for text in rationales if text))


def _prompt(instruction: str, system: str | None) -> str | list[dict[str, str]]:
    if system is None:
        return instruction
    return [{"role": "system", "content": system}, {"role": "user", "content": instruction}]
