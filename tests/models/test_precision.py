"""Which devices compute in bfloat16."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from text2grad.models import precision
from text2grad.models.precision import has_bf16_units, use_bf16


@pytest.fixture
def cpu_info(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The file in which the processor is described, empty."""
    file = tmp_path / "cpuinfo"
    monkeypatch.setattr(precision, "CPU_INFO", file)
    has_bf16_units.cache_clear()
    yield file
    has_bf16_units.cache_clear()


@pytest.mark.parametrize(
    ("description", "has_units"),
    [
        ("flags\t\t: fpu avx2 avx512f avx512_bf16 sha", True),
        ("flags\t\t: fpu avx2 avx512f amx_bf16 amx_tile", True),
        ("Features\t: fp asimd bf16 i8mm", True),
        ("flags\t\t: fpu avx2 avx512f", False),
        ("model name\t: bf16 processor\nflags\t\t: fpu avx2", False),
        (None, False),
    ],
)
def test_a_processor_without_units_for_bfloat16_computes_in_float32(
    description: str | None, has_units: bool, cpu_info: Path
) -> None:
    if description is not None:
        cpu_info.write_text(f"processor\t: 0\n{description}\nbogomips\t: 1\n", encoding="utf-8")
    assert use_bf16(None, "cpu") is has_units
    assert use_bf16(None, "cuda") is True


@pytest.mark.parametrize("wanted", [True, False])
@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_what_was_asked_for_wins(wanted: bool, device: str, cpu_info: Path) -> None:
    assert use_bf16(wanted, device) is wanted
