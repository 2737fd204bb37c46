"""What a program does wrong in words, and the code that decides it: "breaks on an empty list", "off by one"."""

# ruff: noqa: E501  one pattern per line

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator, Sequence

from text2grad.align.answer.program import Program, Statement, calls_of, node_extent, of_kind
from text2grad.align.answer.proposals import Proposal
from text2grad.schema import Range

Node = ast.stmt | ast.expr
Finder = Callable[[Sequence[ast.AST]], list[Node]]
_MAX_NODES = 2  # more than that decide nothing


def _compares(*values: object) -> Finder:
    """Return a finder of comparisons with one of these constants."""

    def find(nodes: Sequence[ast.AST]) -> list[Node]:
        return [
            node
            for node in nodes
            if isinstance(node, ast.Compare)
            and any(
                _constant(part) in values and _constant(part) is not None for part in (node.left, *node.comparators)
            )
        ]

    return find


def _constant(node: ast.expr) -> object:
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub) and isinstance(node.operand, ast.Constant):
        return -node.operand.value if isinstance(node.operand.value, int | float) else None
    value = node.value if isinstance(node, ast.Constant) else None
    return None if isinstance(value, bool) else value


def _orderings(nodes: Sequence[ast.AST]) -> list[Node]:
    kinds = (ast.Lt, ast.LtE, ast.Gt, ast.GtE)
    return [n for n in nodes if isinstance(n, ast.Compare) and any(isinstance(op, kinds) for op in n.ops)]


def _equalities(nodes: Sequence[ast.AST]) -> list[Node]:
    kinds = (ast.Eq, ast.NotEq, ast.In, ast.NotIn)
    return [n for n in nodes if isinstance(n, ast.Compare) and any(isinstance(op, kinds) for op in n.ops)]


def _parameters(nodes: Sequence[ast.AST]) -> set[str]:
    return {node.arg for node in nodes if isinstance(node, ast.arg)} - {"self", "cls"}


def _emptiness(nodes: Sequence[ast.AST]) -> list[Node]:
    """Return the tests for emptiness: `not x`, `len(x) == 0`."""
    negated = [n for n in nodes if isinstance(n, ast.UnaryOp) and isinstance(n.op, ast.Not)]
    lengths = [n for n in nodes if isinstance(n, ast.Compare) and calls_of("len")(list(ast.walk(n)))]
    return [*negated, *lengths]


def _first_elements(nodes: Sequence[ast.AST]) -> list[Node]:
    return [
        n
        for n in nodes
        if isinstance(n, ast.Subscript) and _constant(n.slice) in (0, -1) and isinstance(n.ctx, ast.Load)
    ]


def _divisions(nodes: Sequence[ast.AST]) -> list[Node]:
    kinds = (ast.Div, ast.FloorDiv, ast.Mod)
    return [n for n in nodes if isinstance(n, ast.BinOp | ast.AugAssign) and isinstance(n.op, kinds)]


def _floor_divisions(nodes: Sequence[ast.AST]) -> list[Node]:
    return [n for n in nodes if isinstance(n, ast.BinOp | ast.AugAssign) and isinstance(n.op, ast.FloorDiv)]


def _by_length(nodes: Sequence[ast.AST]) -> list[Node]:
    return [n for n in _divisions(nodes) if calls_of("len")(list(ast.walk(n)))]


def _steps(nodes: Sequence[ast.AST]) -> list[Node]:
    kinds = (ast.Add, ast.Sub)
    return [
        n
        for n in nodes
        if isinstance(n, ast.BinOp) and isinstance(n.op, kinds) and 1 in (_constant(n.left), _constant(n.right))
    ]


def _slices(nodes: Sequence[ast.AST]) -> list[Node]:
    return [n for n in nodes if isinstance(n, ast.Subscript) and isinstance(n.slice, ast.Slice)]


def _loop_orderings(nodes: Sequence[ast.AST]) -> list[Node]:
    return [test for loop in of_kind(ast.While)(nodes) for test in _orderings(list(ast.walk(loop.test)))]


def _parity(nodes: Sequence[ast.AST]) -> list[Node]:
    return [n for n in nodes if isinstance(n, ast.BinOp) and isinstance(n.op, ast.Mod) and _constant(n.right) == 2]


def _inner_loops(nodes: Sequence[ast.AST]) -> list[Node]:
    loops = of_kind(ast.For, ast.While)(nodes)
    return [one for one in loops if any(one in list(ast.walk(other))[1:] for other in loops)]


def _early_returns(nodes: Sequence[ast.AST]) -> list[Node]:
    loops = of_kind(ast.For, ast.While)(nodes)
    return [node for loop in loops for node in ast.walk(loop) if isinstance(node, ast.Return)]


