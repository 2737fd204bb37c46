"""Whether the tests notice changes of the code that computes rewards, advantages and updates.

mutmut changes one expression at a time and runs the tests that reach it; [tool.mutmut] in pyproject.toml names the code
and the tests. Operators of our own are added: a call is removed, the condition of an `if` is forced, limits are dropped,
minimum and maximum are exchanged. A mutant is killed where a test fails. Of the trainer, only a step is changed.

Survivors are printed as differences, with the reason where `SURVIVORS` has one. --quick: the losses and the state only.
Takes about 1 hour of one core; work that has been done is kept in `mutants/` until the code changes.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from typing import Any, cast

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ["CI"] = "1"  # Hypothesis draws the same examples for every mutant

import harness
import libcst as cst
from _pytest.nodes import Node
from mutation_survivors import SURVIVORS
from mutmut.__main__ import _run, collect_source_file_mutation_data
from mutmut.mutation.diff_apply import get_diff_for_mutant
from mutmut.mutation.mutators import mutation_operators
from mutmut.state import state
from mutmut.stats import status_by_exit_code
from mutmut.workers.isolation import ForkServerRunner

MODULES = [
    "trainer.losses",
    "trainer.state",
    "rewards.credit",
    "critics.base",
    "align.tokens",
    "trainer.batch",
    "trainer.advantages",
    "trainer.update",
]
PARTS = {name: f"text2grad.{name}.*" for name in MODULES} | {
    "trainer.trainer: step": "text2grad.trainer.trainer.xǁText2GradTrainerǁstep__mutmut_*",
    "trainer.trainer: set_learning_rate": "text2grad.trainer.trainer.xǁText2GradTrainerǁset_learning_rate__mutmut_*",
}
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


def prepare() -> None:
    """Add the operators, and adapt mutmut 3.8: to pytest 9, and to run the fast tests of a mutant first."""
    operators: Any = [
        (cst.Expr, without_call),
        (cst.If, forced_condition),
        (cst.Call, without_limit),
        (cst.Call, exchanged_extreme),
    ]
    cast(list[Any], mutation_operators).extend(operators)
    Node._nodeid = property(lambda self: self.nodeid)  # type: ignore[attr-defined]
    submit = ForkServerRunner.submit

    def submit_sorted(self: ForkServerRunner, mutant: str, tests: list[str], limit: int, estimate: float) -> None:
        submit(self, mutant, sorted(tests, key=lambda test: (state().duration_by_test[test], test)), limit, estimate)

    ForkServerRunner.submit = submit_sorted  # type: ignore[method-assign]


def results(patterns: list[str]) -> dict[str, dict[str, str]]:
    """The status of every mutant that was tested, by part and name."""
    found: dict[str, dict[str, str]] = {}
    for part, pattern in PARTS.items():
        if pattern in patterns:
            mutants, _ = collect_source_file_mutation_data(mutant_names=[pattern])
            found[part] = {name: status_by_exit_code[code] for _, name, code in mutants}
    return found


def change(mutant: str) -> str:
    """The changed lines of a mutant: `before -> after`."""
    lines = [line for line in get_diff_for_mutant(mutant).splitlines() if line[:3] not in ("---", "+++", "@@ ")]
    before, after = (" ".join(" ".join(x[1:] for x in lines if x[:1] == sign).split()) for sign in "-+")
    return f"{before} -> {after}"


def main() -> None:
    args = harness.options(__doc__ or "")
    os.chdir(harness.ROOT)
    chosen = ["trainer.losses", "trainer.state"] if args.quick else list(PARTS)
    patterns = [PARTS[part] for part in chosen]
    prepare()
    _run(patterns, max_children=1)
    statuses = results(patterns)
    rows, modules, survivors = [], {}, []
    for part, found in statuses.items():
        count = Counter(found.values())
        killed = sum(count[status] for status in KILLED)
        modules[part] = {"mutants": len(found), "killed": killed, "timeouts": count["timeout"]}
        rows.append([part, str(len(found)), str(killed), f"{killed / len(found):.1%}"])
        for mutant, status in found.items():
            if status not in KILLED:
                said = change(mutant)
                function = mutant.rpartition(".")[2].rpartition("__mutmut_")[0].replace("ǁ", ".")
                survivors.append({"part": part, "function": function, "change": said, "status": status})
    figures: dict[str, Any] = {
        "modules": modules,
        "mutants": sum(m["mutants"] for m in modules.values()),
        "killed": sum(m["killed"] for m in modules.values()),
        "survivors": survivors,
    }
    figures["killed_share"] = figures["killed"] / figures["mutants"]
    harness.show("Mutants", ["module", "mutants", "killed", ""], rows)
    for s in survivors:
        print(s)
    harness.report("mutation", figures, {"killed_share": harness.Bar(at_least=0.9)}, args)


if __name__ == "__main__":
    main()
