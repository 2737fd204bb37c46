"""Agreement and differences between people, and between people and models."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from studio_support import COMPLETIONS

from text2grad.schema import Feedback, Span
from text2grad.studio.exports import ADJUDICATOR
from text2grad.studio.project import Project
from text2grad.studio.review import disputed_share, opinions, review

PLAIN = COMPLETIONS["plain"]


def blame(words: str) -> Feedback:
    start = PLAIN.index(words)
    return Feedback(critic="x", spans=[Span(start=start, end=start + len(words), label="poor")])


def test_the_share_of_disputed_words() -> None:
    assert disputed_share(PLAIN, [blame("Friday"), blame("Friday")]) == 0
    assert disputed_share(PLAIN, [blame("Friday"), blame("430")]) == 2 / len(PLAIN.split())


def test_people_and_models_are_compared(answers: Path) -> None:
    project = Project(answers)

    def save(name: str, words: str, **more: Any) -> None:
        feedback = blame(words).model_copy(update={"critic": f"human:{name}"} | more)
        project.store.save(project.keys[0], project.examples[0], name, 0, "done", feedback)

    assert review(project).answers == []
    project.store.add_prediction(project.keys[0], "grounding", blame("430"))
    project.store.add_prediction(project.keys[1], "grounding", Feedback(critic="grounding"))
    assert review(project).answers == []  # nobody has said anything yet
    save("Mia", "Friday")
    save("Tom", "Friday")
    found = review(project)
    assert (found.done, found.models, found.people) == ({"Mia": 1, "Tom": 1}, ["grounding"], 1.0)
    assert {pair.annotators: pair.alpha == 1 for pair in found.agreement.pairs} == {
        ("Mia", "Tom"): True,
        ("Mia", "grounding"): False,
        ("Tom", "grounding"): False,
    }
    (answer,) = found.answers
    assert (answer.names, answer.is_adjudicated) == (["Mia", "Tom", "grounding"], False)
    save(ADJUDICATOR, "historic")
    again = review(project)
    assert again.answers[0].is_adjudicated
    assert ADJUDICATOR not in again.done
    assert [one.name for one in opinions(project, 0)] == ["Mia", "Tom", "grounding"]
    project.close()
