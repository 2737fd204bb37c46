"""Where annotators, and annotators and models, differ."""

from __future__ import annotations

from collections.abc import Sequence

from text2grad.schema import Feedback, Strict
from text2grad.studio.agreement import Agreement, Judged, measure_agreement, token_labels
from text2grad.studio.exports import ADJUDICATOR, says_something
from text2grad.studio.project import Project
from text2grad.text.whitespace import word_ranges


class Opinion(Strict):
    """What one annotator or critic says of an answer."""

    name: str
    is_model: bool
    feedback: Feedback


class DisputedAnswer(Strict):
    """An answer on which there are several opinions. share: of its words that are labelled differently."""

    index: int
    id: str
    names: list[str]
    share: float
    is_adjudicated: bool


class Review(Strict):
    """All opinions on a source. done: finished answers by annotator. agreement: between all, models included.

    people: Krippendorff's alpha between people.
    """

    done: dict[str, int]
    models: list[str]
    people: float | None
    agreement: Agreement
    answers: list[DisputedAnswer]


def opinions(project: Project, index: int) -> list[Opinion]:
    """Return all opinions on an answer but the adjudicated one: of people, then of models."""
    key = project.keys[index]
    people = [
        Opinion(name=one.annotator, is_model=False, feedback=one.feedback)
        for one in project.store.annotations(key).get(key, [])
        if one.annotator != ADJUDICATOR and says_something(one)
    ]
    given = project.given_feedback(index)
    return people + [Opinion(name=name, is_model=True, feedback=feedback) for name, feedback in given.items()]


def review(project: Project) -> Review:
    """Compare all opinions on the answers that a person has commented on; the most disputed answers come first."""
    judged, answers, models = [], [], set[str]()
    annotations = project.store.annotations()
    for index, key in enumerate(project.keys):
        if key not in annotations:
            continue
        said = opinions(project, index)
        if all(one.is_model for one in said):
            continue
        example = project.examples[index]
        models |= {one.name for one in said if one.is_model}
        judged.append(Judged(example.id, example.completion, {one.name: one.feedback for one in said}))
        if len(said) > 1:
            answers.append(
                DisputedAnswer(
                    index=index,
                    id=example.id,
                    names=[one.name for one in said],
                    share=disputed_share(example.completion, [one.feedback for one in said]),
                    is_adjudicated=any(one.annotator == ADJUDICATOR for one in annotations[key]),
                )
            )
    by_people = [
        one._replace(feedback={name: said for name, said in one.feedback.items() if name not in models})
        for one in judged
    ]
    agreement = measure_agreement(judged)
    return Review(
        done={name: done for name, done in project.store.annotators().items() if name != ADJUDICATOR},
        models=sorted(models),
        people=measure_agreement(by_people).alpha if models else agreement.alpha,
        agreement=agreement,
        answers=sorted(answers, key=lambda answer: (answer.is_adjudicated, -answer.share, answer.index)),
    )


def disputed_share(completion: str, feedbacks: Sequence[Feedback]) -> float:
    """Return the share of the words that not all label the same."""
    ranges = word_ranges(completion)
    labels = [token_labels(feedback, ranges) for feedback in feedbacks if feedback.status == "ok"]
    return sum(len(set(unit)) > 1 for unit in zip(*labels, strict=True)) / max(1, len(ranges))
