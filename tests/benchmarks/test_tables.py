"""The tables of the documentation are generated from docs/results."""

import json
from pathlib import Path
from typing import Any

import harness
import pytest
import tables

RESULT = {
    "benchmark": "speed",
    "figures": {"samples_per_second": 12.0, "count": 1200, "range": [0.5, 1.5], "details": {"ignored": 1}},
    "bars": {"samples_per_second": {"at_least": 20}},
    "ok": False,
    "commit": "0123456789abcdef",
    "machine": {"cpu": "CPU", "cores": 2, "torch": "2.0"},
}


@pytest.fixture
def results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(harness, "RESULTS", tmp_path)
    return tmp_path


def write(folder: Path, name: str, **changes: Any) -> None:
    (folder / f"{name}.json").write_text(json.dumps(RESULT | changes))


def test_a_marked_section_is_replaced_by_the_table_of_its_result(results: Path) -> None:
    write(results, "speed")
    page = tables.fill("before\n<!-- result speed -->\nold\n<!-- end -->\nafter\n")
    assert page.splitlines() == [
        "before",
        "<!-- result speed -->",
        "| metric | measured | target |",
        "| --- | --- | --- |",
        "| samples per second | 12 | at least 20 |",
        "| count | 1,200 |  |",
        "| range | 0.5 to 1.5 |  |",
        "",
        "`benchmarks/speed.py` on CPU, 2 cores, torch 2.0; commit 0123456789ab. Bars missed: samples_per_second.",
        "<!-- end -->",
        "after",
    ]
    assert tables.fill(page) == page


def test_a_marker_without_a_result_is_an_error(results: Path) -> None:
    with pytest.raises(SystemExit, match=r"speed\.json: no such result; run benchmarks/speed\.py"):
        tables.fill("<!-- result speed -->\n<!-- end -->")


def test_results_older_than_the_code_are_listed_with_their_commit(
    results: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, commit in {"current": "aaa", "old": "bbb", "local": "aaa-dirty", "unknown": "ccc"}.items():
        write(results, name, commit=commit)
    answers = {
        "rev-list --count aaa..HEAD": "0",
        "rev-list --count bbb..HEAD": "3",
        "show --no-patch --format=%cs aaa": "2026-01-02",
        "show --no-patch --format=%cs bbb": "2026-01-01",
        "log -1 --format=%H": "aaa",
    }
    monkeypatch.setattr(harness, "git", lambda *command: answers.get(" ".join(command).partition(" -- ")[0], ""))
    assert tables.fill("<!-- result commits -->\n<!-- end -->").splitlines() == [
        "<!-- result commits -->",
        "Measured before the current code (commit aaa):",
        "",
        "| result | commit | date |",
        "| --- | --- | --- |",
        "| local | aaa with local changes | 2026-01-02 |",
        "| old | bbb | 2026-01-01 |",
        "| unknown | ccc | not in this history |",
        "<!-- end -->",
    ]
    for name in ("old", "local", "unknown"):
        (results / f"{name}.json").unlink()
    assert tables.result_commits() == "All results were measured at the current code (commit aaa)."


@pytest.mark.parametrize("name", [path.stem for path in sorted(harness.RESULTS.glob("*.json"))])
def test_every_kept_result_has_a_table(name: str) -> None:
    section = tables.result_section(name)
    assert section.startswith("| ")
    script = tables.script_of(name)
    assert f"`benchmarks/{script}`" in section
    assert (harness.ROOT / "benchmarks" / script).is_file()


def test_the_map_has_a_row_for_faults_and_mentions_and_one_for_every_other_cell() -> None:
    gains = {
        "spans_gain": 0.1,
        "corrections_gain": -0.2,
        "scalar_last": 0.5,
        "spans_last": 0.6,
        "corrections_last": 0.7,
    }
    plain = [(2, said, batch, 0.0, 5) for said in ("one", "half", "all") for batch in (8, 32)]
    others = [(2, "one", 256, 0.0, 5), (2, "all", 32, 0.0, 9), (2, "one", 32, 0.25, 5)]
    keys = ("fields", "mentioned", "batch", "wrong", "tokens")
    table = tables.evidence_map({"map": [dict(zip(keys, cell, strict=True)) | gains for cell in [*plain, *others]]})
    cell = "+0.10, -0.20 (0.50 / 0.60 / 0.70)"
    assert table.splitlines() == [
        "| fields | faults named | 8 answers per step | 32 answers per step |",
        "| --- | --- | --- | --- |",
        *(f"| 2 | {said} | {cell} | {cell} |" for said in ("one", "half", "all")),
        "",
        "| fields | faults named | answers per step | wrong critiques | tokens per answer | gain, end |",
        "| --- | --- | --- | --- | --- | --- |",
        f"| 2 | one | 256 | 0% | 5 | {cell} |",
        f"| 2 | all | 32 | 0% | 9 | {cell} |",
        f"| 2 | one | 32 | 25% | 5 | {cell} |",
    ]
