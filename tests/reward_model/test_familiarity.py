"""Completions unlike the training data are far, and their feedback counts less."""

from __future__ import annotations

import math

import pytest
import torch

from text2grad.reward_model.familiarity import Familiarity, trust, weaken
from text2grad.schema import Feedback, Omission, Span


def cluster(centre: int, count: int, seed: int, width: int = 16, spread: float = 0.1) -> torch.Tensor:
    noise = torch.randn(count, width, generator=torch.Generator().manual_seed(seed)) * spread
    noise[:, centre] += 1.0
    return noise


@pytest.fixture
def familiarity() -> Familiarity:
    """Two kinds of text, one of them spread twice as wide."""
    references = torch.cat([cluster(0, 60, 0), cluster(1, 60, 1, spread=0.2)])
    fitted = Familiarity.fit(references, torch.cat([cluster(0, 30, 2), cluster(1, 30, 3, spread=0.2)]))
    assert fitted is not None
    return fitted


def test_what_is_like_the_training_data_is_near(familiarity: Familiarity) -> None:
    for known in (cluster(0, 40, 4), cluster(1, 40, 5, spread=0.2)):
        assert abs(float(familiarity.distances(known).mean())) < 1.0
        assert float((familiarity.distances(known) > 2).float().mean()) < 0.15


def test_another_kind_is_far(familiarity: Familiarity) -> None:
    assert float(familiarity.distances(cluster(2, 40, 6)).min()) > 2.0


def test_it_is_saved_and_loaded(familiarity: Familiarity) -> None:
    loaded = Familiarity.from_state(familiarity.state())
    features = cluster(2, 5, 7)
    torch.testing.assert_close(loaded.distances(features), familiarity.distances(features))


def test_too_little_data_gives_none() -> None:
    assert Familiarity.fit(cluster(0, 8, 0), cluster(0, 9, 1)) is None
    assert Familiarity.fit(cluster(0, 9, 0), cluster(0, 1, 1)) is None


def test_trust_falls_beyond_two_standard_deviations() -> None:
    assert trust(-3.0) == trust(2.0) == 1.0
    assert trust(3.0) == pytest.approx(math.exp(-1))
    assert trust(5.0) == pytest.approx(math.exp(-3))


def test_weakened_feedback_is_the_same_and_less_certain() -> None:
    feedback = Feedback(
        critic="r",
        critique="x",
        spans=[Span(start=0, end=1, label="poor", severity=0.8, confidence=0.4, replacement="b")],
        omissions=[Omission(text="y", severity=0.6)],
        scores=[(0, 1, -0.5)],
        score=-0.5,
    )
    weak = weaken(feedback, 0.5)
    assert (weak.spans[0].severity, weak.spans[0].confidence, weak.spans[0].replacement) == (0.8, 0.2, "b")
    assert (weak.omissions[0].severity, weak.omissions[0].confidence) == (0.6, 0.5)
    assert (weak.scores, weak.score) == ([(0, 1, -0.25)], -0.25)
    assert weaken(feedback, 1.0) == feedback
    failed = Feedback.failure("r", "timeout")
    assert weaken(failed, 0.5) == failed
    assert weaken(Feedback(critic="r"), 0.5) == Feedback(critic="r")
