"""Features of a program's statements, from which the learned aligner predicts which one a comment is about.

Comments describe code in words that the code does not contain: "negative inputs" are a parameter and a comparison, "off
by one" is a range or an index. A concept pairs such words with the syntax that they describe.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence

import numpy as np

from text2grad.align.answer.program import NodeFilter, Program, Statement, call_name, calls_of, of_kind, statement_nodes
from text2grad.align.learned.roles import Mention, Role, content_keys, parse_mentions
from text2grad.align.learned.word_features import Matrix
from text2grad.text.whitespace import part_key, split_parts

_KINDS = (ast.FunctionDef, ast.Return, ast.If, ast.For, ast.While, ast.Assign, ast.AugAssign, ast.Expr, ast.Import)
_NAME = re.compile(r"[^\W\d]\w*")
_NUMBER = re.compile(r"(?<!\w)\d+(?:\.\d+)?(?!\w)")


def _signs(nodes: Sequence[ast.AST]) -> list[ast.AST]:
    zeros = [node for node in nodes if isinstance(node, ast.Constant) and node.value == 0]
    return [*zeros, *of_kind(ast.USub)(nodes), *calls_of("abs", "range")(nodes)]


CONCEPTS: dict[str, tuple[str, NodeFilter]] = {
    "loop": (r"loop\w*|iterat\w+|travers\w+", of_kind(ast.For, ast.While, ast.comprehension)),
    "condition": (r"condition\w*|if|check\w*|case|compar\w+|equal\w*|greater|less|edge", of_kind(ast.If, ast.Compare)),
    "return": (r"return\w*|output\w*|result\w*", of_kind(ast.Return)),
    "start": (r"initial\w*|start\w*|assign\w*|variable|set to|defined?|declar\w+", of_kind(ast.Assign, ast.AnnAssign)),
    "index": (r"index\w*|indices|off.by.one|bound\w*|out of range|element|position", of_kind(ast.Subscript, ast.Slice)),
    "range": (r"range\w*|off.by.one|bound\w*|up to|inclusive|exclusive|last element|upper", calls_of("range", "len")),
    "negative": (r"negative\w*|positive|zero|absolute|sign|below|minus", _signs),
    "arithmetic": (
        r"add\w*|sum\w*|subtract\w*|plus|minus|increment\w*|formula|calculat\w+|comput\w+|math",
        of_kind(ast.BinOp),
    ),
    "division": (
        r"divi\w+|integer|float\w*|modulo|remainder|round\w*|decimal",
        of_kind(ast.Div, ast.FloorDiv, ast.Mod),
    ),
    "product": (r"multipl\w+|product|power|squar\w+|exponent\w*", of_kind(ast.Mult, ast.Pow)),
    "order": (
        r"sort\w*|order\w*|revers\w+|ascending|descending|large\w*|small\w*|max\w*|min\w*",
        calls_of("sort", "sorted", "max", "min", "reversed"),
    ),
    "update": (r"updat\w+|increment\w*|increas\w+|decreas\w+|accumulat\w+|count\w*", of_kind(ast.AugAssign)),
    "collection": (
        r"append\w*|list|dict\w*|set|tuple|array|push\w*|pop\w*",
        calls_of("append", "add", "extend", "list", "set", "dict", "pop", "get"),
    ),
    "pattern": (
        r"regex\w*|regular|pattern|match\w*|expression",
        calls_of("search", "match", "findall", "sub", "compile", "fullmatch", "split"),
    ),
    "text": (
        r"string\w*|character\w*|letter\w*|word\w*|lower\w*|upper\w*|case",
        calls_of("str", "join", "split", "lower", "upper", "strip", "replace"),
    ),
    "logic": (r"and|or|not|both|either|operator", of_kind(ast.BoolOp, ast.Not)),
    "import": (r"import\w*|module|library|package", of_kind(ast.Import, ast.ImportFrom)),
    "call": (r"call\w*|function|method|argument\w*|built.?in|recurs\w+", of_kind(ast.Call)),
}
CUES = {name: re.compile(rf"\b(?:{words})\b", re.IGNORECASE) for name, (words, _) in CONCEPTS.items()}
_INPUT = re.compile(r"\b(?:inputs?|arguments?|parameters?|given|values?|numbers?)\b", re.IGNORECASE)


def compute_statement_features(
    comment: str, statements: Sequence[Statement], program: Program
) -> tuple[list[str], Matrix]:
    """Return the names of the columns, and the features (statements, columns) in float32."""
    mentions = parse_mentions(comment)
    parameters = {node.arg for node in program.nodes() if isinstance(node, ast.arg)} - {"self"}
    rows = [_row(comment, mentions, parameters, number, statements) for number in range(len(statements))]
    totals = {name: sum(row[name] for row in rows) for name in ("named", "said", "blamed", "agreeing")}
    for row in rows:
        row |= {f"share_{name}": row[name] / (total or 1.0) for name, total in totals.items()}
        row |= {f"total_{name}": total for name, total in totals.items()}
    names = list(rows[0]) if rows else []
    return names, np.array([list(row.values()) for row in rows], dtype=np.float32)


def _row(
    comment: str, mentions: Sequence[Mention], parameters: set[str], number: int, statements: Sequence[Statement]
) -> dict[str, float]:
    statement = statements[number]
    nodes = list(statement_nodes(statement.node))
    text = ast.unparse(statement.node).partition("\n")[0]
    words = {part_key(part) for part in split_parts(text)}
    agreeing = {
        name: float(CUES[name].search(comment) is not None and bool(find(nodes)))
        for name, (_, find) in CONCEPTS.items()
    }
    names = {name.id for name in of_kind(ast.Name)(nodes)} | {call_name(call) for call in of_kind(ast.Call)(nodes)}
    return {
        "named": float(len({name for name in names if name and len(name) > 1} & set(_NAME.findall(comment)))),
        "said": float(len(words & content_keys(mentions))),
        "blamed": float(len(words & content_keys(mentions, Role.BLAMED))),
        "wanted": float(len(words & content_keys(mentions, Role.WANTED))),
        "numbers": float(len(set(_NUMBER.findall(text)) & set(_NUMBER.findall(comment)))),
        "verbatim": float(_longest_verbatim(text, comment)),
        **{f"concept_{name}": value for name, value in agreeing.items()},
        "agreeing": sum(agreeing.values()),
        "uses_input": float(bool(_INPUT.search(comment)) and bool(names & parameters)),
        "kind": float(next((i for i, kind in enumerate(_KINDS) if isinstance(statement.node, kind)), len(_KINDS))),
        "size": float(statement.size),
        "depth": float(statement.node.col_offset // 4),
        "position": number / max(1, len(statements) - 1),
        "from_start": float(min(number, 10)),
        "from_end": float(min(len(statements) - 1 - number, 10)),
        "statements": float(len(statements)),
        "comment_length": float(min(len(mentions), 120)),
    }


def _longest_verbatim(text: str, comment: str) -> int:
    """Return the length of the longest piece between spaces of `text`, not only letters, that the comment contains."""
    pieces = [piece.strip(":,") for piece in text.split()]
    return max(
        (len(piece) for piece in pieces if len(piece) > 2 and not piece.isalpha() and piece in comment), default=0
    )
