"""Tests, taken apart into cases that can be run one by one."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from text2grad.align.program import parse_python

_OPERATORS = {
    ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=",
    ast.Is: "is", ast.IsNot: "is not", ast.In: "in", ast.NotIn: "not in",
}  # fmt: skip

_DEFINITIONS = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


@dataclass(frozen=True)
class Case:
    """One thing to check: `source` runs after `setup`. Where it compares two values, they are named as well."""

    source: str
    setup: str = ""
    left: str | None = None
    operator: str | None = None
    right: str | None = None


@dataclass(frozen=True)
class Suite:
    """All cases of one task, what to run before each, and the names that they use but do not define."""

    setup: str
    cases: tuple[Case, ...]
    wanted: frozenset[str]
    imports: tuple[str, ...]


def read_tests(tests: str, entry_point: str | None = None) -> Suite | None:
    """Take a test script apart; None if it does not parse, or has tests that only a test runner could run.

    Asserts at the top level are cases, each after the statements before it; so are the statements with asserts in
    `def check(candidate)`, functions named `test...`, and the methods named so of test classes, after everything else.
    `check` gets `entry_point`, else what the script itself passes to it. A script without any of these is one case as
    a whole. What stands under `if __name__ == "__main__"` is run like the rest.
    """
    module = parse_python(tests)
    if module is None:
        return None
    statements = [statement for statement in _unguarded(module.body) if not _starts_a_runner(statement)]
    if any(_needs_a_runner(node) for node in ast.walk(module)):
        return None
    called = _argument_of_check(module) or entry_point
    setup: list[ast.stmt] = []
    later: list[ast.stmt] = []  # what is not a case, behind the first assert
    cases: list[Case] = []
    last: list[int] = []  # cases that run after everything else
    for statement in statements:
        if isinstance(statement, ast.FunctionDef) and statement.name == "check" and len(statement.args.args) == 1:
            found = _checks(statement, called)
        elif found := _tests_of(statement):
            (later if _has_asserted(cases, last) else setup).append(statement)
        elif not isinstance(statement, _DEFINITIONS) and _asserts(statement):
            cases.append(_case(statement, _text(later)))
            later += _repeated(statement)
            continue
        else:
            if not _calls_check(statement):
                (later if _has_asserted(cases, last) else setup).append(statement)
            continue
        last += range(len(cases), len(cases) + len(found))
        cases += found
    for i in last:
        cases[i] = replace(cases[i], setup=_text(later) + cases[i].setup)
    if not cases:
        whole = tests if statements == module.body else _text(statements)
        setup, cases = [], [Case(whole)]
    return Suite(_text(setup), tuple(cases), _free_names(module, called), _imports(module))


def _checks(function: ast.FunctionDef, called: str | None) -> list[Case]:
    """Each statement of `check` that asserts something, after those before it."""
    before: list[ast.stmt] = []
    found = []
    name = function.args.args[0].arg
    binding = f"{name} = {called}\n" if called and called != name else ""
    for statement in function.body:
        if _asserts(statement):
            found.append(_case(statement, binding + _text(before), {name: called} if called else {}))
            before += _repeated(statement)
        else:
            before.append(statement)
    return found


def _repeated(statement: ast.stmt) -> list[ast.stmt]:
    """What a case leaves behind for the cases after it, whether it passes or not: a loop may collect as it asserts."""
    if isinstance(statement, ast.Assert):
        return []
    body = ast.unparse(statement).replace("\n", "\n    ")
    return ast.parse(f"try:\n    {body}\nexcept AssertionError:\n    pass").body


def _case(statement: ast.stmt, setup: str, renamed: dict[str, str] | None = None) -> Case:
    """The case as its reader knows the function: by the name that it has in the answer."""
    statement = _Renaming(renamed or {}).visit(statement)
    if not isinstance(statement, ast.Assert):
        return Case(ast.unparse(statement), setup)
    test = statement.test
    source = f"assert {ast.unparse(test)}"
    if isinstance(test, ast.Compare) and len(test.ops) == 1:
        left, right = ast.unparse(test.left), ast.unparse(test.comparators[0])
        return Case(source, setup, left, _OPERATORS[type(test.ops[0])], right)
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return Case(source, setup, ast.unparse(test.operand), "falsy")
    return Case(source, setup, ast.unparse(test), "truthy")


class _Renaming(ast.NodeTransformer):
    def __init__(self, names: dict[str, str]) -> None:
        self.names = names

    def visit_Name(self, node: ast.Name) -> ast.Name:
        return ast.copy_location(ast.Name(self.names.get(node.id, node.id), node.ctx), node)


def _asserts(statement: ast.AST) -> bool:
    return any(isinstance(node, ast.Assert) for node in ast.walk(statement))


def _has_asserted(cases: Sequence[Case], last: Sequence[int]) -> bool:
    return len(cases) > len(last)


def _unguarded(statements: Sequence[ast.stmt]) -> Iterator[ast.stmt]:
    for statement in statements:
        if isinstance(statement, ast.If) and ast.unparse(statement.test) == "__name__ == '__main__'":
            yield from statement.body
        else:
            yield statement


def _starts_a_runner(statement: ast.stmt) -> bool:
    """Tests are run one by one here; a runner would end the program after them."""
    call = statement.value if isinstance(statement, ast.Expr) else None
    return isinstance(call, ast.Call) and ast.unparse(call.func) in ("unittest.main", "pytest.main")


def _tests_of(statement: ast.stmt) -> list[Case]:
    """The tests of a function or of a class."""
    if isinstance(statement, ast.ClassDef):
        methods = [m.name for m in statement.body if isinstance(m, ast.FunctionDef) and m.name.startswith("test")]
        if _is_unittest(statement):
            return [Case(f"{statement.name}({name!r}).debug()") for name in methods]
        return [Case(f"{statement.name}().{name}()") for name in methods] if statement.name.startswith("Test") else []
    if isinstance(statement, ast.FunctionDef) and statement.name.startswith("test_"):
        return [Case(f"{statement.name}()")]
    if isinstance(statement, ast.AsyncFunctionDef) and statement.name.startswith("test_"):
        return [Case(f"asyncio.run({statement.name}())", setup="import asyncio\n")]
    return []


def _is_unittest(statement: ast.ClassDef) -> bool:
    return any(ast.unparse(base).endswith("TestCase") for base in statement.bases)


def _needs_a_runner(node: ast.AST) -> bool:
    """A test with parameters that somebody has to fill, or that a decorator changes in ways unknown here."""
    if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) or not node.name.startswith("test_"):
        return False
    required = [argument.arg for argument in node.args.args[: len(node.args.args) - len(node.args.defaults)]]
    return bool(node.decorator_list) or required not in ([], ["self"])


def _calls_check(statement: ast.stmt) -> bool:
    return _checked(statement) is not None


def _argument_of_check(module: ast.Module) -> str | None:
    return next((name for name in map(_checked, module.body) if name), None)


def _checked(statement: ast.stmt) -> str | None:
    """`name` of a statement `check(name)`."""
    match statement:
        case ast.Expr(value=ast.Call(func=ast.Name(id="check"), args=[ast.Name(id=name)])):
            return name
    return None


def _text(statements: Sequence[ast.stmt]) -> str:
    return "".join(ast.unparse(statement) + "\n" for statement in statements)


def _free_names(module: ast.Module, called: str | None) -> frozenset[str]:
    names = [node for node in ast.walk(module) if isinstance(node, ast.Name)]
    used = {node.id for node in names if isinstance(node.ctx, ast.Load)}
    bound = {node.id for node in names if isinstance(node.ctx, ast.Store)}
    for node in ast.walk(module):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            bound.add(node.name)
        elif isinstance(node, ast.arg):
            bound.add(node.arg)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            bound |= {(alias.asname or alias.name).partition(".")[0] for alias in node.names}
    wanted = used - bound - set(dir(builtins))
    return frozenset(wanted | ({called} if called else set()))


def _imports(module: ast.Module) -> tuple[str, ...]:
    """The modules that the tests import at their top level."""
    found: list[str] = []
    for statement in module.body:
        if isinstance(statement, ast.Import):
            found += [alias.name for alias in statement.names]
        elif isinstance(statement, ast.ImportFrom) and statement.module and not statement.level:
            found.append(statement.module)
    return tuple(dict.fromkeys(found))
