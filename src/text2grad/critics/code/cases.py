"""Splits test scripts into cases that run one by one."""

from __future__ import annotations

import ast
import builtins
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from text2grad.align.answer.program import parse_python

_OPERATORS = {
    ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=",
    ast.Is: "is", ast.IsNot: "is not", ast.In: "in", ast.NotIn: "not in",
}  # fmt: skip

_ALIASES = {"np": "numpy"}  # of modules that tests use without importing them
_DEFINITIONS = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


@dataclass(frozen=True)
class Case:
    """A test case: `source` runs after `setup`. Where it is one comparison, its parts are given as well.

    is_shown: the prompt shows this test, so passing it proves nothing.
    """

    source: str
    setup: str = ""
    left: str | None = None
    operator: str | None = None
    right: str | None = None
    is_shown: bool = False


@dataclass(frozen=True)
class Suite:
    """The cases of one task and the code to run before each.

    required_names: what the tests use but do not define: the answer has to. module_names: modules of the standard
    library that they use without importing them, by alias. imports: the modules that they do import, by the
    statements in import_statements.
    """

    setup: str
    cases: tuple[Case, ...]
    required_names: frozenset[str]
    module_names: tuple[tuple[str, str], ...] = ()
    imports: tuple[str, ...] = ()
    import_statements: str = ""

    @property
    def counted_cases(self) -> tuple[Case, ...]:
        """The cases that count when they pass: those that the prompt does not show, or all if it shows all."""
        return tuple(case for case in self.cases if not case.is_shown) or self.cases


def parse_tests(tests: str, entry_point: str | None = None) -> Suite | None:
    """Split a test script into cases; None if it does not parse, or has tests that only a test runner can run.

    Asserts at the top level are cases, each after the statements before it. Functions and methods of test classes named
    `test...`, and the statements with asserts in `def check(candidate)`, are cases that run after everything else.
    `check` gets the argument that the script passes to it, else `entry_point`. Any other script is a single case. Code
    under `if __name__ == "__main__"` runs like the rest. Asserts of constants and built-in functions alone, such as
    `assert True`, test nothing and are left out.
    """
    module = parse_python(tests)
    if module is None:
        return None
    statements = [statement for statement in _unguarded(module.body) if not _is_runner_call(statement)]
    if any(_needs_runner(node) for node in ast.walk(module)):
        return None
    function = next(filter(None, map(_check_argument, module.body)), None) or entry_point
    setup: list[ast.stmt] = []
    later: list[ast.stmt] = []  # set-up after the first assert
    current = setup
    found: list[tuple[Case, bool]] = []  # with whether the case runs after everything else
    for statement in statements:
        if isinstance(statement, ast.FunctionDef) and statement.name == "check" and len(statement.args.args) == 1:
            found += [(case, True) for case in _check_cases(statement, function)]
        elif not isinstance(statement, _DEFINITIONS) and _has_assert(statement):
            if not _tests_nothing(statement):
                found.append((_make_case(statement, _unparse(later)), False))
            later += _replay(statement)
            current = later
        elif _check_argument(statement) is None:
            found += [(case, True) for case in _test_cases(statement)]
            current.append(statement)
    rest = _unparse(later)
    cases = [replace(case, setup=rest + case.setup) if is_last else case for case, is_last in found]
    if not cases:
        whole = tests if statements == module.body else _unparse(statements)
        setup, cases = [], [Case(whole)]
    free = _free_names(module, function)
    modules = _module_names(module, free)
    statements = [one for one in module.body if isinstance(one, ast.Import | ast.ImportFrom)]
    return Suite(
        setup=_unparse(setup),
        cases=tuple(cases),
        required_names=free - {alias for alias, _ in modules},
        module_names=modules,
        imports=_imports(module),
        import_statements=_unparse([one for one in statements if getattr(one, "module", "") != "answer"]),
    )


def _check_cases(check: ast.FunctionDef, function: str | None) -> list[Case]:
    """Return a case per statement of `check` with an assert, each after the statements before it."""
    before: list[ast.stmt] = []
    found = []
    name = check.args.args[0].arg
    binding = f"{name} = {function}\n" if function and function != name else ""
    for statement in check.body:
        if _tests_nothing(statement):
            continue
        if _has_assert(statement):
            for node in ast.walk(statement):
                if isinstance(node, ast.Name) and node.id == name and function:
                    node.id = function  # critiques show the name in the completion
            found.append(_make_case(statement, binding + _unparse(before)))
            before += _replay(statement)
        else:
            before.append(statement)
    return found


def _replay(statement: ast.stmt) -> list[ast.stmt]:
    """Return code that repeats the side effects of a case for later cases, whether it passes or not."""
    if isinstance(statement, ast.Assert):
        return []
    body = ast.unparse(statement).replace("\n", "\n    ")
    return ast.parse(f"try:\n    {body}\nexcept AssertionError:\n    pass").body


def _make_case(statement: ast.stmt, setup: str) -> Case:
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


