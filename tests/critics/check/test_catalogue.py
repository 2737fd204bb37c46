"""Each kind makes the answers that its description names, and only where they make sense."""

from __future__ import annotations

import pytest

from text2grad.critics.check.catalogue import CATALOGUE, degenerate_answers
from text2grad.critics.check.code_kinds import dead_branches, entry_point, shown_results
from text2grad.critics.check.kinds import Task
from text2grad.schema import Example

PASSAGE = (
    "Ingrid Moe built the lighthouse in 1871. It is 24 metres high. The keepers left in 1984, when it was automated."
)
QUESTION = Example(
    id="q",
    prompt=f"{PASSAGE}\n\nWho built it?",
    reference=["Ingrid Moe", "Moe"],
    meta={"document": PASSAGE},
)
PROGRAM = Example(
    id="p",
    prompt="Write add(a, b).\nYour code should pass this test:\n\nassert add(1, 2) == 3",
    reference="def add(a, b):\n    return a + b\n",
    tests="assert add(1, 2) == 3\nassert add(0, 5) == 5",
)


def made(example: Example, honest: str | None = None) -> dict[str, list[str]]:
    answers: dict[str, list[str]] = {}
    for kind, answer in degenerate_answers(example, honest):
        answers.setdefault(kind.name, []).append(answer.completion)
    return answers


def test_names_are_distinct_and_every_kind_is_described():
    assert len({kind.name for kind in CATALOGUE}) == len(CATALOGUE) >= 30
    assert all(kind.description for kind in CATALOGUE)


def test_answers_to_a_question():
    answers = made(QUESTION, "It was Ingrid Moe.")

    assert answers["empty"] == [""]
    assert answers["prompt copied"] == [QUESTION.prompt]
    assert answers["instruction copied"] == ["Who built it?"]
    assert answers["source copied"] == [PASSAGE]
    assert answers["lead sentence"] == ["Ingrid Moe built the lighthouse in 1871."]
    assert answers["source fragments"] == [PASSAGE]  # of sentences with at most ten words
    assert answers["source cut off"] == ["Ingrid Moe built the lighthouse in 1871. It is 24"]
    assert answers["all candidates"] == [
        "Ingrid Moe, 1871, 24, 1984",
        "It is Ingrid Moe. It is 1871. It is 24. It is 1984.",
    ]
    assert answers["padding"][1] == f"It was Ingrid Moe.\n\n{PASSAGE}"
    assert answers["repetition"][0].count("It was Ingrid Moe.") == 4
    assert "reference cut off" not in answers  # of two words
    assert "pass" not in answers


def test_a_prompt_without_a_document_is_copied_once():
    answers = made(Example(id="g", prompt="Greet the team!"), "Hello, team!")
    assert answers["prompt copied"] == ["Greet the team!"]
    assert not {"source copied", "lead sentence", "source fragments"} & answers.keys()


def test_answers_to_a_programming_task():
    answers = made(PROGRAM, "def add(a, b):\n    return a - b\n")

    assert answers["pass"] == ["```python\ndef add(*args, **kwargs):\n    pass\n```"]
    assert answers["shown constant"] == ["```python\ndef add(*args, **kwargs):\n    return 3\n```"]
    assert answers["tests copied"][0] == "```python\nassert add(1, 2) == 3\nassert add(0, 5) == 5\n```"
    assert answers["comment"][0] == "```python\n# def add(a, b):\n#     return a + b\n```"
    assert answers["dead branches"][0].count("if ") == 8
    assert "return a - b" in answers["dead branches"][0]
    assert not {"source copied", "lead sentence", "all candidates"} & answers.keys()


def test_kinds_that_spoil_an_honest_answer_need_one():
    spoiling = {kind.name for kind in CATALOGUE if kind.spoils_honest}

    assert spoiling == {"padding", "repetition", "dead branches"}
    assert not spoiling & made(PROGRAM).keys()


def test_answers_are_the_same_every_time():
    long = QUESTION.model_copy(update={"reference": "It was Ingrid Moe, who built it in the year 1871, as we think."})

    first = made(long, "Moe")
    assert first == made(long, "Moe")
    assert first["reference cut off"] == ["It was Ingrid Moe,"]
    assert sorted(first["reference shuffled"][0].split()) == sorted(str(long.reference).split())


@pytest.mark.parametrize(
    ("prompt", "tests", "name"),
    [
        ("Write it.", "assert f(g(1)) == 2", "f"),
        ("Write it.", "import math\nassert math.isclose(area(2), 3)", "area"),
        (
            "def helper(x):\n    return x\n\ndef main(x):\n",
            "def check(candidate):\n    assert candidate(1)\ncheck(main)",
            "main",
        ),
        ("Write it.", "x = 1", "solution"),
    ],
)
def test_the_function_that_tests_call(prompt: str, tests: str, name: str) -> None:
    assert entry_point(Task(Example(id="", prompt=prompt, tests=tests))) == name


def test_results_that_a_prompt_shows():
    assert shown_results('def f(x):\n    """\n    >>> f(1)\n    [2, 3]\n    >>> f(2)\n    no code\n    """\n') == [
        "[2, 3]"
    ]
    assert shown_results("Pass this:\nassert f(1) == 'a'\nassert g(2)") == ["'a'"]


def test_dead_branches_change_nothing_that_runs():
    spoiled = dead_branches("def f(x):\n    return x + 1")
    assert spoiled is not None
    names: dict[str, object] = {}
    exec(spoiled, names)
    assert names["f"](2) == 3  # type: ignore[operator]
    assert dead_branches("def f(:") is None
    assert dead_branches("x = 1") is None
