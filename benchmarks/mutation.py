"""Whether the tests notice changes of the code that computes rewards, advantages and updates.

mutmut changes one expression at a time and runs the tests that reach it; [tool.mutmut] in pyproject.toml names the code
and the tests. Operators of our own are added: a call is removed, an `if` is forced, a limit is dropped, minimum and
maximum are exchanged. A mutant is killed where a test fails or runs out of time.

Survivors are listed as differences, with the reason where benchmarks/mutation_survivors.py has one. What was killed is
remembered in `mutants/`, so an interrupted run continues; delete the folder to start anew. --quick: losses and state
only. At the end, all tests have to pass without a change in the same place. Takes about 10 minutes of one core.
"""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Iterator
from itertools import takewhile
from typing import Any, cast

import harness
import libcst as cst
from _pytest.nodes import Node
from mutation_survivors import reason
from mutmut.__main__ import _run, collect_source_file_mutation_data
from mutmut.mutation import file_mutation
from mutmut.mutation.diff_apply import get_diff_for_mutant
from mutmut.mutation.mutators import mutation_operators
from mutmut.state import state
from mutmut.stats import status_by_exit_code
from mutmut.workers.isolation import ForkServerRunner, get_mutant_runner

MODULES = [
    "rewards.credit",
    "trainer.advantages",
    "trainer.batch",
    "trainer.losses",
    "trainer.update",
    "trainer.state",
    "trainer.trainer",
    "align.tokens",
    "critics.base",
]
QUICK = ["trainer.losses", "trainer.state"]
STEP = {"step", "set_learning_rate"}  # of the trainer; the rest of its class is files, logs and distribution
LIMITS = {"clamp", "clip", "detach", "nan_to_num"}
EXCHANGED = {"min": "max", "max": "min", "minimum": "maximum", "maximum": "minimum"}
KILLED = ("killed", "timeout")


def without_call(node: cst.Expr) -> Iterator[cst.CSTNode]:
    """`f(x)` as a statement becomes `pass`."""
    if isinstance(node.value, cst.Call):
        yield cst.Pass()


def forced_condition(node: cst.If) -> Iterator[cst.CSTNode]:
    """The condition of an `if` becomes True, and False."""
    for constant in ("True", "False"):
        yield node.with_changes(test=cst.Name(constant))


def without_limit(node: cst.Call) -> Iterator[cst.CSTNode]:
    """`x.clamp(...)` becomes `x`."""
    if isinstance(node.func, cst.Attribute) and node.func.attr.value in LIMITS:
        yield node.func.value


def exchanged_extreme(node: cst.Call) -> Iterator[cst.CSTNode]:
    """`min(...)` becomes `max(...)`, and `torch.minimum(...)` becomes `torch.maximum(...)`."""
    name = node.func.attr if isinstance(node.func, cst.Attribute) else node.func
    if isinstance(name, cst.Name) and name.value in EXCHANGED:
        yield node.with_deep_changes(name, value=EXCHANGED[name.value])


def prepare_mutmut() -> None:
    """Add the operators, change only the steps of the trainer, and run the fast tests of a mutant first."""
    operators: Any = [
        (cst.Expr, without_call),
        (cst.If, forced_condition),
        (cst.Call, without_limit),
        (cst.Call, exchanged_extreme),
    ]
    cast(list[Any], mutation_operators).extend(operators)
    Node._nodeid = property(lambda self: self.nodeid)  # type: ignore[attr-defined]  # mutmut 3.8 reads pytest 8's name
    create, submit = file_mutation.create_mutations, ForkServerRunner.submit

    def create_chosen(filename: str, *arguments: Any) -> Any:
        module, mutations, *ignored = create(filename, *arguments)
        if str(filename).endswith("trainer/trainer.py"):
            functions = [getattr(m.contained_by_top_level_function, "name", None) for m in mutations]
            mutations = [m for m, name in zip(mutations, functions, strict=True) if name and name.value in STEP]
        return module, mutations, *ignored

    def submit_sorted(self: ForkServerRunner, mutant: str, tests: list[str], limit: int, estimate: float) -> None:
        submit(self, mutant, sorted(tests, key=lambda test: (state().duration_by_test[test], test)), limit, estimate)

    file_mutation.create_mutations = create_chosen
    ForkServerRunner.submit = submit_sorted  # type: ignore[method-assign]


