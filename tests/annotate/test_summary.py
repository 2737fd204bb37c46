"""Statistics of annotated records."""

from __future__ import annotations

import pytest

from text2grad.annotate.summary import Summary, covered_length
from text2grad.critics.rules.grounding import GroundingCritic
from text2grad.critics.rules.qa import QACritic
from text2grad.schema import Example


@pytest.mark.parametrize(
    ("ranges", "positions"),
    [([], 0), ([(2, 5)], 3), ([(0, 3), (2, 5)], 5), ([(0, 9), (2, 5)], 9), ([(4, 6), (0, 2)], 4), ([(0, 2)] * 3, 2)],
)
def test_covered_length_counts_positions_once(ranges, positions):
    assert covered_length(ranges) == positions


def test_means_are_over_records_with_ok_feedback():
    summary = Summary()
    summary.add({"completion": "0123456789", "feedback": {"spans": [{"start": 0, "end": 5}, {"start": 2, "end": 6}]}})
    summary.add({"completion": "0123", "feedback": {"omissions": [{"text": "x"}], "unmatched": ["q"]}})
    summary.add(
        {"completion": "0123", "feedback": {"status": "failed", "error": "http 500: a", "unmatched": ["q", "r"]}}
    )
    summary.add({"feedback": {"status": "failed", "error": "http 500: b"}})
    assert (summary.records, summary.ok, summary.failed) == (4, 2, 2)
    assert summary.spans_per_completion == 1.0
    assert summary.coverage == pytest.approx(0.3)
    assert (summary.omissions, summary.unmatched) == (1, 3)
    assert summary.causes == {"http 500": 2}


def test_scored_words_count_as_spans():
    summary = Summary()
    summary.add({"completion": "0123456789", "feedback": {"scores": [[0, 3, 0.5], [4, 6, -0.1]]}})
    assert (summary.spans_per_completion, summary.coverage) == (2.0, 0.5)


def test_the_means_of_an_empty_summary_are_zero():
    assert (Summary().spans_per_completion, Summary().coverage, Summary().records_per_second) == (0.0, 0.0, 0.0)
    assert Summary().confidence is None


def test_the_number_of_causes_is_bounded():
    summary = Summary()
    for i in range(1000):
        summary.add({"feedback": {"status": "failed", "error": f"cause {i}"}})
    assert len(summary.causes) == 51
    assert summary.causes["other"] == 950


def test_rule_critics_that_fail_alike_have_one_cause():
    for critic, cause in ((QACritic(), "neither a passage"), (GroundingCritic(), "no source text")):
        summary = Summary()
        for feedback in critic.critique([Example(id=name, prompt="", completion="x") for name in ("q-1", "q-2")]):
            summary.add({"completion": "x", "feedback": feedback.model_dump()})
        ((found, count),) = summary.causes.items()
        assert (found.startswith(cause), count) == (True, 2)
