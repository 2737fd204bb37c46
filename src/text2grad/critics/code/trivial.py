"""Programs that need no insight: those that return one constant, and those that repeat what the prompt shows."""

from __future__ import annotations

import ast

from text2grad.align.program import parse_python
from text2grad.critics.code.cases import Case, Suite

_MIN_NUMBER = 20  # smaller ones are in many programs
_MIN_LENGTH = 3
_VARIABLE = (ast.Name, ast.Call, ast.Attribute)


def returns_one_constant(source: str, names: frozenset[str]) -> bool:
    """Whether the functions of these names have no `return`, or all of theirs give the same constant."""
    module = parse_python(source)
    functions = [
        node
        for node in ast.walk(module or ast.Module([], []))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name in names
    ]
    nodes = [node for function in functions for node in ast.walk(function)]
    if not functions or any(isinstance(node, ast.Yield | ast.YieldFrom) for node in nodes):
        return False
    values = [node.value for node in nodes if isinstance(node, ast.Return)]
    is_constant = all(
        value is None or not any(isinstance(part, _VARIABLE) for part in ast.walk(value)) for value in values
    )
    return is_constant and len({value and ast.unparse(value) for value in values}) <= 1


def repeats_shown_test(source: str, suite: Suite) -> bool:
    """Whether the program has the arguments of a test that the prompt shows among its constants."""
    constants = _constants(parse_python(source))
    return any(case.is_shown and _is_telling(shown := _arguments(case)) and shown <= constants for case in suite.cases)


def _arguments(case: Case) -> set[object]:
    return _constants(parse_python(case.left or case.source))


def _constants(tree: ast.AST | None) -> set[object]:
    return {node.value for node in ast.walk(tree or ast.Module([], [])) if isinstance(node, ast.Constant)}


def _is_telling(constants: set[object]) -> bool:
    texts = [one for one in constants if isinstance(one, str | bytes) and len(one) >= _MIN_LENGTH]
    numbers = [one for one in constants if isinstance(one, int | float) and abs(one) >= _MIN_NUMBER]
    return bool(texts or numbers)
