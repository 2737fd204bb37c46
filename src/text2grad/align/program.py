"""The program in an answer, and where each of its characters stands in that answer."""

from __future__ import annotations

import ast
import re
import warnings
from dataclasses import dataclass

_FENCE = re.compile(
    r"^(?P<mark>```+|~~~+)[ \t]*(?P<language>[\w+-]*)[^\n]*\n(?P<code>.*?)(?:^(?P=mark)|\Z)", re.M | re.S
)
_CODE_LINE = re.compile(r"^(?:def|class|import|from|async def|@)\b.*", re.M)
_LIKE_CODE = re.compile(r"[=(\[{]|^\s*(?:return|pass|if|for|while|print)\b", re.MULTILINE)
_LINE_END = re.compile(r"\r\n|\r|\n")
_PYTHON = ("", "python", "py", "python3")


@dataclass(frozen=True)
class Answer:
    """A program: `prefix`, which the prompt gave, and `code`, which the completion has from `start` on."""

    code: str
    start: int
    prefix: str = ""

    @property
    def source(self) -> str:
        return self.prefix + self.code

    @property
    def first_line(self) -> int:
        """The number, in the source, of the line that the code begins with or continues."""
        return len(_LINE_END.findall(self.prefix)) + 1

    def line_number(self, line: int) -> int:
        """A line of the source as a reader of the code counts it, from 1."""
        return line - self.first_line + 1

    def span(self, line: int, column: int, end_line: int, end_column: int) -> tuple[int, int] | None:
        """Characters of the completion, from a range in lines (from 1) and UTF-8 columns (from 0) of the source."""
        bounds = sorted((self._offset(line, column), self._offset(end_line, end_column)))
        start, end = (max(bound - len(self.prefix), 0) + self.start for bound in bounds)
        return (start, end) if start < end else None

    def line_span(self, line: int) -> tuple[int, int] | None:
        """The characters of one line, without the white space and the comment around its code."""
        lines = _LINE_END.split(self.source)
        if not 1 <= line <= len(lines):
            return None
        text = lines[line - 1]
        code = text.strip()
        column = len(text[: len(text) - len(text.lstrip())].encode())
        return self.span(line, column, line, column + len(code.encode())) if code else None

    def _offset(self, line: int, column: int) -> int:
        starts = [0, *(match.end() for match in _LINE_END.finditer(self.source))]
        line = min(max(line, 1), len(starts))
        begin = starts[line - 1]
        end = starts[line] if line < len(starts) else len(self.source)
        text = self.source[begin:end].encode("utf-8", errors="surrogatepass")[:column]
        return begin + len(text.decode("utf-8", errors="ignore"))


def extract(completion: str, prompt: str = "", wanted: frozenset[str] = frozenset()) -> Answer | None:
    """Find the program in `completion`; None if there is nothing that could be one.

    A fenced block counts before anything around it; of several, the first that defines one of the `wanted` names,
    else the longest. Without a fence, the completion is the program, or continues the one that the prompt begins, or
    has it between prose. Code that does not parse is still an answer.
    """
    fenced = [match for match in _FENCE.finditer(completion) if match["language"].lower() in _PYTHON]
    if fenced:
        chosen = [match for match in fenced if wanted & defined(match["code"])] or sorted(
            fenced, key=lambda match: -len(match["code"])
        )
        return Answer(chosen[0]["code"], chosen[0].start("code")) if chosen[0]["code"].strip() else None
    if not completion.strip():
        return None
    if wanted & defined(completion):
        return Answer(completion, 0)
    if prompt and _continues(prompt, completion, wanted):
        return Answer(completion, 0, prompt)
    return Answer(completion, 0) if parses(completion) else _between_prose(completion)


def parses(source: str) -> bool:
    return tree(source) is not None


def tree(source: str) -> ast.Module | None:
    """The syntax tree, None if the source is not Python. What Python merely warns of is no concern here."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SyntaxWarning)
        warnings.simplefilter("ignore", DeprecationWarning)
        try:
            return ast.parse(source)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return None


def defined(source: str) -> frozenset[str]:
    """The functions, classes and variables that a program defines at its top level; none if it does not parse."""
    module = tree(source)
    names: set[str] = set()
    for node in module.body if module else []:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.Assign):
            names |= {target.id for target in node.targets if isinstance(target, ast.Name)}
    return frozenset(names)


def _continues(prompt: str, completion: str, wanted: frozenset[str]) -> bool:
    names = defined(prompt + completion)
    if names and (wanted & names or not wanted) and not (parses(completion) and not completion[:1].isspace()):
        return True
    first = next(line for line in completion.splitlines() if line.strip())
    return first[0].isspace() and bool(re.search(r"^\s*(?:async )?def\b", prompt, re.M)) and not names


def _between_prose(completion: str) -> Answer | None:
    """From the first line that begins a program, as far as it parses; all of the rest if no part does."""
    first = _CODE_LINE.search(completion)
    if first is None:
        return Answer(completion, 0) if _LIKE_CODE.search(completion) else None
    rest = completion[first.start() :]
    ends = [match.start() for match in _LINE_END.finditer(rest)] + [len(rest)]
    for end in reversed(ends):
        if parses(rest[:end]):
            return Answer(rest[:end], first.start())
    return Answer(rest, first.start())