def _tests_nothing(statement: ast.stmt) -> bool:
    names = {node.id for node in ast.walk(statement) if isinstance(node, ast.Name)}
    return isinstance(statement, ast.Assert) and names <= set(dir(builtins)) and not _calls(statement)


def _calls(node: ast.AST) -> list[str]:
    """Return the names that are called directly."""
    calls = [one for one in ast.walk(node) if isinstance(one, ast.Call)]
    return [call.func.id for call in calls if isinstance(call.func, ast.Name)]


def _has_assert(statement: ast.AST) -> bool:
    return any(isinstance(node, ast.Assert) for node in ast.walk(statement))


def _unguarded(statements: Sequence[ast.stmt]) -> Iterator[ast.stmt]:
    for statement in statements:
        if isinstance(statement, ast.If) and ast.unparse(statement.test) == "__name__ == '__main__'":
            yield from statement.body
        else:
            yield statement


def _is_runner_call(statement: ast.stmt) -> bool:
    """Whether the statement starts a test runner, which would exit before the cases run."""
    call = statement.value if isinstance(statement, ast.Expr) else None
    return isinstance(call, ast.Call) and ast.unparse(call.func) in ("unittest.main", "pytest.main")


def _test_cases(statement: ast.stmt) -> list[Case]:
    """Return the cases of a test function or of a test class."""
    if isinstance(statement, ast.ClassDef):
        methods = [m.name for m in statement.body if isinstance(m, ast.FunctionDef) and m.name.startswith("test")]
        if any(ast.unparse(base).endswith("TestCase") for base in statement.bases):
            return [Case(f"{statement.name}({name!r}).debug()") for name in methods]
        return [Case(f"{statement.name}().{name}()") for name in methods] if statement.name.startswith("Test") else []
    if isinstance(statement, ast.FunctionDef) and statement.name.startswith("test_"):
        return [Case(f"{statement.name}()")]
    if isinstance(statement, ast.AsyncFunctionDef) and statement.name.startswith("test_"):
        return [Case(f"asyncio.run({statement.name}())", setup="import asyncio\n")]
    return []


def _needs_runner(node: ast.AST) -> bool:
    """Whether a node is a test with fixtures or decorators."""
    if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) or not node.name.startswith("test_"):
        return False
    required = [argument.arg for argument in node.args.args[: len(node.args.args) - len(node.args.defaults)]]
    return bool(node.decorator_list) or required not in ([], ["self"])


def _check_argument(statement: ast.stmt) -> str | None:
    """Return `name` of a statement `check(name)`."""
    match statement:
        case ast.Expr(value=ast.Call(func=ast.Name(id="check"), args=[ast.Name(id=name)])):
            return name
    return None


def _unparse(statements: Sequence[ast.stmt]) -> str:
    return "".join(ast.unparse(statement) + "\n" for statement in statements)


def _free_names(module: ast.Module, function: str | None) -> frozenset[str]:
    names = [node for node in ast.walk(module) if isinstance(node, ast.Name)]
    used = {node.id for node in names if isinstance(node.ctx, ast.Load)}
    bound = {node.id for node in names if isinstance(node.ctx, ast.Store)}
    for node in ast.walk(module):
        if isinstance(node, _DEFINITIONS):
            bound.add(node.name)
        elif isinstance(node, ast.arg):
            bound.add(node.arg)
        elif isinstance(node, ast.ExceptHandler) and node.name:
            bound.add(node.name)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            bound |= {(alias.asname or alias.name).partition(".")[0] for alias in node.names}
    free = used - bound - set(dir(builtins))
    return frozenset(free | ({function} if function else set())) or _tested_built_in(module, bound)


def _tested_built_in(module: ast.Module, bound: set[str]) -> frozenset[str]:
    """Return the built-in name that most asserts call first, for tests of a function that is named like one."""
    asserts = [statement for statement in module.body if isinstance(statement, ast.Assert)]
    called = Counter(name for statement in asserts for name in _calls(statement)[:1] if name not in bound)
    return frozenset(name for name, _ in called.most_common(1))


def _module_names(module: ast.Module, free: frozenset[str]) -> tuple[tuple[str, str], ...]:
    """Return the free names that are used like modules: the judge imports them, the answer cannot replace them."""
    used = {
        one.value.id for one in ast.walk(module) if isinstance(one, ast.Attribute) and isinstance(one.value, ast.Name)
    }
    known = {name: _ALIASES.get(name, name) for name in used & free - set(_calls(module))}
    return tuple((name, found) for name, found in sorted(known.items()) if found in {"numpy", *sys.stdlib_module_names})


def _imports(module: ast.Module) -> tuple[str, ...]:
    """Return the modules that the tests import at their top level."""
    found: list[str] = []
    for statement in module.body:
        if isinstance(statement, ast.Import):
            found += [alias.name for alias in statement.names]
        elif isinstance(statement, ast.ImportFrom) and statement.module and not statement.level:
            found.append(statement.module)
    return tuple(dict.fromkeys(found))
