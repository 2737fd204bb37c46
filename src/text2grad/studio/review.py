"""Where annotators, and annotators and models, differ."""

from __future__ import annotations

from collections.abc import Sequence

from text2grad.schema import Feedback, Strict
from text2grad.studio.exports import ADJUDICATOR, says_something
from text2grad.studio.project import Project


class Opinion(Strict):
    """What one annotator or critic says of an answer."""

    name: str
    is_model: bool
    feedback: Feedback


class Difference(Strict):
    """An answer on which there are several opinions. share: of its letters that are labelled differently."""

    index: int
    id: str
    names: list[str]
    share: float
    is_adjudicated: bool


def opinions(project: Project, index: int) -> list[Opinion]:
    """Return all opinions on an answer but the adjudicated one: of people, then of models."""
    key = project.keys[index]
    people = [one for one in project.store.annotations(key).get(key, []) if says_something(one)]
    found = [
        Opinion(name=one.annotator, is_model=False, feedback=one.feedback)
        for one in people
        if one.annotator != ADJUDICATOR
    ]
    given = project.given_feedback(index)
    return found + [Opinion(name=name, is_model=True, feedback=feedback) for name, feedback in given.items()]


def differences(project: Project) -> list[Difference]:
    """Return the answers that at least two have commented on, a person among them; the most disputed first."""
    found = []
    annotations = project.store.annotations()
    for index, key in enumerate(project.keys):
        people = annotations.get(key, [])
        if not any(one.annotator != ADJUDICATOR for one in people):
            continue
        said = opinions(project, index)
        if len(said) < 2 or all(one.is_model for one in said):
            continue
        found.append(
            Difference(
                index=index,
                id=project.examples[index].id,
                names=[one.name for one in said],
                share=disputed_share(project.examples[index].completion, [one.feedback for one in said]),
                is_adjudicated=any(one.annotator == ADJUDICATOR for one in people),
            )
        )
    return sorted(found, key=lambda item: (item.is_adjudicated, -item.share, item.index))


def disputed_share(completion: str, feedbacks: Sequence[Feedback]) -> float:
    """Return the share of the letters that are marked by one but not by all, or with another label."""
    labels = [letter_labels(completion, feedback) for feedback in feedbacks]
    letters = [i for i, letter in enumerate(completion) if not letter.isspace()]
    disputed = sum(len({label[i] for label in labels}) > 1 for i in letters)
    return disputed / max(1, len(letters))


def letter_labels(completion: str, feedback: Feedback) -> list[str]:
    """Return the label of every character; blame counts before praise."""
    labels = [""] * len(completion)
    for span in sorted(feedback.spans, key=lambda span: span.label):  # good, then poor
        labels[span.start : span.end] = [span.label] * (span.end - span.start)
    return labels
