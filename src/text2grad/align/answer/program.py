"""The Python program in a completion, its statements, and their character ranges in the completion."""

from __future__ import annotations

import ast
import keyword
import re
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from text2grad.schema import Range

NodeFilter = Callable[[Sequence[Any]], list[Any]]  # from syntax nodes to those of some kind, or to parts of them
Extent = tuple[int, int, int, int]  # line (from 1), UTF-8 column (from 0), end line, end column: as `ast` counts

_FENCE = re.compile(
    r"^(?P<mark>```+|~~~+)[ \t]*(?P<language>[\w+-]*)[^\n]*\n(?P<code>.*?)"
    r"(?:^(?P=mark)(?![ \t]*\w)|(?P<next>(?=^(?P=mark)[ \t]*\w))|\Z)",
    re.M | re.S,
)
_FIRST_CODE_LINE = re.compile(r"^(?:def|class|import|from|async def|@)\b.*", re.M)
_LOOKS_LIKE_CODE = re.compile(r"[=(\[{]|^\s*(?:return|pass|if|for|while|print)\b", re.MULTILINE)
_LINE_END = re.compile(r"\r\n|\r|\n")
_TWO_WORDS = re.compile(r"\s*([A-Za-z_]\w*)[ \t]+([A-Za-z_]\w*)", re.ASCII)  # no program starts so without a keyword
_KEYWORDS = frozenset((*keyword.kwlist, *keyword.softkwlist))
_PYTHON = ("", "python", "py", "python3")
_DEFINITIONS = {ast.FunctionDef: "def", ast.AsyncFunctionDef: "async def", ast.ClassDef: "class"}
_NESTED = (ast.stmt, ast.excepthandler, ast.match_case, ast.expr_context)


@dataclass(frozen=True)
class Program:
    """A program: `prefix` is given by the prompt, `code` is the completion's and begins at its character `start`."""

    code: str
    start: int
    prefix: str = ""

    @property
    def source(self) -> str:
        """The whole program."""
        return self.prefix + self.code

    @property
    def first_line(self) -> int:
        """The line of the source that `code` starts or continues."""
        return len(_LINE_END.findall(self.prefix)) + 1

    def line_number(self, line: int) -> int:
        """Convert a line of the source to a line of `code`, counted from 1."""
        return line - self.first_line + 1

    def span(self, line: int, column: int, end_line: int, end_column: int) -> Range | None:
        """Convert an extent in the source to characters of the completion; None if it holds none of them."""
        bounds = sorted((self._offset(line, column), self._offset(end_line, end_column)))
        start, end = (max(bound - len(self.prefix), 0) + self.start for bound in bounds)
        return (start, end) if start < end else None

    def line_span(self, line: int) -> Range | None:
        """Return the characters of one line of the source, without white space around them."""
        lines = ["", *_LINE_END.split(self.source)]
        text = lines[line].rstrip() if 0 < line < len(lines) else ""
        indent = text[: len(text) - len(text.lstrip())]
        return self.span(line, len(indent.encode()), line, len(text.encode())) if text else None

    def nodes(self) -> list[ast.AST]:
        """Return the syntax nodes of the whole source, breadth first; none if it does not parse."""
        module = _parse_once(self.source)
        return list(ast.walk(module)) if module else []

    def own_nodes(self) -> list[ast.AST]:
        """Return the syntax nodes that begin in `code`, breadth first."""
        first = self.first_line
        return [node for node in self.nodes() if getattr(node, "lineno", 0) >= first]

    def _offset(self, line: int, column: int) -> int:
        starts = [0, *(match.end() for match in _LINE_END.finditer(self.source))]
        line = min(max(line, 1), len(starts))
        begin = starts[line - 1]
        end = starts[line] if line < len(starts) else len(self.source)
        text = self.source[begin:end].encode("utf-8", errors="surrogatepass")[:column]
        return begin + len(text.decode("utf-8", errors="ignore"))


@dataclass(frozen=True)
class Statement:
    """A statement without the statements nested in it: an `if` is its condition, a `for` its header."""

    node: ast.stmt

    @property
    def line(self) -> int:
        """The line of the source on which the statement begins."""
        return self.node.lineno

    @property
    def size(self) -> int:
        """The number of syntax nodes, nested statements excluded."""
        return sum(1 for _ in statement_nodes(self.node))

    def extent(self) -> Extent:
        """Return the extent of the statement's own code; of a definition, its keyword and name."""
        node = self.node
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            header = f"{_DEFINITIONS[type(node)]} {node.name}"
            return (node.lineno, node.col_offset, node.lineno, node.col_offset + len(header.encode()))
        if not hasattr(node, "body"):
            return node_extent(node)
        # the node of a compound statement ends with its last nested statement: its own expressions count, and "try"
        own = [part for part in statement_nodes(node) if isinstance(part, ast.expr | ast.arg | ast.keyword)]
        ends = [(part.end_lineno or 0, part.end_col_offset or 0) for part in own]
        return (node.lineno, node.col_offset, *max([(node.lineno, node.col_offset + len("try")), *ends]))


