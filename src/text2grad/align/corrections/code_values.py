"""Code that a clause gives in the place of a program's: "right should be len(text) - 1", "pop(0) should be pop()".

What is to be replaced is code that the program has exactly once, or the value of a variable; what replaces it has to be
code too, and the program has to parse with it.
"""

# ruff: noqa: E501  one pattern per line

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Iterator, Sequence
from keyword import iskeyword

from text2grad.align.answer.program import Program, node_extent, parse_python
from text2grad.align.corrections.restated_values import RestatedValue, is_hedged
from text2grad.schema import Range
from text2grad.text.lexicon import word_set

_TOKEN = re.compile(
    r"[^\W\d]\w*|\d+(?:\.\d+)?|'[^'\n]*'|\"[^\"\n]*\"|\*\*=?|//=?|<<|>>|[-+*/%<>=!]=|->|[^\s\w]"
)  # of Python, near enough
_SHOULD = re.compile(
    r"\s(?:should|must|ought to|needs? to|has to)\s+(?:really |rather |actually |probably |instead )?"
    r"(?:(?P<starts>start|begin|be initiali[sz]ed|be initially)(?: (?:at|with|from|as|to|off at))?|be set to|be|equal|read|become)"
    r"(?: just| something like)?:?\s+",
    re.IGNORECASE,
)
_SET = re.compile(
    r"\b(?P<starts>start|initiali[sz]e|set)\s+(?P<old>`?[^\W\d]\w*`?)\s+(?:at|to|with|from|as)\s+", re.IGNORECASE
)
_ASSIGNED = re.compile(
    r"(?P<cue>^|\b(?:should be|must be|use|want|need|write|make it|make that|try|better|say|prefer|rather|instead)[:,]?\s+)"
    r"[`\s]*(?P<old>[^\W\d]\w*)\s*=(?!=)\s*",
    re.IGNORECASE,
)
_IS_BETTER = re.compile(
    r"[`\s.!]*$|`?,?\s+(?:instead|(?:would|should)\s+be\b|is\s+(?:better|safer|right|correct|simpler|what)|not\b|because|since|and then)",
    re.IGNORECASE,
)  # not "n = 0 crashes", which is a case
_INSTEAD_OF = re.compile(
    r"\s*(?:\s(?:instead of|rather than|in place of)|,?\s+not)\s+(?:returning\s+|using\s+)?(?P<old>\S.*)",
    re.IGNORECASE | re.DOTALL,
)
_LEADS_IN = re.compile(
    r"[^\w\[({'\"`-]*(?:(?:you|it|should|must|could|please|just|use|return|returning|write|say|be|simply|better)\s+)*",
    re.IGNORECASE,
)
_RETURNED = re.compile(r"\breturn(?:ing)?\s+(?=\S)", re.IGNORECASE)
_INSTEAD = re.compile(r"\s+(?:instead|here|there|not|rather than|would be|should be)\b.*", re.IGNORECASE | re.DOTALL)
_TAIL = re.compile(
    r"(?:[\s.,;:!?`)]*$|\s*[,;:(–—-]\s*(?!(?:if|when|unless|for|in case)\b)"
    r"|\s+(?:instead|here|there|because|since|so|otherwise|not|rather|to|would|is|as|and|but)\b)",
    re.IGNORECASE,
)
_OPERATORS = word_set("+ - * / // % ** < > <= >= == != and or not in is")
_ASSIGNS = ("=", "+=", "-=", "*=", "/=")
_BUILTINS = frozenset(dir(builtins))
_MAX_OLD, _MAX_NEW = 8, 60  # words, characters


def find_code_value(comment: str, clause: Range, program: Program) -> RestatedValue | None:
    """Return the code that a clause gives in the place of the program's; None if it asks, hedges or is not certain."""
    text = comment[slice(*clause)]
    if is_hedged(text):
        return None
    for old, new, starts in _requests(text, program):
        for place in _places(old, text[slice(*new)], program, starts=starts):
            if _fits(text[slice(*new)], place, program):
                begin, end = (program.start + offset for offset in place)
                return RestatedValue((clause[0] + new[0], clause[0] + new[1]), (begin, end))
    return None


