"""Phrases of a comment that refer to code ("the loop", "the return value", `count`), resolved to syntax nodes."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence

from text2grad.align.answer.program import NodeFilter, calls_of, of_kind
from text2grad.schema import Range

Node = ast.stmt | ast.expr
CodeReference = tuple[Range, Sequence[Node], float]  # a phrase's range in the comment, its nodes, the confidence
FindReferences = Callable[[str, list[Node]], Iterator[CodeReference]]

_ORDINALS = {"first": 0, "second": 1, "third": 2, "fourth": 3, "last": -1, "final": -1, "outer": 0, "inner": -1}
_ORDINAL = rf"(?:(?P<ordinal>{'|'.join(_ORDINALS)})\s+(?:two\s+)?)?"
_MAX_NODES = 3  # a phrase without an ordinal that fits more nodes is too ambiguous
_KIND = r"(?:variables?|functions?|methods?|lists?|dict(?:ionary)?|counters?|parameters?|arguments?)"
_KIND_BEFORE = re.compile(rf"\b{_KIND}(?:\s+(?:called|named))?\s+$", re.IGNORECASE)
_KIND_AFTER = re.compile(rf"\s+{_KIND}\b", re.IGNORECASE)
_STARTS_CLAUSE = re.compile(r"(?:^|[.;,:]\s*|\b(?:and|but|so|because|that)\s+)$", re.IGNORECASE)
_VERB_AFTER = re.compile(
    r"\s+(?:is|are|was|should|never|must|isn['’]t|has|gets|does|doesn['’]t|needs|starts|begins|stays|becomes|grows)\b",
    re.IGNORECASE,
)
_ASKS_TO_ADD = re.compile(
    r"\b(?:add(?:s|ed|ing)?|insert(?:ed|ing)?|miss(?:es|ing)|lacks?|lacking|without|needs?|no|another|additional|use|using)"
    r"\s+(?:to\s+(?:have|add)\s+)?(?:an?\s+|another\s+|any\s+|one\s+more\s+)?(?:\w+\s+)?$",
    re.IGNORECASE,
)


def _conditions(nodes: Sequence[Node]) -> list[Node]:
    return [node.test for node in nodes if isinstance(node, ast.If | ast.While | ast.IfExp)]


def _loop_conditions(nodes: Sequence[Node]) -> list[Node]:
    """Return the conditions of `while` loops, else what `for` loops go through."""
    return [node.test for node in nodes if isinstance(node, ast.While)] or _ranges(nodes)


def _ranges(nodes: Sequence[Node]) -> list[Node]:
    return calls_of("range")(nodes) or [node.iter for node in nodes if isinstance(node, ast.For)]


def _patterns(nodes: Sequence[Node]) -> list[Node]:
    """Return the first arguments of calls of the `re` module."""
    calls = [call for call in of_kind(ast.Call)(nodes) if call.args and isinstance(call.func, ast.Attribute)]
    return [call.args[0] for call in calls if getattr(call.func.value, "id", None) in ("re", "regex")]


def _returned_values(nodes: Sequence[Node]) -> list[Node]:
    return [node.value or node for node in nodes if isinstance(node, ast.Return)]


def _early_returns(nodes: Sequence[Node]) -> list[Node]:
    inner = [node for outer in of_kind(ast.If, ast.For, ast.While)(nodes) for node in ast.walk(outer)]
    return list(dict.fromkeys(of_kind(ast.Return)(inner)))


def _docstrings(nodes: Sequence[Node]) -> list[Node]:
    owners = of_kind(ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)(nodes)
    return [owner.body[0] for owner in owners if ast.get_docstring(owner) is not None]


def _base_cases(nodes: Sequence[Node]) -> list[Node]:
    return [branch for branch in of_kind(ast.If)(nodes) if of_kind(ast.Return)(branch.body)]


def _recursive_calls(nodes: Sequence[Node]) -> list[Node]:
    return calls_of(*(function.name for function in of_kind(ast.FunctionDef)(nodes)))(nodes)


def _formulas(nodes: Sequence[Node]) -> list[Node]:
    """Return the returned or assigned values that contain arithmetic."""
    values = [node.value for node in nodes if isinstance(node, ast.Return | ast.Assign | ast.AugAssign) and node.value]
    return [value for value in values if any(isinstance(part, ast.BinOp) for part in ast.walk(value))]


def _arithmetic(*operators: type[ast.operator]) -> NodeFilter:
    return lambda nodes: [node for node in of_kind(ast.BinOp, ast.AugAssign)(nodes) if isinstance(node.op, operators)]


def _else_branches(nodes: Sequence[Node]) -> list[Node]:
    branches = [node.orelse for node in nodes if isinstance(node, ast.If) and node.orelse]
    return [statement for branch in branches if not isinstance(branch[0], ast.If) for statement in branch]


def _initial_values(nodes: Sequence[Node]) -> list[Node]:
    return [node for node in nodes if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant)]


_PHRASES: tuple[tuple[str, NodeFilter], ...] = (
    (r"while[\s-]+loops?", of_kind(ast.While)),
    (r"for[\s-]+loops?['’]?s?\s+ranges?|loop\s+ranges?|ranges?(?:\(\))?", _ranges),
    (r"for[\s-]+loops?", of_kind(ast.For, ast.AsyncFor)),
    (r"(?:nested\s+)?loops?|iterations?", of_kind(ast.For, ast.While, ast.AsyncFor)),
    (r"return(?:ed)?\s+(?:values?|expressions?|types?)|returned\s+\w+", _returned_values),
    (r"early\s+(?:returns?|exits?)", _early_returns),
    (r"return(?:ed)?\s+statements?|return(?:s|ed|ing)?", of_kind(ast.Return)),
    (r"docstrings?", _docstrings),
    (r"function\s+(?:names?|signatures?|headers?)|signatures?", of_kind(ast.FunctionDef, ast.AsyncFunctionDef)),
    (r"base\s+cases?", _base_cases),
    (r"recursive\s+(?:calls?|parts?|steps?|cases?)|recursion", _recursive_calls),
    (r"else[\s-]+(?:branch(?:es)?|blocks?|clauses?|statements?|parts?|cases?)", _else_branches),
    (r"if[\s-]+(?:statements?|branch(?:es)?|blocks?|clauses?|conditions?|checks?)", _conditions),
    (r"(?:while|loop|stop(?:ping)?|exit|termination)(?:[\s-]+loop)?[\s-]+(?:conditions?|checks?)", _loop_conditions),
    (r"(?:boolean\s+)?condition(?:al)?s?(?:\s+(?:statements?|expressions?|checks?))?|comparisons?", _conditions),
    (r"regex(?:es)?(?:\s+(?:patterns?|expressions?))?|regular\s+expressions?|patterns?", _patterns),
    (r"list\s+comprehensions?|comprehensions?", of_kind(ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)),
    (r"lambdas?(?:\s+functions?)?", of_kind(ast.Lambda)),
    (r"import(?:s|\s+statements?)?", of_kind(ast.Import, ast.ImportFrom)),
    (r"(?:initial\s+values?|initiali[sz]ations?)", _initial_values),
    (r"formulas?|formulae|equations?|calculations?|expressions?|arithmetic", _formulas),
    (r"multiplications?|multipl(?:y|ies|ied|ying)", _arithmetic(ast.Mult)),
    (r"divisions?|divid(?:e|es|ed|ing)", _arithmetic(ast.Div, ast.FloorDiv)),
    (r"additions?|plus", _arithmetic(ast.Add)),
    (r"subtractions?|subtract(?:s|ed|ing)?|minus", _arithmetic(ast.Sub)),
    (r"modul(?:o|us)|remainders?", _arithmetic(ast.Mod)),
    (r"exponents?|exponentiations?|powers?", _arithmetic(ast.Pow)),
    (r"sort(?:s|ed|ing)?", calls_of("sorted", "sort")),
    (r"print(?:s|ed|ing)?(?:\s+statements?)?", calls_of("print")),
    (r"(?:try|except)[\s-]+(?:blocks?|clauses?|statements?)", of_kind(ast.Try)),
    (r"assert(?:s|ions?)", of_kind(ast.Assert)),
    (r"slic(?:e|es|ing)|ind(?:ex|exes|ices|exing)|subscripts?", of_kind(ast.Subscript)),
)  # fmt: skip
_COMPILED = tuple((re.compile(rf"\b{_ORDINAL}(?:{words})\b", re.IGNORECASE), finder) for words, finder in _PHRASES)


def find_structures(comment: str, nodes: list[Node]) -> Iterator[CodeReference]:
    """Yield the references to parts of a program by their kind, such as "the second loop".

    nodes: the program's, in text order. Of nested phrases the longest counts. A phrase with an ordinal refers to one
    node; one that fits more than three nodes is skipped, and so is one that the comment asks to add.
    """
    taken: list[Range] = []
    matches = [(match, finder) for pattern, finder in _COMPILED for match in pattern.finditer(comment)]
    for match, finder in sorted(matches, key=lambda pair: pair[0].start() - pair[0].end()):
        start, end = match.span()
        if any(start < other_end and other_start < end for other_start, other_end in taken):
            continue
        taken.append((start, end))
        if _ASKS_TO_ADD.search(comment[:start]):
            continue
        found = _select_nodes(finder(nodes), match["ordinal"])
        if found:
            yield (start, end), found, 0.7 / len(found)


def _select_nodes(found: Sequence[Node], ordinal: str | None) -> Sequence[Node]:
    if ordinal is None:
        return found if len(found) <= _MAX_NODES else []
    number = _ORDINALS[ordinal.lower()]
    return [found[number]] if -len(found) <= number < len(found) else []


def find_identifiers(comment: str, nodes: list[Node]) -> Iterator[CodeReference]:
    """Yield the references to variables, functions and attributes by name.

    A plain word such as "count" counts only in backticks or quotes, before "()", or beside "variable", "function" and
    the like. A variable resolves to its assignments, else its uses; a function to its definition, else its calls.
    """
    known = _nodes_by_name(nodes)
    for match in re.finditer(
        r"(?P<open>[`'\"“‘]?)(?P<name>[^\W\d]\w*)(?P<call>\([^()\n]*\))?(?P<close>[`'\"”’]?)", comment
    ):
        found = known.get(match["name"], [])
        if not 0 < len(found) <= _MAX_NODES:
            continue
        marked = bool(match["open"] and match["close"]) or match["call"] is not None
        is_named = _is_compound_name(match["name"]) or _has_kind_beside(match) or _is_judged(match)
        if marked or is_named:
            yield match.span("name"), found, 0.8 / len(found)


def _is_compound_name(name: str) -> bool:
    return "_" in name.strip("_") or (name != name.lower() and name[1:] != name[1:].lower())


def _has_kind_beside(match: re.Match[str]) -> bool:
    before, after = match.string[: match.start("name")], match.string[match.end("name") :]
    has_kind = _KIND_BEFORE.search(before) or _KIND_AFTER.match(after)
    return bool(has_kind) and match["name"] not in ("a", "A", "I")


def _is_judged(match: re.Match[str]) -> bool:
    """Whether the name is the subject of its sentence: "right is never decremented"."""
    before, after = match.string[: match.start("name")], match.string[match.end("name") :]
    return bool(_STARTS_CLAUSE.search(before)) and bool(_VERB_AFTER.match(after)) and match["name"] not in ("it", "I")


def _nodes_by_name(nodes: list[Node]) -> dict[str, list[Node]]:
    stored, used = defaultdict[str, list[Node]](list), defaultdict[str, list[Node]](list)
    for node in nodes:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            stored[node.name].append(node)
        elif isinstance(node, ast.Name):
            (stored if isinstance(node.ctx, ast.Store) else used)[node.id].append(node)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            used[node.func.attr].append(node)
    return used | stored
