"""The statements of a program, line by line: what each one's own line holds, and how much there is to get wrong."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from text2grad.align.program import Answer, tree

_KEYWORDS = {ast.FunctionDef: "def", ast.AsyncFunctionDef: "async def", ast.ClassDef: "class"}
_TRY = len("try")
_NO_PART_OF_IT = (ast.stmt, ast.excepthandler, ast.match_case, ast.expr_context)


@dataclass(frozen=True)
class Statement:
    """A statement without the statements inside it: an `if` is its condition, a `for` its header."""

    node: ast.stmt
    size: int  # nodes of the syntax tree

    @property
    def line(self) -> int:
        return self.node.lineno

    def place(self) -> tuple[int, int, int, int]:
        """Line, UTF-8 column, end line, end column of the statement's own part."""
        node = self.node
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):  # its name is enough
            header = f"{_KEYWORDS[type(node)]} {node.name}"
            return (node.lineno, node.col_offset, node.lineno, node.col_offset + len(header.encode()))
        return (node.lineno, node.col_offset, *max(_ends(node)))


def statements(answer: Answer) -> dict[int, Statement]:
    """The statements that the answer itself wrote, by their first line; docstrings are none, of two in a line one."""
    module = tree(answer.source)
    found: dict[int, Statement] = {}
    for node in ast.walk(module) if module else []:
        if isinstance(node, ast.stmt) and node.lineno >= answer.first_line and not _is_docstring(node):
            found.setdefault(node.lineno, Statement(node, sum(1 for _ in own_nodes(node))))
    return dict(sorted(found.items()))


def own_nodes(node: ast.AST) -> Iterator[ast.AST]:
    """The node and what belongs to it, nested statements left out."""
    yield node
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, _NO_PART_OF_IT):
            yield from own_nodes(child)


def _ends(statement: ast.stmt) -> list[tuple[int, int]]:
    """Where the parts of a statement end. A compound one itself ends with its last inner statement: not its own end.

    Its key word ends somewhere too: `try` has no other part.
    """
    compound = hasattr(statement, "body")
    ends = [(statement.lineno, statement.col_offset + _TRY)] if compound else []
    for node in own_nodes(statement):
        if isinstance(node, ast.expr | ast.arg | ast.keyword | ast.alias):
            ends.append((node.end_lineno or 0, node.end_col_offset or 0))
    return ends if compound else [*ends, (statement.end_lineno or 0, statement.end_col_offset or 0)]


def _is_docstring(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def loop_around(answer: Answer, line: int) -> Statement | None:
    """The innermost loop of the answer that `line` belongs to."""
    module = tree(answer.source)
    loops = [
        node
        for node in (ast.walk(module) if module else [])
        if isinstance(node, ast.While | ast.For) and node.lineno <= line <= (node.end_lineno or 0)
    ]
    if not loops:
        return None
    return Statement(max(loops, key=lambda node: node.lineno), 0)


def calls(answer: Answer, names: frozenset[str]) -> list[tuple[int, int, int, int]]:
    """Where the answer calls a function of one of these names, whatever module it comes from."""
    module = tree(answer.source)
    found = []
    for node in ast.walk(module) if module else []:
        if isinstance(node, ast.Call) and node.lineno >= answer.first_line:
            name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", None)
            if name in names:
                found.append((node.lineno, node.col_offset, node.end_lineno or 0, node.end_col_offset or 0))
    return sorted(found)
