"""No degenerate answer pays with the critics that ship: each is put through the catalogue."""

from __future__ import annotations

import pytest
from support import PASSAGE

from text2grad.critics.check.check import check_critic
from text2grad.critics.code import CodeCritic
from text2grad.critics.rules.grounding import GroundingCritic
from text2grad.critics.rules.qa import QACritic
from text2grad.data import summaries
from text2grad.errors import UserError
from text2grad.sandbox import Sandbox
from text2grad.schema import Example

# question, gold answer, and an attempt as a small model makes it: half of them are wrong
QUESTIONS = [
    ("In which year did electricity arrive?", "1952", "Electricity arrived in 1952, through a cable."),
    ("Who built the lighthouse?", "Ingrid Moe", "The lighthouse was built by an engineer from Fedje."),
    ("How many sheep were there?", "11", "There were 9 sheep."),
    ("What did the lamp burn?", "paraffin", "The lamp burned paraffin."),
    ("Who runs the hostel?", "the municipality of Fedje", "The hostel is run by the municipality of Fedje in summer."),
    ("Since when has the light been automatic?", "1984", "Since 1952 the light has been automatic."),
]
# task, tests (the prompt shows the first), reference, and an attempt that has a fault
PROGRAMS = [
    (
        "Write largest(numbers), the largest number of a list.",
        ["assert largest([1, 5, 2]) == 5", "assert largest([-3, -1]) == -1", "assert largest([7]) == 7"],
        "def largest(numbers):\n    return max(numbers)\n",
        "def largest(numbers):\n    best = 0\n    for n in numbers:\n        best = max(best, n)\n    return best\n",
    ),
    (
        "Write evens(numbers), the even numbers of a list.",
        ["assert evens([1, 2, 4]) == [2, 4]", "assert evens([3]) == []", "assert evens([0, 6]) == [0, 6]"],
        "def evens(numbers):\n    return [n for n in numbers if n % 2 == 0]\n",
        "def evens(numbers):\n    return [n for n in numbers if n % 2 == 0 and n]\n",
    ),
    (
        "Write initials(name), the first letters of its words.",
        ["assert initials('Ada Byron') == 'AB'", "assert initials('ann') == 'a'", "assert initials('') == ''"],
        "def initials(name):\n    return ''.join(word[0] for word in name.split())\n",
        "def initials(name):\n    return ''.join(word[0] for word in name.split(' '))\n",
    ),
]


def questions() -> list[Example]:
    return [
        Example(
            id=str(i),
            prompt=f"{PASSAGE}\n\nAnswer the question from the text above.\n\n{question}",
            completion=attempt,
            reference=gold,
            meta={"document": PASSAGE, "question": question},
        )
        for i, (question, gold, attempt) in enumerate(QUESTIONS)
    ]


def programs() -> list[Example]:
    return [
        Example(
            id=str(i),
            prompt=f"{task}\nYour code should pass this test:\n\n{tests[0]}",
            completion=f"```python\n{attempt}```",
            reference=reference,
            tests="\n".join(tests),
        )
        for i, (task, tests, reference, attempt) in enumerate(PROGRAMS)
    ]


def texts() -> list[Example]:
    """Texts of the quickstart. An attempt as a small model makes it: most of the summary, then a part that is wrong."""
    chosen = list(summaries.load("train"))[:12]
    return [e.model_copy(update={"completion": _flawed(str(e.reference))}) for e in chosen]


def _flawed(reference: str) -> str:
    return f"{reference.rstrip('.')}, and the mayor of Brussels welcomed it."


def test_questions():
    result = check_critic(QACritic(), questions())

    assert result.problems == []
    assert result.warnings == []
    assert result.references == pytest.approx(1.0, abs=0.05)
    assert len(result.kinds) >= 14


def test_programs():
    try:
        critic = CodeCritic(test_timeout=1.0, total_timeout=5.0, sandbox=Sandbox())
    except UserError as error:
        pytest.skip(str(error))
    result = check_critic(critic, programs())

    assert result.problems == []
    assert result.references == 1.0
    assert len(result.kinds) >= 25


def test_summaries():
    result = check_critic(GroundingCritic(), texts())

    assert result.problems == []
    assert len(result.kinds) >= 15
