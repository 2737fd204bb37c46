"""Programs that need no insight: those that return one constant or an argument, or repeat what the prompt shows."""

from __future__ import annotations

import ast

from text2grad.align.answer.program import parse_python
from text2grad.critics.code.cases import Case, Suite

_MIN_NUMBER = 20  # smaller ones are in many programs
_MIN_LENGTH = 3
_VARIABLE = (ast.Name, ast.Call, ast.Attribute)


def returns_argument(source: str, names: frozenset[str]) -> bool:
    """Whether all that a function of these names does is to return an argument, or an item of `*args`."""
    return any(_is_argument(function.body[-1], function.body[:-1]) for function in _functions(source, names))


def _is_argument(last: ast.stmt, before: list[ast.stmt]) -> bool:
    """Whether the last statement returns a variable and the others, docstrings and tests of constants, do nothing."""
    value = last.value if isinstance(last, ast.Return) else None
    value = value.value if isinstance(value, ast.Subscript) and isinstance(value.slice, ast.Constant) else value
    return isinstance(value, ast.Name) and all(_does_nothing(statement) for statement in before)


def _does_nothing(statement: ast.stmt) -> bool:
    if isinstance(statement, ast.Expr):
        return not _has_variable(statement.value)
    return isinstance(statement, ast.If | ast.Assert) and not _has_variable(statement.test)


def _has_variable(expression: ast.expr) -> bool:
    return any(isinstance(part, _VARIABLE) for part in ast.walk(expression))


def returns_one_constant(source: str, names: frozenset[str]) -> bool:
    """Whether the functions of these names have no `return`, or all of theirs give the same constant."""
    functions = _functions(source, names)
    nodes = [node for function in functions for node in ast.walk(function)]
    if not functions or any(isinstance(node, ast.Yield | ast.YieldFrom) for node in nodes):
        return False
    values = [node.value for node in nodes if isinstance(node, ast.Return)]
    is_constant = all(
        value is None or not any(isinstance(part, _VARIABLE) for part in ast.walk(value)) for value in values
    )
    return is_constant and len({value and ast.unparse(value) for value in values}) <= 1


def _functions(source: str, names: frozenset[str]) -> list[ast.FunctionDef | ast.AsyncFunctionDef]:
    return [
        node
        for node in ast.walk(parse_python(source) or ast.Module([], []))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name in names
    ]


def repeats_shown_test(source: str, suite: Suite) -> bool:
    """Whether the program has the arguments of tests that the prompt shows among its constants.

    All of them, or those of one that has a long text or a large number.
    """
    constants = _constants(parse_python(source))
    cases = [_arguments(case) for case in suite.cases if case.is_shown]
    if len(cases) > 1 and all(shown and shown <= constants for shown in cases):
        return True
    return any(_is_telling(shown) and shown <= constants for shown in cases)


def _arguments(case: Case) -> set[object]:
    return _constants(parse_python(case.left or case.source))


def _constants(tree: ast.AST | None) -> set[object]:
    return {node.value for node in ast.walk(tree or ast.Module([], [])) if isinstance(node, ast.Constant)}


def _is_telling(constants: set[object]) -> bool:
    texts = [one for one in constants if isinstance(one, str | bytes) and len(one) >= _MIN_LENGTH]
    numbers = [one for one in constants if isinstance(one, int | float) and abs(one) >= _MIN_NUMBER]
    return bool(texts or numbers)
