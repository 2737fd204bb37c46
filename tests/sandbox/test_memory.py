"""How the memory of a program is divided, on processes that do not exist."""

from __future__ import annotations

import errno

import pytest

from text2grad.sandbox import memory
from text2grad.sandbox.memory import Budget

MIB = 1 << 20
PIPES = 4 * MIB  # what each process after the first one can hold in pipes


class Machine:
    """Processes by id, with parent and size, and the limits that are set for them."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.processes = {10: (1, 20 * MIB)}
        self.limits: dict[int, int] = {}
        self.growth: dict[int, list[int]] = {}  # sizes that a process takes on while it is looked at
        monkeypatch.setattr(memory, "list_processes", self.look)
        monkeypatch.setattr(memory, "_limit", self.limits.__setitem__)
        monkeypatch.setattr(memory, "_process_of", lambda thread: thread // 10 * 10)

    def look(self) -> dict[int, tuple[int, float, int]]:
        for pid, sizes in self.growth.items():
            if sizes:
                self.processes[pid] = (self.processes[pid][0], sizes.pop(0))
        return {pid: (parent, 0.0, size) for pid, (parent, size) in self.processes.items()}

    def sizes(self) -> dict[int, int]:
        return {pid: size for pid, (_, size) in self.processes.items()}


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Machine:
    return Machine(monkeypatch)


def budget(total: int) -> Budget:
    return Budget(total, listener=-1, asked_calls={}, scratch="/", max_files=0)


def test_a_fork_halves_what_is_free(machine: Machine) -> None:
    assert budget(100 * MIB)._decide("fork", 10) == 0
    free = 100 * MIB - 2 * 20 * MIB - PIPES
    assert machine.limits == {10: 20 * MIB + free // 2}


def test_a_fork_that_leaves_too_little_fails_and_changes_nothing(machine: Machine) -> None:
    assert budget(45 * MIB)._decide("fork", 10) == errno.EAGAIN
    assert machine.limits == {10: 45 * MIB}


def test_forks_that_are_not_seen_yet_count(machine: Machine) -> None:
    """Two threads of one process fork at the same time: three processes share 200 MiB."""
    shared = budget(200 * MIB)
    assert shared._decide("fork", 10) == shared._decide("fork", 11) == 0
    free = 200 * MIB - 3 * 20 * MIB - 2 * PIPES
    assert machine.limits == {10: 20 * MIB + free // 3}
    machine.processes[20] = (10, 20 * MIB)  # the first child shows up, and counts once
    assert shared._divide() == free // 3
    machine.processes[30] = (10, 20 * MIB)
    assert shared._divide() == free // 3
    assert sum(machine.limits.values()) <= 200 * MIB


def test_memory_comes_back_when_a_process_ends(machine: Machine) -> None:
    shared = budget(100 * MIB)
    shared._decide("fork", 10)
    machine.processes[20] = (10, 20 * MIB)
    assert shared.is_kept(machine.sizes())
    del machine.processes[20]
    assert shared.is_kept(machine.sizes())
    assert machine.limits[10] == 100 * MIB


def test_a_process_that_grows_meanwhile_counts_as_it_is_at_last(machine: Machine) -> None:
    machine.growth = {10: [20 * MIB, 20 * MIB, 70 * MIB]}  # read to be admitted, to be divided, and after the limits
    assert budget(200 * MIB)._decide("fork", 10) == 0
    free = 200 * MIB - 2 * 70 * MIB - PIPES
    assert machine.limits == {10: 70 * MIB + free // 2}


def test_more_than_the_budget_is_noticed(machine: Machine) -> None:
    assert budget(100 * MIB).is_kept({10: 60 * MIB, 20: 40 * MIB})
    assert not budget(100 * MIB).is_kept({10: 60 * MIB, 20: 41 * MIB})