def _requests(text: str, program: Program) -> Iterator[tuple[list[str], Range, bool]]:
    """Yield wordings of what may be replaced, the longest first, where the new code is, and whether it is a start."""
    lead = _LEADS_IN.match(text)
    new = _new_code(text, lead.end(), program) if lead else None
    given = _INSTEAD_OF.match(text, new[1] + (text[new[1] : new[1] + 1] == "`")) if new else None
    if new and given:
        ends = [match.end() for match in _TOKEN.finditer(given["old"])]
        yield [given["old"][:end] for end in reversed(ends)], new, False
    for match in _SHOULD.finditer(text):
        if new := _new_code(text, match.end(), program):
            words = text[: match.start()].split()[-_MAX_OLD:]
            yield [" ".join(words[i:]) for i in range(len(words))], new, match["starts"] is not None
    for match in _SET.finditer(text):
        if new := _new_code(text, match.end(), program):
            yield [match["old"]], new, True
    for match in _ASSIGNED.finditer(text):
        new = _new_code(text, match.end(), program)
        if new and (match["cue"] or _IS_BETTER.match(text, new[1])):
            yield [match["old"]], new, False
    for match in _RETURNED.finditer(text):
        new = _new_code(text, match.end(), program)
        if new and (_INSTEAD.fullmatch(text.rstrip(" .!`"), new[1]) or _is_all(text, match.start(), new)):
            yield ["return"], new, False


def _is_all(text: str, start: int, new: Range) -> bool:
    """Whether a clause says no more than to return an expression that is no constant, for which a case may be meant."""
    leads = _LEADS_IN.match(text, 0, start)
    is_all = leads is not None and leads.end() == start and not text[new[1] :].strip(" .!`")
    return is_all and not isinstance(getattr(_parse(text[slice(*new)]), "value", None), ast.Constant | ast.Name)


def _new_code(text: str, start: int, program: Program) -> Range | None:
    """Return the longest code that begins at `start`, if what follows it does not restrict it ("when it is empty")."""
    if text[start : start + 1] == "`":
        end = text.find("`", start + 1)
        return (start + 1, end) if end > 0 and _is_code(text[start + 1 : end], program) else None
    ends = [match.end() for match in _TOKEN.finditer(text, start, start + _MAX_NEW)]
    for end in reversed(ends):
        if text[end - 1] != "." and _TAIL.match(text, end) and _is_code(text[start:end], program):
            return start, end
    return None


def _is_code(text: str, program: Program) -> bool:
    """Whether a text is an operator, an expression that is no plain word, a variable, or an assignment."""
    if text in _OPERATORS:
        return not text.isalpha()
    match statement := _parse(text):
        case ast.Expr(value=ast.Name(id=name)):
            return any(isinstance(node, ast.Name) and node.id == name for node in program.own_nodes())
        case ast.Expr(value=ast.Tuple()):
            return False
        case ast.Expr() | ast.Assign() | ast.AugAssign() | ast.Return():
            return _is_sensible(statement, program)
    return False


def _parse(text: str) -> ast.stmt | None:
    """Return the only statement of a text; None if it is none or more."""
    module = parse_python(text)
    return module.body[0] if module and len(module.body) == 1 else None


def _places(olds: Sequence[str], new: str, program: Program, *, starts: bool) -> Iterator[Range]:
    """Yield the code [start, end) of the program that is meant by the longest of some wordings that it has."""
    for old in olds:
        name = old.strip("`'\"").rstrip(",:")
        if name == "return":
            values = [node.value for node in program.own_nodes() if isinstance(node, ast.Return) and node.value]
        elif name.isidentifier():
            if new.isidentifier() and not iskeyword(new):
                continue  # another name for it
            values = _assigned(name, new, program, starts=starts)
        else:
            yield from _verbatim(old.replace("`", ""), new, program.code)
            continue
        if len(values) == 1 and (place := program.span(*node_extent(values[0]))):
            yield place[0] - program.start, place[1] - program.start


