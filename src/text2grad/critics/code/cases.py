"""Tests, taken apart into cases that can be run one by one."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Sequence
from dataclasses import dataclass

from text2grad.align.program import tree

_OPERATORS = {
    ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=",
    ast.Is: "is", ast.IsNot: "is not", ast.In: "in", ast.NotIn: "not in",
}  # fmt: skip


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
    """Take a test script apart; None if it does not parse.

    Asserts at the top level are cases; so are the statements with asserts in `def check(candidate)` and functions
    named `test_...` without parameters. `check` gets `entry_point`, else what the script itself passes to it. All
    other statements are set-up. A script without any of these is one case as a whole.
    """
    module = tree(tests)
    if module is None:
        return None
    setup: list[ast.stmt] = []
    cases: list[Case] = []
    called = _argument_of_check(module) or entry_point
    for statement in module.body:
        if isinstance(statement, ast.FunctionDef) and statement.name == "check" and len(statement.args.args) == 1:
            cases += _checks(statement, called)
        elif isinstance(statement, ast.FunctionDef) and _is_test(statement):
            setup.append(statement)
            cases.append(Case(f"{statement.name}()"))
        elif not isinstance(statement, ast.FunctionDef | ast.ClassDef) and _asserts(statement):
            cases.append(_case(statement, ""))
        elif not _calls_check(statement):
            setup.append(statement)
    if not cases:
        setup, cases = [], [Case(tests)]
    return Suite(_text(setup), tuple(cases), _free_names(module, called), _imports(module))


def _checks(function: ast.FunctionDef, called: str | None) -> list[Case]:
    """Each statement of `check` that asserts something, after those before it that do not."""
    before: list[ast.stmt] = []
    found = []
    name = function.args.args[0].arg
    binding = f"{name} = {called}\n" if called and called != name else ""
    for statement in function.body:
        if _asserts(statement):
            found.append(_case(statement, binding + _text(before), {name: called} if called else {}))
        else:
            before.append(statement)
    return found


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


def _is_test(function: ast.FunctionDef) -> bool:
    return function.name.startswith("test_") and not function.args.args and not function.decorator_list


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
