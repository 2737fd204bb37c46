"""Degenerate programs: nothing to run, constants, copies of the tests, dead code."""

from __future__ import annotations

import ast
import builtins
import re

from text2grad.align.answer.program import extract_program, parse_python
from text2grad.critics.check.kinds import Kind, Task

PROSE = (
    "To solve this problem, we go through the input step by step, keep track of what we have seen so far, and return "
    "the result at the end. This takes linear time."
)
CONSTANTS = ("0", "1", "True", "False", "''", "[]")
NUM_DEAD_BRANCHES = 8
_FUNCTION = re.compile(r"^(?:async )?def (\w+)", re.M)
_DOCTEST = re.compile(r"^\s*>>> .+\n\s*(\S.*)$", re.M)


def entry_point(task: Task) -> str:
    """Return the name of the function that the tests call, as far as prompt, tests and reference tell."""
    named = task.example.meta.get("entry_point")
    if isinstance(named, str) and named.isidentifier():
        return named
    calls = re.findall(r"^\s*check\((\w+)\)", task.example.tests or "", re.M) + _called_names(task.example.tests or "")
    defined = _FUNCTION.findall(task.prompt) + [name for text in task.references for name in _FUNCTION.findall(text)]
    return next((name for name in reversed(defined) if name in calls), "") or (calls or defined or ["solution"])[0]


def _called_names(tests: str) -> list[str]:
    """Return the functions that the tests call and neither define nor import."""
    nodes = list(ast.walk(parse_python(tests) or ast.Module([], [])))
    known = {*dir(builtins), *(node.name for node in nodes if isinstance(node, ast.FunctionDef | ast.ClassDef))}
    known |= {(a.asname or a.name) for n in nodes if isinstance(n, ast.Import | ast.ImportFrom) for a in n.names}
    known |= {node.arg for node in nodes if isinstance(node, ast.arg)}
    calls = [node.func.id for node in nodes if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)]
    return [name for name in dict.fromkeys(calls) if name not in known]


def shown_results(prompt: str) -> list[str]:
    """Return the expected values of the tests that the prompt shows: right sides of asserts, and of doctests."""
    found = []
    for line in re.findall(r"^\s*(assert .+)$", prompt, re.M):
        statement = next(iter(getattr(parse_python(line.strip()), "body", [])), None)
        test = statement.test if isinstance(statement, ast.Assert) else None
        if isinstance(test, ast.Compare) and len(test.ops) == 1 and isinstance(test.ops[0], ast.Eq):
            found.append(ast.unparse(test.comparators[0]))
    found += [value.strip() for value in _DOCTEST.findall(prompt) if parse_python(value.strip())]
    return list(dict.fromkeys(found))


def _function(task: Task, body: str) -> str:
    return f"```python\ndef {entry_point(task)}(*args, **kwargs):\n    {body}\n```"


def _asserts(task: Task) -> list[str]:
    return re.findall(r"^\s*(assert .+)$", task.example.tests or "", re.M)


def _copied_tests(task: Task) -> list[str]:
    asserts = "\n".join(_asserts(task))
    return [f"```python\n{asserts}\n```", _function(task, "pass").removesuffix("```") + f"\n{asserts}\n```"]


def _commented_reference(task: Task) -> list[str]:
    program = task.references[0] if task.references else f"def {entry_point(task)}(x):\n    return x"
    commented = "\n".join(f"# {line}" for line in program.splitlines())
    return [f"```python\n{commented}\n```", f'```python\n"""\n{program}\n"""\n```']


def dead_branches(program: str) -> str | None:
    """Return the program with conditions that never hold at the start of each function; None if it does not parse."""
    module = parse_python(program)
    functions = [n for n in ast.walk(module) if isinstance(n, ast.FunctionDef)] if module else []
    if module is None or not functions:
        return None
    for function in functions:
        dead = [ast.parse(f"if {i} == {i + 1}:\n    unused_{i} = {i}").body[0] for i in range(NUM_DEAD_BRANCHES)]
        function.body[:0] = dead
    return ast.unparse(ast.fix_missing_locations(module))


def _dead_branches(task: Task) -> list[str]:
    names = frozenset({entry_point(task)})
    program = extract_program(task.honest, task.prompt, names) if task.honest else None
    padded = dead_branches(program.source) if program else None
    return [f"```python\n{padded}\n```"] if padded else []


def _dead_stub(task: Task) -> list[str]:
    program = dead_branches(f"def {entry_point(task)}(*args, **kwargs):\n    return None")
    return [f"```python\n{program}\n```"]


def _only_code(kind: Kind) -> Kind:
    """Restrict a kind to tasks with tests."""
    return kind._replace(make=lambda task: kind.make(task) if task.is_code else [])


CODE_KINDS = tuple(
    map(
        _only_code,
        (
            Kind("bare fence", "a code fence without code", lambda task: ["```python\n```", "```python\n\n```\n"]),
            Kind("no code", "prose about the solution", lambda task: [PROSE]),
            Kind("pass", "def f(*args): pass", lambda task: [_function(task, "pass")]),
            Kind("raise", "def f(*args): raise", lambda task: [_function(task, "raise NotImplementedError")]),
            Kind("argument", "returns its first argument", lambda task: [_function(task, "return args[0]")]),
            *(
                Kind(f"returns {constant}", "a constant", lambda task, c=constant: [_function(task, f"return {c}")])  # type: ignore[misc]
                for constant in CONSTANTS
            ),
            Kind(
                "shown constant",
                "the result of a test that the prompt shows",
                lambda task: [_function(task, f"return {value}") for value in shown_results(task.prompt)[:1]],
            ),
            Kind("dead stub", "conditions that never hold, and no result", _dead_stub),
            Kind("comment", "the reference in a comment or in a string", _commented_reference),
            Kind("tests copied", "the asserts of the tests", _copied_tests),
            Kind("assert True", "a test that always passes", lambda task: ["```python\nassert True\n```"]),
            Kind(
                "dead branches",
                "an honest program with conditions that never hold",
                _dead_branches,
                spoils_honest=True,
            ),
        ),
    )
)
