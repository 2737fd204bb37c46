"""The judge: evaluates the tests, with stand-ins for what the answer defines, and writes the report.

Standard input has the payload as JSON (`runner.make_payload`); standard output gets one line, the report as JSON.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]
import builtins
import json
import mmap
import os
import sys

from text2grad.critics.code.judging.answer import LINE_HEADER
from text2grad.critics.code.judging.confine import prepare_filter, protect
from text2grad.critics.code.judging.probes import MIN_PROBES, variants
from text2grad.critics.code.judging.remote import set_label
from text2grad.critics.code.judging.session import AnswerEnded, Call, Session, Unsupported
from text2grad.critics.code.judging.show import show
from text2grad.critics.code.judging.starter import Starter, preload

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Case = dict[str, Any]
    Result = dict[str, Any]

_MAP_SIZE = 1 << 16  # bytes: the last line, and one byte per line of the program
_JUDGE_SECONDS = 2.0  # of processor time that the code of one test may use, beside the answer's
_LATER_SECONDS = 0.25  # that a test may use after another one did not end, and a probe
_MAX_FAILURES = 2
_MAX_PROBED_CASES = 3
_LIMITS = {"timeout": "timeout", "idle": "timeout", "steps": "timeout", "died": "died"}


class _TestTimeout(BaseException):
    """The code of a test used up its processor time."""


def main() -> None:
    """Read the payload, run its cases and write the report."""
    out = os.dup(1)
    os.dup2(os.open(os.devnull, os.O_RDWR), 1)
    os.dup2(1, 2)
    sys.path[:] = [
        path for path in sys.path if path and os.path.abspath(path) != os.getcwd()
    ]  # the answer writes there
    try:
        protect()
        prepare_filter()
        lines = mmap.mmap(-1, _MAP_SIZE)
        starter = Starter(lines)  # before this process knows the tests
    except OSError as error:
        report: dict[str, Any] = {"error": f"the answer's process cannot be confined: {error}"}
    else:
        payload = json.load(sys.stdin)
        os.dup2(1, 0)
        report = _Judge(payload, starter, lines).report()
    message = memoryview((json.dumps(report) + "\n").encode())
    while message:
        message = message[os.write(out, message) :]
    os._exit(0)


class _Judge:
    def __init__(self, payload: dict[str, Any], starter: Starter, lines: mmap.mmap) -> None:
        self.payload, self.starter, self.lines = payload, starter, lines
        self.cpu_seconds = 0.0
        self.calls: list[Call] = []  # in cases that count
        self.shown: list[Any] = []  # arguments of calls in cases that the prompt shows
        builtins.input = _no_input
        _signal.signal(_signal.SIGPROF, _raise_timeout)

    def report(self) -> dict[str, Any]:
        names = ("source", "names", "imports", "preload", "readable")
        error = self.starter.configure({name: self.payload[name] for name in names})
        if error is not None:
            return {"invalid_syntax": error}
        preload(self.payload["preload_tests"])
        results: list[Result] = []
        failures = 0  # processes that had to be stopped, or stopped themselves
        for case in self.payload["cases"]:
            last = results[-1] if results else {}
            if last.get("phase") == "import":
                results.append(last)
                continue
            left = self.payload["total_seconds"] - self.cpu_seconds
            if failures >= _MAX_FAILURES or left <= 0:
                results.append({"status": "not_run"})
                continue
            results.append(self._run(case, left, has_failed=bool(failures)))
            if "invalid" in results[-1] or "unsupported" in results[-1]:
                return {name: results[-1][name] for name in ("invalid", "unsupported") if name in results[-1]}
            failures += results[-1]["status"] in ("timeout", "died")
        return {"results": results, "is_constant": self._is_constant()}

    def _run(self, case: Case, left: float, has_failed: bool) -> Result:
        """Run a case with every line traced, and without tracing if that takes too many steps."""
        seconds = min(_LATER_SECONDS if has_failed else self.payload["test_seconds"], left)
        traced = self._attempt(case, seconds, tracing=True)
        if traced.pop("reason", None) != "steps" or has_failed:
            return traced
        plain = self._attempt(case, seconds, tracing=False)
        plain.pop("reason", None)
        return {**plain, "executed_lines": traced["executed_lines"], "last_line": traced["last_line"]}

    def _attempt(self, case: Case, seconds: float, tracing: bool) -> Result:
        self.lines[:] = bytes(_MAP_SIZE)
        pid, fd = self.starter.start(tracing)
        session = Session(fd, pid, seconds)
        result = self._evaluate(case, session)
        if case["is_shown"]:
            self.shown += [call.args for call in session.calls]
        if case["is_counted"] and session.ended is None:
            self.calls += session.calls
        session.close()
        usage = self.starter.stop()
        self.cpu_seconds += usage["cpu_seconds"]
        if session.ended == "invalid":
            return {"invalid": session.invalid}
        if session.unsupported is not None:
            return {"unsupported": session.unsupported}
        if session.ended is not None:  # whatever the test made of it
            result = {"status": _LIMITS[session.ended], "reason": session.ended}
            if session.ended == "died":
                result["exit_code"] = usage["exit_code"] if usage["exit_code"] != -_signal.SIGKILL else None
        num_lines = min(self.payload["num_lines"], _MAP_SIZE - LINE_HEADER - 1)
        executed = self.lines[LINE_HEADER : LINE_HEADER + num_lines + 1]
        last = int.from_bytes(self.lines[:LINE_HEADER], "little")
        result["executed_lines"] = [line for line in range(1, num_lines + 1) if executed[line]]
        result["last_line"] = last if last <= num_lines else 0
        result["num_calls"] = session.num_requests
        result["forbidden"] = session.forbidden
        return result

    def _evaluate(self, case: Case, session: Session) -> Result:
        phase = "import"
        names: dict[str, Any] = {"__name__": "tests", "__builtins__": builtins}
        _signal.setitimer(_signal.ITIMER_PROF, _JUDGE_SECONDS)
        try:
            found = session.load()
            phase = "setup"
            names |= {name: found[name] for name in self.payload["names"] if name in found}
            names |= {name: __import__(module) for name, module in self.payload["modules"].items()}
            for name in found:
                set_label(found[name], name)
            _provide_answer_module(session)
            exec(compile(self.payload["setup"], "<tests>", "exec"), names)
            exec(compile(case["setup"], "<tests>", "exec"), names)
            phase = "test"
            return _check_case(case, names)
        except _TestTimeout:
            return {"status": "timeout"}
        except BaseException as error:  # also SystemExit, KeyboardInterrupt, and what ends a session
            return _describe(error, phase, session.description(error))
        finally:
            _signal.setitimer(_signal.ITIMER_PROF, 0)

    def _is_constant(self) -> bool:
        """Whether the answer does the same whatever its arguments are.

        That is so if its calls in the tests that count all did the same, and if they still do so with other arguments.
        Where the prompt shows all tests, a program can list their results: then only other arguments tell.
        """
        behaviours = {call.behaviour for call in self.calls if call.args[1] and not call.raised}
        if not behaviours or (len(behaviours) > 1 and not self.payload["all_shown"]):
            return False
        if self.payload["all_shown"]:
            behaviours = set()
        num_probes = 0
        for case in [case for case in self.payload["cases"] if case["is_counted"]][:_MAX_PROBED_CASES]:
            for behaviour in self._probe(case):
                num_probes += 1
                behaviours.add(behaviour)
                if len(behaviours) > 1:
                    return False
        return num_probes >= MIN_PROBES

    def _probe(self, case: Case) -> list[str]:
        """Repeat the calls of a case with other arguments; return what they do."""
        pid, fd = self.starter.start(tracing=False)
        session = Session(fd, pid, _LATER_SECONDS)
        self._evaluate(case, session)
        found = []
        try:
            for call in list(session.calls[:2]):
                arguments = session.plain_arguments(call)
                for variant in variants(arguments) if arguments else []:
                    probe = session.probe(call, variant)
                    found += [probe.behaviour] if probe.args not in self.shown else []
        except (AnswerEnded, Unsupported):
            found.append("ended")
        session.close()
        self.starter.stop()
        return found


def _check_case(case: Case, names: dict[str, Any]) -> Result:
    if case["left"] is None:
        exec(compile(case["source"], "<tests>", "exec"), names)
        return {"status": "passed"}
    if case["right_first"]:  # before the answer can change what it depends on
        expected = eval(compile(case["right"], "<tests>", "eval"), names)
    actual = eval(compile(case["left"], "<tests>", "eval"), names)
    if case["operator"] in ("truthy", "falsy"):
        holds = bool(actual) is (case["operator"] == "truthy")
        return {"status": "passed"} if holds else {"status": "failed", "actual": show(actual)}
    if not case["right_first"]:
        expected = eval(compile(case["right"], "<tests>", "eval"), names)
    holds = eval(f"_actual {case['operator']} _expected", {"_actual": actual, "_expected": expected})
    if holds:
        return {"status": "passed"}
    return {"status": "failed", "actual": show(actual), "expected": show(expected)}


def _describe(error: BaseException, phase: str, remote: dict[str, Any] | None) -> Result:
    """Describe an exception; `remote` is what the answer's process said about it, if it came from there."""
    failed = isinstance(error, AssertionError) and remote is None
    name = getattr(error, "name", None) if isinstance(error, ImportError | NameError | AttributeError) else None
    traceback = _extents(remote["traceback"]) if remote else []
    if remote:
        name = remote["missing_name"]
    return {
        "status": "failed" if failed else "raised",
        "phase": phase,
        "is_answers": remote is not None,
        "exception": type(error).__name__,
        "exception_bases": [base.__name__ for base in type(error).__mro__],
        "message": show(remote["message"] if remote else error, str),
        "missing_name": name[:200] if type(name) is str else None,
        "traceback": traceback,
    }


def _extents(data: Any) -> list[list[int]]:
    """Return the extents that the answer's process reported, without those that are none."""
    rows = data if type(data) is list else []
    limit = 1 << 20
    return [
        row
        for row in rows[:20]
        if type(row) is list and len(row) == 4 and all(type(item) is int and 0 <= item < limit for item in row)
    ]


def _provide_answer_module(session: Session) -> None:
    """Make `import answer` in the tests give the program's names."""

    def get(name: str) -> Any:
        if name.startswith("__"):  # the import system asks for its own attributes
            raise AttributeError(name)
        return session.name(name)

    module = type(sys)("answer")
    module.__getattr__ = get  # type: ignore[method-assign]
    sys.modules["answer"] = module


def _raise_timeout(number: int, frame: object) -> None:
    raise _TestTimeout


def _no_input(*_: object) -> str:
    raise EOFError("there is no input")