def forget_survivors() -> None:
    """Have the survivors of an earlier run tested again: the tests may have changed."""
    _, modules = collect_source_file_mutation_data(mutant_names=[])
    for module in modules.values():
        for mutant, code in module.exit_code_by_key.items():
            if status_by_exit_code[code] not in KILLED:
                module.exit_code_by_key[mutant] = None
        if module.exit_code_by_key:
            module.save()


def check_control() -> None:
    """Exit if the tests fail without a change where mutants are tested: then their failures would mean nothing."""
    runner = get_mutant_runner(1)
    runner.startup()
    try:
        runner.submit("text2grad.nothing__mutmut_0", list(state().duration_by_test), 10_000, 10_000.0)
        runner.signal_work_complete()
        control = runner.wait_for_result()
    finally:
        runner.shutdown()
    if control.exit_code != 0:
        sys.exit(f"the tests fail without a change (exit code {control.exit_code}), so no mutant counts as killed")


def changed_lines(mutant: str) -> tuple[str, str]:
    """The lines before and after the change."""
    lines = [line for line in get_diff_for_mutant(mutant).splitlines() if line[:3] not in ("---", "+++", "@@ ")]
    before, after = (" ".join(" ".join(line[1:] for line in lines if line[:1] == sign).split()) for sign in "-+")
    return before, after


def describe(before: str, after: str, context: int = 30) -> str:
    """`before -> after`, shortened to the surroundings of what differs."""
    same = _common_length(before, after)
    same_end = min(_common_length(before[::-1], after[::-1]), len(before) - same, len(after) - same)

    def shortened(line: str) -> str:
        start, end = max(0, same - context), min(len(line), len(line) - same_end + context)
        return f"{'…' * (start > 0)}{line[start:end]}{'…' * (end < len(line))}"

    return f"{shortened(before)} -> {shortened(after)}"


def _common_length(one: str, other: str) -> int:
    """Length of the longest common prefix."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))


def measure(modules: list[str]) -> dict[str, Any]:
    """Return the number of mutants and of killed ones of every module, and the survivors."""
    counts, survivors = {}, []
    for module in modules:
        mutants, _ = collect_source_file_mutation_data(mutant_names=[f"text2grad.{module}.*"])
        statuses = {name: status_by_exit_code[code] for _, name, code in mutants}
        by_status = Counter(statuses.values())
        killed = sum(by_status[status] for status in KILLED)
        counts[module] = {"mutants": len(statuses), "killed": killed, "timeouts": by_status["timeout"]}
        for mutant in (name for name, status in statuses.items() if status not in KILLED):
            function = mutant.rpartition(".")[2].partition("__mutmut_")[0].replace("ǁ", ".").removeprefix("x_")
            place, (before, after) = f"{module}.{function.removeprefix('x.')}", changed_lines(mutant)
            survivor = {"function": place, "change": describe(before, after), "status": statuses[mutant]}
            survivors.append(survivor | {"reason": reason(place, after)})
    total, killed = (sum(count[key] for count in counts.values()) for key in ("mutants", "killed"))
    return {
        "modules": counts,
        "mutants": total,
        "killed": killed,
        "killed_share": killed / total,
        "survivors_without_a_reason": sum(not survivor["reason"] for survivor in survivors),
        "survivors": survivors,
    }


def main() -> None:
    """Test all mutants; the bar is 90% killed."""
    args = harness.options(__doc__ or "")
    os.chdir(harness.ROOT)
    os.environ["CI"] = "1"  # Hypothesis draws the same examples for every mutant
    modules = QUICK if args.quick else MODULES
    prepare_mutmut()
    forget_survivors()
    _run([f"text2grad.{module}.*" for module in QUICK] if args.quick else [], max_children=1)
    check_control()
    figures = measure(modules)
    rows = [
        [module, str(count["mutants"]), str(count["killed"]), f"{count['killed'] / count['mutants']:.1%}"]
        for module, count in figures["modules"].items()
    ]
    harness.show("Mutants", ["module", "mutants", "killed", "share"], rows)
    for survivor in figures["survivors"]:
        print(f"{survivor['function']}: {survivor['change']}\n    {survivor['reason'] or survivor['status']}")
    harness.report("mutation", figures, {"killed_share": harness.Bar(at_least=0.9)}, args)


if __name__ == "__main__":
    main()
