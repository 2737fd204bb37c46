"""The code task of `evidence.py`: MBPP, where the critic runs all tests of a problem but the last.

The prompt shows the first test. The last one is held back for the metric: neither prompt nor critic have it.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence

from harness import data_folder

from text2grad.critics.code.critic import CodeCritic
from text2grad.data import mbpp
from text2grad.sandbox import Sandbox
from text2grad.schema import Example

TEST_SECONDS, TOTAL_SECONDS = 0.5, 1.0
WARM_UP_PROBLEMS = 124  # of the training set: the others are the prompts of training
HELDOUT_TEST_PROBLEMS = 150  # beside the 90 of the validation set


def train() -> list[Example]:
    return hold_back(list(mbpp.read(data_folder() / mbpp.FILE, "train"))[WARM_UP_PROBLEMS:])


def warm_up() -> list[Example]:
    """Return problems with their reference programs as answers."""
    problems = list(mbpp.read(data_folder() / mbpp.FILE, "train"))[:WARM_UP_PROBLEMS]
    return [problem.model_copy(update={"completion": problem.reference}) for problem in problems]


def heldout() -> list[Example]:
    path = data_folder() / mbpp.FILE
    return hold_back([*mbpp.read(path, "validation"), *list(mbpp.read(path, "test"))[:HELDOUT_TEST_PROBLEMS]])


def critic() -> CodeCritic:
    """Return the critic, which runs two programs at a time: several processes have one each (`evidence_critics.py`)."""
    return CodeCritic(test_timeout=TEST_SECONDS, total_timeout=TOTAL_SECONDS, sandbox=Sandbox(num_workers=2))


def hold_back(problems: Sequence[Example]) -> list[Example]:
    """Move the last assert of each problem's tests to meta["held_back"]; less than three: left out."""
    return [held for problem in problems if (held := _hold_back(problem)) is not None]


def _hold_back(problem: Example) -> Example | None:
    statements = ast.parse(problem.tests or "").body
    asserts = [statement for statement in statements if isinstance(statement, ast.Assert)]
    if len(asserts) < 3:
        return None
    others = [statement for statement in statements if not isinstance(statement, ast.Assert)]
    shown, held = ("\n".join(map(ast.unparse, [*others, *part])) for part in (asserts[:-1], asserts[-1:]))
    return problem.model_copy(update={"tests": shown, "meta": problem.meta | {"held_back": held}})


def held_back_passed(examples: Sequence[Example]) -> list[float]:
    """Return 1 for each answer whose program passes the test that was held back, else 0."""
    tested = [example.model_copy(update={"tests": example.meta["held_back"]}) for example in examples]
    return [float(bool(passed)) for passed in critic().passes_tests(tested)]