def _assigned(name: str, new: str, program: Program, *, starts: bool) -> list[ast.expr]:
    """Return the values assigned to a variable; of several the first, or those with variables, as the new one has."""
    values = list(_values_of(name, program))
    if len(values) == 1 and not starts and _is_counter(name, values[0], new, program):
        return []  # "total should be sum(numbers)": the loop that counts would have to go too
    if len(values) < 2:
        return values
    if starts:
        return values[:1]
    known = {node.id for node in program.own_nodes() if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    names = (_names(new) & known) - {name}
    uses = [(_names(ast.unparse(value)) & known) - {name} for value in values]
    return [value for value, own in zip(values, uses, strict=True) if bool(names & own) == bool(names) == bool(own)]


def _is_counter(name: str, value: ast.expr, new: str, program: Program) -> bool:
    """Whether a variable begins as a constant and is counted up, and should be no constant."""
    counted = [node.target for node in program.own_nodes() if isinstance(node, ast.AugAssign)]
    is_counted = any(isinstance(target, ast.Name) and target.id == name for target in counted)
    return (
        is_counted
        and isinstance(value, ast.Constant)
        and not isinstance(getattr(_parse(new), "value", None), ast.Constant)
    )


def _names(code: str) -> set[str]:
    return set(re.findall(r"[^\W\d]\w*", code))


def _values_of(name: str, program: Program) -> Iterator[ast.expr]:
    nodes = [node for node in program.own_nodes() if isinstance(node, ast.Assign | ast.AnnAssign)]
    for node in sorted(nodes, key=lambda node: (node.lineno, node.col_offset)):
        for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
            pairs = [(target, node.value)]
            if isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple):
                pairs = list(zip(target.elts, node.value.elts, strict=False))
            yield from (value for own, value in pairs if isinstance(own, ast.Name) and own.id == name and value)


def _verbatim(old: str, new: str, code: str) -> Iterator[Range]:
    """Yield where the program has the tokens of some code, if exactly once; of an assignment, its value."""
    tokens = [match[0] for match in _TOKEN.finditer(old)]
    if not tokens or all(token.isidentifier() for token in tokens):
        return
    own = list(_TOKEN.finditer(code))
    count = len(tokens)
    texts = [match[0] for match in own]
    starts = [i for i in range(len(own) - count + 1) if texts[i : i + count] == tokens]
    found = [i for i in starts if i == 0 or texts[i - 1] not in ("def", "class")]  # not the header of a function
    if len(found) != 1:
        return
    first, last = found[0], found[0] + count - 1
    is_value = not isinstance(_parse(new), ast.Assign | ast.AugAssign)
    if is_value and (marks := [i for i, token in enumerate(tokens[:-1]) if token in _ASSIGNS]):
        first += marks[0] + 1
    yield own[first].start(), own[last].end()


def _is_sensible(code: ast.stmt, program: Program) -> bool:
    """Whether code uses only names that the program, the language or a module has, and calculates with no function."""
    nodes = program.nodes()
    variables = {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    variables |= {node.arg for node in nodes if isinstance(node, ast.arg)}
    parts = list(ast.walk(code))
    operands: list[ast.expr] = []
    for node in parts:
        if isinstance(node, ast.BinOp | ast.Compare):
            operands += [node.left, *([node.right] if isinstance(node, ast.BinOp) else node.comparators)]
        elif isinstance(node, ast.BoolOp):
            operands += node.values
    if any(isinstance(node, ast.Name) and node.id not in variables for node in operands):
        return False  # "len - 1"
    known = _BUILTINS | variables | {node.id for node in nodes if isinstance(node, ast.Name)}
    known |= {node.name for node in nodes if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    modules = {node.value.id for node in parts if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)}
    own = {node.id for node in parts if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}
    return own <= known | modules


def _fits(new: str, place: Range, program: Program) -> bool:
    """Whether the program parses with the new code in this place, and is another one."""
    old = program.code[slice(*place)]
    code = program.code[: place[0]] + new + program.code[place[1] :]
    return parse_python(program.prefix + code) is not None and "".join(old.split()) != "".join(new.split())