def _mutations(nodes: Sequence[ast.AST]) -> list[Node]:
    names = _parameters(nodes)
    calls = calls_of("sort", "append", "pop", "remove", "extend", "insert", "clear", "update", "reverse")(nodes)
    own = [c for c in calls if isinstance(c.func, ast.Attribute) and getattr(c.func.value, "id", None) in names]
    stores = [n for n in nodes if isinstance(n, ast.Subscript) and not isinstance(n.ctx, ast.Load)]
    return [*own, *(n for n in stores if getattr(n.value, "id", None) in names)]


def _mutable_defaults(nodes: Sequence[ast.AST]) -> list[Node]:
    return [
        d
        for n in of_kind(ast.FunctionDef)(nodes)
        for d in n.args.defaults
        if isinstance(d, ast.List | ast.Dict | ast.Set)
    ]


def _recursive_calls(nodes: Sequence[ast.AST]) -> list[Node]:
    names = [function.name for function in of_kind(ast.FunctionDef, ast.AsyncFunctionDef)(nodes)]
    return calls_of(*names)(nodes)


def _bare_excepts(nodes: Sequence[ast.AST]) -> list[Node]:
    return [n for n in of_kind(ast.Try)(nodes) if any(h.type is None for h in n.handlers)]


def _returned_values(nodes: Sequence[ast.AST]) -> list[Node]:
    return [node.value or node for node in of_kind(ast.Return)(nodes)]


def _uses_of_parameters(nodes: Sequence[ast.AST]) -> list[Node]:
    """Return the first loop, call or subscript that takes a parameter."""
    names = _parameters(nodes)
    found = [
        n
        for n in nodes
        if isinstance(n, ast.For | ast.Call | ast.Subscript | ast.BinOp | ast.Compare)
        and any(
            isinstance(part, ast.Name) and part.id in names
            for part in ast.walk(n.iter if isinstance(n, ast.For) else n)
        )
    ]
    ordered = sorted(found, key=lambda n: (n.lineno, n.col_offset))
    return [n.iter if isinstance(n, ast.For) else n for n in ordered[:1]]


def _strings(*names: str) -> Finder:
    return lambda nodes: calls_of(*names)(nodes)


