import pytest

from text2grad.trainer.monitor import (
    EVAL_SCORE,
    LENGTH,
    WINDOW,
    RewardHackingMonitor,
    has_risen,
    length_ratio,
    score_drop,
)


def run(
    monitor: RewardHackingMonitor, steps: int, reward: float, length: float = 20.0, score: float | None = None
) -> list[str]:
    """The same metrics for some steps; a little alternating noise, since real ones have some."""
    warnings = []
    for step in range(steps):
        warnings += monitor.observe({"reward": reward + 0.1 * (-1) ** step, LENGTH: length, EVAL_SCORE: score})
    return warnings


def test_a_healthy_run_has_no_warnings() -> None:
    monitor = RewardHackingMonitor()
    assert not run(monitor, WINDOW, reward=0.0, score=0.5)
    assert not run(monitor, WINDOW, reward=1.0, length=25.0, score=0.7)
    assert not monitor.hacking


def test_longer_completions_with_more_reward_are_reported_once() -> None:
    monitor = RewardHackingMonitor()
    run(monitor, WINDOW, reward=0.0, length=20)
    warnings = run(monitor, 2 * WINDOW, reward=1.0, length=40)
    assert len(warnings) == 1
    assert "times as long as at the start" in warnings[0]
    assert monitor.hacking


def test_length_may_drift_while_the_reward_does_not_rise() -> None:
    monitor = RewardHackingMonitor()
    run(monitor, WINDOW, reward=0.0, length=20)
    assert not run(monitor, WINDOW, reward=0.0, length=60)


def test_a_falling_held_out_score_is_a_sign_only_under_a_rising_reward() -> None:
    for reward, expected in ((1.0, 1), (0.0, 0)):
        monitor = RewardHackingMonitor()
        run(monitor, WINDOW, reward=0.0)
        monitor.observe({"reward": 0.0, EVAL_SCORE: 0.8})
        warnings = run(monitor, WINDOW, reward=reward, score=0.6)
        assert len(warnings) == expected
        assert all("held-out score fell by 0.200" in warning for warning in warnings)


def test_missing_metrics_are_ignored() -> None:
    monitor = RewardHackingMonitor()
    monitor.observe({"reward": None, LENGTH: float("nan")})
    assert (monitor.rewards, monitor.lengths, monitor.eval_scores) == ([], [], [])


def test_a_rise_must_be_clear_of_the_noise() -> None:
    noise = [-1.0, 1.0] * (WINDOW // 2)  # deviation 1.054, so two standard errors of the difference are 0.94
    assert not has_risen(noise + [0.5 + x for x in noise])
    assert has_risen(noise + [1.5 + x for x in noise])
    assert not has_risen([0.0] * WINDOW + [9.0] * (WINDOW - 1)), "the windows would overlap"


@pytest.mark.parametrize(
    ("scores", "drop"),
    [([0.8, 0.6], 0.0), ([0.8, 0.6, 0.7], 0.1), ([0.8, 0.6, 0.9], 0.0), ([0.8, 0.78, 0.79], 0.0), ([], 0.0)],
)
def test_held_out_drop_needs_two_evaluations_in_a_row(scores: list[float], drop: float) -> None:
    assert score_drop(scores) == pytest.approx(drop)


def test_length_ratio_by_hand() -> None:
    assert length_ratio([10.0] * WINDOW + [15.0] * WINDOW) == 1.5
    assert length_ratio([10.0] * (WINDOW + 1)) == 1.0
