import pytest

from text2grad.trainer.schedule import learning_rate_factor


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("constant", [0.5, 1.0, 1.0, 1.0, 1.0, 1.0]),
        ("linear", [0.5, 1.0, 1.0, 0.75, 0.5, 0.25]),
        ("cosine", [0.5, 1.0, 1.0, 0.853553, 0.5, 0.146447]),
    ],
)
def test_warm_up_then_schedule(kind: str, expected: list[float]) -> None:
    factors = [learning_rate_factor(step, total=6, warmup=2, kind=kind) for step in range(1, 7)]  # type: ignore[arg-type]
    assert factors == pytest.approx(expected, abs=1e-6)
