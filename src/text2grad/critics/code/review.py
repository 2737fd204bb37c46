"""What a reviewer writes after running the tests: what failed, how, and where the fault is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import groupby

from text2grad.align.program import Program, find_calls, find_statements, innermost_loop, top_level_names
from text2grad.critics.code.execution import Mistake, ParserPlace, Place, Result, Trial
from text2grad.critics.code.spectrum import suspicions
from text2grad.critics.code.writing import Critique, ticked

_SHOWN_CASES = 3
_LOCALISED = 0.6  # how often a line that only its spectrum speaks against is one that a person would change
_DRASTIC = frozenset({"kill", "killpg", "fork", "forkpty", "abort", "system", "Popen", "Process"})
_LIMITS = {
    "memory": "The answer uses more memory than it may have",
    "cpu": "The answer uses more processor time than it may have",
    "time": "The answer does not finish in the time that it may have",
    "output": "The answer prints more than it may",
    "crash": "The answer brings down the program that tests it",
}


def review(answer: Program, completion: str, trial: Trial, wanted: frozenset[str], share: float) -> Critique:
    """The critique of an answer that ran, or that could not. At most `share` of its lines are blamed, at least one."""
    text = Critique(answer, completion)
    if trial.mistake:
        _syntax(text, answer, trial.mistake)
    elif trial.ended:
        _ended(text, answer, trial.ended)
    else:
        _Review(text, answer, trial.results, wanted, share).write()
    text.text = text.text.rstrip()
    return text


def score(trial: Trial) -> float:
    """-1 if no test passes, 1 if all do, in proportion between."""
    if not trial.results:
        return -1.0
    return 2 * sum(result.passed for result in trial.results) / len(trial.results) - 1


def _sentence(text: Critique, words: str) -> None:
    begin = len(text.text)
    text.say(words)
    text.end_sentence(begin)


def _ended(text: Critique, answer: Program, limit: str) -> None:
    """Whole test runs end by what the answer does to processes; which call that was is seen in its text alone."""
    begin = len(text.text)
    text.say(_LIMITS[limit])
    for number, place in enumerate(find_calls(answer, _DRASTIC)):
        span = answer.span(*place)
        text.say("; look at " if number == 0 else " and ")
        text.point(text.line(place[0], span), span, "poor")
    text.end_sentence(begin)


def _syntax(text: Critique, answer: Program, mistake: Mistake) -> None:
    begin = len(text.text)
    text.say(f"The answer is not valid Python: {mistake.message.rstrip('.')}")
    place = mistake.place
    if place and place[0]:
        span = _parser_span(answer, place) or _last_line_before(answer, place[0])
        text.say(" in ")
        text.point(text.line(place[0], span), span, "poor")
    text.end_sentence(begin)


def _parser_span(answer: Program, place: ParserPlace) -> tuple[int, int] | None:
    """What the parser points at, if that is more than one character; else the whole line."""
    line, column, end_line, end_column = place
    whole = answer.line_span(line or 1)
    if line is None or not column or end_line != line or not end_column or end_column - column < 2 or whole is None:
        return whole
    text = answer.source.splitlines()[line - 1]
    bounds = (len(text[: column - 1].encode()), len(text[: end_column - 1].encode()))
    return answer.span(line, bounds[0], line, bounds[1]) or whole


def _last_line_before(answer: Program, line: int) -> tuple[int, int] | None:
    """A mistake at the end of the file shows where nothing is written: the last thing written is to blame."""
    spans = (answer.line_span(earlier) for earlier in range(line, 0, -1))
    return next((span for span in spans if span), None)


class _Review:
    """The sentences, in their order; each group of cases that fail alike gets one."""

    def __init__(
        self, text: Critique, answer: Program, results: Sequence[Result], wanted: frozenset[str], share: float
    ) -> None:
        self.text, self.answer, self.results, self.wanted = text, answer, results, wanted
        self.failing = [result for result in results if not result.passed]
        self.passing = [result for result in results if result.passed]
        self.statements = find_statements(answer)
        self.budget = max(1, int(share * len(self.statements)))

    def write(self) -> None:
        self._summary()
        self._forbidden()
        for alike in self._groups()[:_SHOWN_CASES]:
            begin = len(self.text.text)
            self._failure(alike[0])
            if len(alike) > 1:
                self.text.say(f"; {len(alike) - 1} more fail{'s' if len(alike) == 2 else ''} alike")
            self.text.end_sentence(begin)
        more = self._groups()[_SHOWN_CASES:]
        if more:
            count = sum(map(len, more))
            _sentence(self.text, f"{count} more test{'s fail' if count > 1 else ' fails'}")
        self._suspects()
        self._praise()

    def _summary(self) -> None:
        passed, total = len(self.passing), len(self.results)
        if not self.failing:
            words = "The test passes" if total == 1 else f"All {total} tests pass"
        elif not passed:
            words = "The test fails" if total == 1 else f"None of the {total} tests passes"
        else:
            words = f"{passed} of {total} tests pass{'es' if passed == 1 else ''}"
        _sentence(self.text, words)

    def _groups(self) -> list[list[Result]]:
        """Failing cases that fail alike: the same exception at the same place; wrong values are each their own."""

        def key(result: Result) -> tuple[object, ...]:
            if result.verdict == "failed":
                return ("failed", result.case.source)
            return (result.verdict, result.kind, result.places[-1:], result.stack[:1], result.verdict)

        order: dict[tuple[object, ...], int] = {}
        for number, result in enumerate(self.failing):
            order.setdefault(key(result), number)
        ranked = sorted(self.failing, key=lambda result: order[key(result)])
        return [list(alike) for _, alike in groupby(ranked, key)]

    def _forbidden(self) -> None:
        found = dict.fromkeys(result.forbidden for result in self.results if result.forbidden)
        for what, line in found:
            begin = len(self.text.text)
            self.text.say(f"The answer {what}, which is forbidden here, in ")
            self._blame(line)
            self.text.end_sentence(begin)

    def _failure(self, result: Result) -> None:
        call = ticked(result.case.left or result.case.source)
        if result.verdict == "failed":
            self._wrong_value(result, call)
        elif result.verdict == "timeout":
            self._timeout(result, call)
        elif result.verdict == "vanished":
            self._vanished(result, call)
        elif result.verdict == "not run":
            self.text.say(f"{call} was not tried, because the time was used up")
        else:
            self._raised(result, "Loading the answer" if result.phase == "import" else call)

    def _wrong_value(self, result: Result, call: str) -> None:
        operator, got, expected = result.case.operator, result.got, result.expected
        if got is None:
            said = f" ({result.message})" if result.message else ""
            self.text.say(f"The test {ticked(result.case.source)} fails{said}")
        elif operator == "==":
            self.text.say(f"{call} should be {ticked(expected or '')} but is {ticked(got)}")
        elif operator in ("truthy", "falsy"):
            self.text.say(f"{call} should be {'true' if operator == 'truthy' else 'false'} but is {ticked(got)}")
        else:
            self.text.say(f"{call} should be {operator} {ticked(expected or '')} but is {ticked(got)}")

    def _timeout(self, result: Result, call: str) -> None:
        line = next(iter(result.stack), result.last)
        loop = innermost_loop(self.answer, line) if line else None
        if loop and loop.line >= self.answer.first_line:
            self.text.say(f"{call} does not end: it keeps running in the loop of ")
            self._blame(loop.line, loop.extent())
        else:
            self.text.say(f"{call} does not finish in time")
            if line:
                self.text.say("; it is still busy in ")
                self._blame(line)

    def _vanished(self, result: Result, call: str) -> None:
        crashed = result.status is not None and result.status < 0
        what = f"crashes the interpreter (signal {-(result.status or 0)})" if crashed else "ends the whole process"
        self.text.say(f"{call} {what}")
        if result.last:
            self.text.say(" in ")
            self._blame(result.last)

    def _raised(self, result: Result, what: str) -> None:
        family = set(result.family)
        if "NameError" in family and not result.places and result.name in self.wanted:
            self._not_defined(result.name or "")
        elif "TypeError" in family and not result.places:
            self._cannot_be_called(result, what)
        elif "ModuleNotFoundError" in family and result.name:
            self.text.say(f"The answer imports {ticked(result.name)}, which is not installed, in ")
            self._blame_place(result)
        elif "SystemExit" in family:
            code = f" with exit code {result.message}" if result.message not in ("", "None") else ""
            self.text.say(f"{what} ends the program{code} instead of giving a result, in ")
            self._blame_place(result)
        elif "RecursionError" in family:
            self.text.say(f"{what} calls itself without end (RecursionError) in ")
            self._blame_place(result)
        elif "MemoryError" in family:
            self.text.say(f"{what} needs more memory than it may have (MemoryError) in ")
            self._blame_place(result)
        else:
            said = f" ({result.message.rstrip('.')})" if result.message else ""
            self.text.say(f"{what} raises {result.kind}{said}")
            if result.places:
                self.text.say(" in ")
                self._blame_place(result)

    def _not_defined(self, name: str) -> None:
        self.text.omit(f"The tests use {ticked(name)}, which the answer does not define", f"a definition of {name}")
        functions = [
            statement for statement in self.statements.values() if getattr(statement.node, "name", None) is not None
        ]
        outer = [statement for statement in functions if statement.node.col_offset == 0]
        if len(outer) == 1 and top_level_names(self.answer.source):
            self.text.say("; it has only ")
            self._blame(outer[0].line)

    def _cannot_be_called(self, result: Result, call: str) -> None:
        self.text.say(f"{call} cannot be evaluated ({result.message.rstrip('.')})")
        named = [
            statement
            for statement in self.statements.values()
            if f"{getattr(statement.node, 'name', None)}()" in result.message
        ]
        if named:
            self.text.say("; it is defined in ")
            self._blame(named[0].line)

    def _blame_place(self, result: Result) -> None:
        """The expression in which it was raised; where the prompt's part raised it, nothing of the answer."""
        own = [place for place in result.places if place[0] >= self.answer.first_line]
        if own:
            place = Counter(own).most_common(1)[0][0] if "RecursionError" in result.family else own[-1]
            self._blame(place[0], place)
        else:
            self.text.say("code that is not the answer's own")

    def _blame(self, line: int, place: Place | None = None) -> None:
        span = self.answer.span(*place) if place else None
        if line >= self.answer.first_line:
            span = span or self.answer.line_span(line)
        room = sum(span.label == "poor" for span in self.text.spans) < self.budget
        self.text.point(self.text.line(line, span), span if room else None, "poor")

    def _suspects(self) -> None:
        """For wrong values: the most suspicious lines, as far as the share of lines to blame allows."""
        wrong = [result for result in self.failing if result.verdict == "failed"]
        room = self.budget - sum(span.label == "poor" for span in self.text.spans)
        if not wrong or room <= 0:
            return
        ranked = suspicions(
            [result.lines for result in wrong], [result.lines for result in self.passing], self.statements
        )
        chosen = list(ranked.items())[:room]
        begin = len(self.text.text)
        for number, (line, suspicion) in enumerate(chosen):
            span = self.answer.span(*self.statements[line].extent())
            self.text.say("The fault is most likely in " if number == 0 else ", or in ")
            self.text.point(self.text.line(line, span), span, "poor", round(suspicion, 3), _LOCALISED)
        if chosen:
            self.text.end_sentence(begin)

    def _praise(self) -> None:
        """What every passing test ran, and no failing one; without failing tests that is what works."""
        if not self.passing:
            return
        shared = frozenset.intersection(*(result.lines for result in self.passing))
        doubted = frozenset().union(*(result.lines for result in self.failing))
        lines = sorted((shared - doubted) & self.statements.keys())
        for run in _runs(lines, list(self.statements)):
            begin = len(self.text.text)
            first, last = self.statements[run[0]].extent(), self.statements[run[-1]].extent()
            numbers = sorted({self.answer.line_number(line) for line in (run[0], run[-1])})
            words = f"Line {numbers[0]}" if len(numbers) == 1 else f"Lines {numbers[0]} to {numbers[-1]}"
            self.text.point(words, self.answer.span(*first[:2], *last[2:]), "good", 0.5 if self.failing else 1.0)
            self.text.say(" ran in every test that passes")
            self.text.end_sentence(begin)


def _runs(chosen: Sequence[int], lines: Sequence[int]) -> list[list[int]]:
    """Chosen lines that stand next to each other among all lines, together."""
    runs: list[list[int]] = []
    for line in chosen:
        if runs and lines.index(runs[-1][-1]) + 1 == lines.index(line):
            runs[-1].append(line)
        else:
            runs.append([line])
    return runs