@lru_cache(maxsize=32)
def extract_program(completion: str, prompt: str = "", entry_points: frozenset[str] = frozenset()) -> Program | None:
    """Find the program in `completion`; None if there is nothing that could be one.

    A fenced block comes before anything around it; of several, the first that defines one of `entry_points`, else the
    longest. Without a fence, the completion is the program, or continues the one that the prompt begins, or has it
    between prose. Code that does not parse is still returned.
    """
    fenced = [match for match in _FENCE.finditer(completion) if _is_python_block(match)]
    if fenced:
        defining = [match for match in fenced if entry_points & top_level_names(match["code"])]
        block = defining[0] if defining else max(fenced, key=lambda match: len(match["code"]))
        return Program(block["code"], block.start("code")) if block["code"].strip() else None
    if not completion.strip():
        return None
    if entry_points & top_level_names(completion):
        return Program(completion, 0)
    if prompt and _continues(prompt, completion, entry_points):
        return Program(completion, 0, prompt)
    return Program(completion, 0) if _parse_once(completion) else _extract_between_prose(completion)


def _is_python_block(fence: re.Match[str]) -> bool:
    """Whether a fence holds Python. One without a language is no block if the next fence opens another: it closes."""
    language = fence["language"].lower()
    return language in _PYTHON and not (language == "" and fence["next"] is not None)


@lru_cache(maxsize=32)  # the same few texts are asked about again and again
def _parse_once(source: str) -> ast.Module | None:
    """Parse Python source as `parse_python` does; the module is shared and must not be changed."""
    return parse_python(source)


def parse_python(source: str) -> ast.Module | None:
    """Parse Python source without its warnings; None if it is not valid."""
    if (words := _TWO_WORDS.match(source)) and _KEYWORDS.isdisjoint(words.groups()):
        return None  # prose; the parser would read all of it to report an error
    with warnings.catch_warnings(action="ignore"):
        try:
            return ast.parse(source)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return None


def top_level_names(source: str) -> frozenset[str]:
    """Return the functions, classes and variables that a program defines at its top level; none if it is not valid."""
    module = _parse_once(source)
    names: set[str] = set()
    for node in module.body if module else []:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.Assign):
            names |= {target.id for target in node.targets if isinstance(target, ast.Name)}
    return frozenset(names)


def imported_modules(source: str) -> frozenset[str]:
    """Return the modules that a program imports, packages without what is in them; none if it is not valid."""
    module = _parse_once(source)
    names: set[str] = set()
    for node in ast.walk(module) if module else []:
        if isinstance(node, ast.Import):
            names |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names.add(node.module.partition(".")[0])
    return frozenset(names)


def find_statements(program: Program) -> dict[int, Statement]:
    """Map lines to the statements of the completion that begin there: the first of a line, docstrings excluded."""
    found: dict[int, Statement] = {}
    for node in program.own_nodes():
        if isinstance(node, ast.stmt) and not _is_docstring(node):
            found.setdefault(node.lineno, Statement(node))
    return dict(sorted(found.items()))


def innermost_loop(program: Program, line: int) -> Statement | None:
    """Return the innermost loop that contains a line of the source."""
    loops = [
        loop for loop in of_kind(ast.While, ast.For)(program.nodes()) if loop.lineno <= line <= (loop.end_lineno or 0)
    ]
    return Statement(max(loops, key=lambda node: node.lineno)) if loops else None


def find_calls(program: Program, names: frozenset[str]) -> list[Extent]:
    """Return the extents of the completion's calls of functions with one of these names, from whatever module."""
    return sorted(map(node_extent, calls_of(*names)(program.own_nodes())))


def node_extent(node: ast.stmt | ast.expr) -> Extent:
    """Return the extent of a node with everything in it."""
    return (node.lineno, node.col_offset, node.end_lineno or 0, node.end_col_offset or 0)


def call_name(call: ast.Call) -> str | None:
    """Return the name of the called function, without its module or object."""
    return call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", None)


def of_kind(*kinds: type[ast.AST]) -> NodeFilter:
    """Return a filter that keeps the nodes of these classes."""
    return lambda nodes: [node for node in nodes if isinstance(node, kinds)]


def calls_of(*names: str) -> NodeFilter:
    """Return a filter that keeps the calls of functions with one of these names, from whatever module."""
    return lambda nodes: [node for node in nodes if isinstance(node, ast.Call) and call_name(node) in names]


def statement_nodes(node: ast.AST) -> Iterator[ast.AST]:
    """Yield a node and its descendants, nested statements excluded."""
    yield node
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, _NESTED):
            yield from statement_nodes(child)


def _is_docstring(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def _continues(prompt: str, completion: str, entry_points: frozenset[str]) -> bool:
    names = top_level_names(prompt + completion)
    stands_alone = _parse_once(completion) is not None and not completion[:1].isspace()
    if names and (entry_points & names or not entry_points) and not stands_alone:
        return True
    first = next(line for line in completion.splitlines() if line.strip())
    return first[0].isspace() and bool(re.search(r"^\s*(?:async )?def\b", prompt, re.M)) and not names


def _extract_between_prose(completion: str) -> Program | None:
    """Take the program from its first line of code as far as it parses; to the end if no part does."""
    first = _FIRST_CODE_LINE.search(completion)
    if first is None:
        return Program(completion, 0) if _LOOKS_LIKE_CODE.search(completion) else None
    rest = completion[first.start() :]
    ends = [match.start() for match in _LINE_END.finditer(rest)] + [len(rest)]
    parsing = (end for end in reversed(ends) if _parse_once(rest[:end]))
    return Program(rest[: next(parsing, len(rest))], first.start())