_ZERO, _ONE = _compares(0), _compares(0, 1)
_BEHAVIOURS: tuple[tuple[str, tuple[Finder, ...]], ...] = (
    (r"infinite(?:ly)?|endless(?:ly)?|never (?:terminates?|ends?|stops?|finish\w*|exits?)|(?:loops?|runs?|hangs?) forever|hangs?", (of_kind(ast.While), _recursive_calls, of_kind(ast.For))),
    (r"off[\s-]by[\s-](?:one|1)|one (?:too (?:many|few)|short|more|less)|fencepost|(?:misses|skips|ignores|excludes|leaves out|drops) the (?:last|first|final)|too (?:early|soon)|upper bound|lower bound|inclusive|exclusive|out of (?:range|bounds)|index ?error", (calls_of("range"), _loop_orderings, _slices, _steps, _orderings, _first_elements)),
    (r"negatives?|below zero|less than (?:zero|0)|minus|under zero", (_ONE, _strings("abs", "sqrt"), _orderings, _uses_of_parameters)),
    (r"divi(?:de|des|ding|sion)s? by (?:zero|0)|zero ?division(?:error)?", (_by_length, _divisions)),
    (r"empty|no (?:elements?|items?|words?|numbers?|entries)|nothing in it|blank (?:string|input|line)s?", (_emptiness, _by_length, _first_elements, _strings("max", "min"), _divisions, _uses_of_parameters)),
    (r"zeros?|(?<![\d.])0(?![\d.])", (_ZERO, _ONE, _divisions, _orderings, _uses_of_parameters)),
    (r"(?:upper|lower|mixed)[\s-]?cas(?:e[sd]?|ing)|case[\s-](?:in)?sensitiv\w+|(?:about|regarding|ignor\w+|of|the) (?:the )?case(?! of)|case is not ignored|capital(?:s|ised|ized|isation|ization)?(?: letters?)?|\bcase of (?:the )?letters?", (_strings("lower", "upper", "casefold", "islower", "isupper"), _equalities, _uses_of_parameters)),
    (r"punctuation|commas?|white ?space|spaces?|tabs?|newlines?|hyphens?|apostrophes?", (_strings("split", "strip", "replace", "rstrip", "lstrip", "isalnum", "isalpha", "splitlines", "join"), _equalities, _uses_of_parameters)),
    (r"even|odd|parity", (_parity, _divisions)),
    (r"duplicat\w+|ties?|tied|equal (?:elements|values|numbers)|repeated (?:elements|values|items|letters|words|numbers)|same (?:value|number|element|score)", (_strings("set", "count", "Counter"), _equalities, _orderings)),
    (r"(?:mutat|modif|chang|alter|destroy)\w* (?:the |its |your |my )?(?:input|argument|parameter|list|original|caller)\w*|in[\s-]place|side[\s-]effects?", (_mutations, _mutable_defaults)),
    (r"mutable default|default argument|shared between calls", (_mutable_defaults,)),
    (r"key ?error|missing keys?|unknown keys?|absent keys?|key (?:is|does) not|not in the dict\w*", (of_kind(ast.Subscript), _strings("get"))),
    (r"quadratic|inefficien\w+|too slow|very slow|slow|o\(n\^?2\)|o\(n²\)|nested loops?|large (?:inputs?|lists?|numbers?|files?)|scal(?:es?|ing)|performance", (_inner_loops, _strings("count", "index", "insert"), of_kind(ast.For, ast.While), _recursive_calls)),
    (r"base case|recursion (?:depth|error|limit)|stack overflow|recurs\w+", (_recursive_calls,)),
    (r"(?:never |not |n['’]t )(?:close|closed|closing)|leaks?|file handle|left open|with statement|context manager", (_strings("open"),)),
    (r"bare except|swallow\w*|hid(?:es|ing) (?:all |the )?(?:errors?|exceptions?)|catch(?:es|ing)? (?:everything|all)", (_bare_excepts, of_kind(ast.Try))),
    (r"integer division|floor division|rounds?|rounding|truncat\w+|fraction\w*|decimals?|floats?", (_floor_divisions, _strings("round", "int", "float"), _divisions)),
    (r"(?:wrong|reverse[d]?|descending|ascending|opposite|right) order|sort\w*|revers\w+", (_strings("sorted", "sort", "reversed", "reverse"), _slices)),
    (r"print(?:s|ing|ed)? (?:it )?(?:instead|rather|and not)|print(?:s|ed|ing)?|debug(?:ging)? (?:output|code|lines?|messages?|statements?|prints?|logs?)|logging", (_strings("print"),)),
    (r"returns? (?:too )?(?:early|after the first|inside the loop|immediately)|first iteration", (_early_returns, of_kind(ast.Return))),
    (r"single(?:[\s-](?:element|item|word|character|number))?|only one (?:element|item|word)|one[\s-]element", (_compares(1), _emptiness, _ONE, _first_elements)),
    (r"not found|no match\w*|missing (?:value|element|item)|absent|does(?:n['’]t| not) exist|non-?existent", (_strings("find", "index", "get"), _compares(-1), of_kind(ast.Return))),
    (r"non-?(?:numeric|integers?|digits?|strings?)|invalid (?:input|number)s?|letters in|type ?error|value ?error|not a number|strings? as input|wrong type", (_strings("int", "float", "isinstance", "isdigit"), _uses_of_parameters)),
    (r"\bnone\b|null", (_compares(None), _emptiness, of_kind(ast.Return))),
    (r"hard[\s-]?coded|magic numbers?", (_compares(*range(2, 10000)), lambda nodes: [n for n in nodes if isinstance(n, ast.Constant) and isinstance(n.value, int | float) and n.value not in (0, 1)])),
)  # fmt: skip
_COMPILED = tuple((re.compile(rf"(?<![\w-])(?:{words})(?![\w-])", re.I), finders) for words, finders in _BEHAVIOURS)
_CONFIDENCE = 0.45  # of one node; more of them share it


def find_behaviours(comment: str, start: int, end: int, program: Program) -> Iterator[Proposal]:
    """Yield the code that decides the behaviours that comment[start:end] speaks of; of nested phrases the longest."""
    nodes: list[ast.AST] = program.own_nodes()
    taken: list[Range] = []
    matches = [(m, finders) for pattern, finders in _COMPILED for m in pattern.finditer(comment, start, end)]
    for match, finders in sorted(matches, key=lambda pair: pair[0].start() - pair[0].end()):
        if any(match.start() < stop and begin < match.end() for begin, stop in taken):
            continue
        taken.append(match.span())
        for finder in finders:
            found = list(dict.fromkeys(finder(nodes)))
            places = [place for node in found if (place := _place(node, program))]
            if places:
                places = sorted(set(places))
                if len(places) <= _MAX_NODES:
                    yield Proposal("behaviour", match.span(), tuple(places), _CONFIDENCE / len(places))
                else:
                    yield Proposal("behaviour", match.span(), (places[0],), _CONFIDENCE / len(places))
                break


def _place(node: Node, program: Program) -> Range | None:
    extent = Statement(node).extent() if isinstance(node, ast.stmt) else node_extent(node)
    return program.span(*extent)
