"""Some of the attacks of `benchmarks/sandbox_attacks.py`: those that the sandbox once let through, and fast ones."""

from __future__ import annotations

import pytest
import sandbox_attacks
from attack_catalogue import ATTACKS, Attack

from text2grad.sandbox import Backend, probe

CHOSEN = (
    "names in the home folder",
    "the folder that Python is installed in",
    "other programs beside the interpreter",
    "the environment",
    "inherited descriptors",
    "a file in another folder",
    "all descriptors",
    "a user namespace by clone",
    "a user namespace by clone3",
    "capabilities",
    "limits of the first process",
    "the priority of the first process",
    "higher limits",
    "removing the filter",
    "32-bit system calls",
    "raw, packet, netlink and other sockets",
    "the keyring",
    "signals to the host",
    "a process that stays",
    "many links",
    "forks of many threads at once",
    "growing while forking",
    "memfd_create",
    "deleted files",
    "shared memory of System V",
    "buffers of sockets",
    "page tables",
)


def attacks(*names: str) -> list[Attack]:
    return [attack for attack in ATTACKS if attack.name in names]


@pytest.mark.parametrize("backend", ["bubblewrap", "namespaces"])
def test_no_attack_gets_through(backend: Backend) -> None:
    reason = "not installed" if backend not in probe.installed_backends() else probe.find_leak(backend)
    if reason:
        pytest.skip(f"{backend}: {reason}")
    chosen = attacks(*CHOSEN)
    assert len(chosen) == len(CHOSEN)
    results = sandbox_attacks.run_attacks(backend, chosen)
    assert {result.attack.name: result.through for result in results if result.through} == {}


def test_attacks_get_through_where_nothing_protects() -> None:
    harmless = attacks("a file of another folder", "a file in another folder", "memfd_create", "a server")
    results = sandbox_attacks.run_attacks("unsafe", harmless)
    assert all(result.through for result in results), results


def test_names_of_attacks_are_unique() -> None:
    assert len({attack.name for attack in ATTACKS}) == len(ATTACKS) >= 50
