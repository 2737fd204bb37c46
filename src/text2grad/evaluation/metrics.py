"""Metrics of single completions."""

from __future__ import annotations

from functools import cache

from rouge_score.rouge_scorer import RougeScorer

from text2grad.schema import Feedback


def rouge_l(text: str, references: str | list[str]) -> float:
    """Return ROUGE-L F1 with stemming, against the best of the references."""
    references = [references] if isinstance(references, str) else references
    return max(float(_scorer().score(reference, text)["rougeL"].fmeasure) for reference in references)


def critic_score(feedback: Feedback) -> float:
    """Return the critic's own score; without one, praise minus blame minus omissions, each by its severity."""
    if feedback.score is not None:
        return feedback.score
    praise = sum(span.severity for span in feedback.spans if span.label == "good")
    blame = sum(span.severity for span in feedback.spans if span.label == "poor")
    return praise - blame - sum(omission.severity for omission in feedback.omissions)


@cache
def _scorer() -> RougeScorer:
    return RougeScorer(["rougeL"], use_stemmer=True)
