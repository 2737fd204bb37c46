"""The critic itself: answers in, what their tests say about them out."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from text2grad.align.program import Program, extract_program
from text2grad.critics.code.cases import Suite, read_tests
from text2grad.critics.code.execution import Result, Trial, try_all
from text2grad.critics.code.review import review, score
from text2grad.sandbox import ResourceLimits, Sandbox, SandboxError
from text2grad.schema import Example, Feedback, Omission

_FUNCTION = re.compile(r"^(?:async )?def (\w+)", re.M)


@dataclass(frozen=True)
class _Job:
    example: Example
    answer: Program
    suite: Suite


class CodeCritic:
    """Runs the code of an answer against the example's tests and writes a review of it.

    `tests` is a script: asserts, a function `check(candidate)`, functions `test_...()`, or anything that raises when
    the answer is wrong. `meta["entry_point"]` names the function to check where the script does not. The score is
    2 * passed / tests - 1. An example without tests, or whose tests cannot run, is failed feedback.

    `seconds` is the processor time of one test, `budget` the time of all tests of one answer, `max_share` how many
    of an answer's statements may be blamed (at least one).
    """

    name = "code"

    def __init__(
        self,
        *,
        seconds: float = 3.0,
        budget: float = 15.0,
        max_share: float = 0.3,
        sandbox: Sandbox | None = None,
        unsafe: bool = False,
    ) -> None:
        self.seconds, self.budget, self.max_share = seconds, budget, max_share
        self.sandbox = sandbox or Sandbox(unsafe=unsafe)

    def critique(self, examples: Sequence[Example]) -> list[Feedback]:
        """One Feedback for each example, in order."""
        prepared = [self._prepare(example) for example in examples]
        jobs = [job for job in prepared if isinstance(job, _Job)]
        limits = ResourceLimits(wall_seconds=2 * self.budget + 5, cpu_seconds=2 * self.budget + 5)
        sources = ((job.answer.source, job.suite) for job in jobs)
        trials = try_all(sources, self.sandbox, self.seconds, self.budget, limits)
        return [item if isinstance(item, Feedback) else self._feedback(item, next(trials)) for item in prepared]

    def _prepare(self, example: Example) -> _Job | Feedback:
        if not example.tests or not example.tests.strip():
            return Feedback.failure(self.name, "the example has no tests")
        prompt = example.prompt if isinstance(example.prompt, str) else ""
        suite = read_tests(example.tests, example.meta.get("entry_point") or _last_function(prompt, example.completion))
        if suite is None:
            return Feedback.failure(self.name, "the example's tests are not valid Python, or need a test runner")
        answer = extract_program(example.completion, prompt, suite.wanted)
        if answer is None:
            words = "The answer has no code in it"
            omission = Omission(text="code", phrase=(0, len(words)))
            return Feedback(critique=f"{words}.", omissions=[omission], score=-1.0, critic=self.name)
        return _Job(example, answer, suite)

    def _feedback(self, job: _Job, trial: Trial | SandboxError) -> Feedback:
        if isinstance(trial, SandboxError):
            return Feedback.failure(self.name, str(trial))
        broken = next((result for result in trial.results if _tests_are_broken(result)), None)
        if broken is not None and broken.name not in job.suite.wanted:
            error = f"the example's tests cannot run: {broken.kind}: {broken.message}"
            return Feedback.failure(self.name, error)
        text = review(job.answer, job.example.completion, trial, job.suite.wanted, self.max_share)
        return Feedback(
            critique=text.text, spans=text.spans, omissions=text.omissions, score=score(trial), critic=self.name
        )


def _tests_are_broken(result: Result) -> bool:
    """Set-up fails before the answer is called, unless it calls the answer itself, or asserts something about it."""
    return result.phase == "setup" and not result.places and result.kind != "AssertionError"


def _last_function(prompt: str, completion: str) -> str | None:
    """The function that a prompt leaves to be written, else the last one of the answer."""
    names = _FUNCTION.findall(prompt) or _FUNCTION.findall(completion)
    return names[-1] if names else None
