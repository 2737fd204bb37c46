"""Rows and rewards for verl; no verl needed."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from support import VowelCritic

from text2grad.align.tokens import decode, offsets
from text2grad.errors import UserError
from text2grad.integrations.verl.rows import to_example, to_row
from text2grad.integrations.verl.scoring import SpanScorer, VerlSettings
from text2grad.models.loading import load_tokenizer
from text2grad.rewards.credit import Credit, token_rewards
from text2grad.schema import Example, Feedback, Message

EXAMPLE = Example(id="7", prompt="Say it.", reference=["a", "b"], tests="assert True", meta={"document": "é 東"})


class ScoringVowelCritic(VowelCritic):
    """With the share of other letters as the score."""

    def comment(self, example: Example) -> Feedback:
        feedback = super().comment(example)
        poor = sum(span.label == "poor" for span in feedback.spans)
        return feedback.model_copy(update={"score": 1 - poor / max(len(example.completion), 1)})


def test_a_row_gives_the_example_back() -> None:
    row = to_row(EXAMPLE, 3)
    assert row["prompt"] == [{"role": "user", "content": "Say it."}]
    assert row["extra_info"]["index"] == 3
    assert to_example(row) == EXAMPLE


def test_a_row_that_somebody_else_wrote_has_prompt_and_reference() -> None:
    messages = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Say it."}]
    row = {"raw_prompt": messages, "uid": "u1", "reward_model": {"ground_truth": "It."}, "extra_info": {"index": 0}}
    found = to_example(row)
    assert (found.id, found.reference) == ("u1", "It.")
    assert found.prompt == [Message(role="system", content="Be brief."), Message(role="user", content="Say it.")]
    assert to_example({"raw_prompt": messages}).reference is None  # the colocated path has no more


def score(critic: Any, credit: Credit, ids: Sequence[int], tiny_model: Path, max_length: int = 99) -> Any:
    scorer = SpanScorer(critic, credit, load_tokenizer(tiny_model), max_length)
    return asyncio.run(scorer.score(EXAMPLE, ids))


def test_rewards_are_those_of_token_rewards_with_the_outcome_on_the_last_token(tiny_model: Path) -> None:
    tokenizer = load_tokenizer(tiny_model)
    ids = [*tokenizer("The quick brown fox", add_special_tokens=False)["input_ids"], tokenizer.eos_token_id]
    scored = score(ScoringVowelCritic(), Credit(), ids, tiny_model)
    completed = EXAMPLE.model_copy(update={"completion": decode(ids, tokenizer)})
    feedback = ScoringVowelCritic().comment(completed)
    expected = token_rewards(feedback, offsets(ids, tokenizer))
    assert scored.rewards[:-1] == expected.rewards[:-1].tolist()
    assert scored.rewards[-1] == pytest.approx(expected.outcome)
    assert sum(scored.rewards) == pytest.approx(feedback.score)
    assert scored.extra_info == {"critique_failed": 0.0, "good_spans": 0.0, "poor_spans": 5.0, "omissions": 0.0}


def test_a_completion_at_the_limit_without_an_end_token_was_truncated(tiny_model: Path) -> None:
    ids = [10, 11, 12]
    full, cut = (score(ScoringVowelCritic(), Credit(), ids, tiny_model, limit) for limit in (4, 3))
    assert sum(full.rewards) - sum(cut.rewards) == pytest.approx(1.0)
    ended = [10, 11, load_tokenizer(tiny_model).eos_token_id]
    assert score(ScoringVowelCritic(), Credit(), ended, tiny_model, 3).rewards == (
        score(ScoringVowelCritic(), Credit(), ended, tiny_model, 4).rewards
    )


def test_a_failed_critique_is_no_number(tiny_model: Path) -> None:
    scored = score(VowelCritic(failing=[0]), Credit(), [10, 11], tiny_model)
    assert not scored.valid
    assert all(map(math.isnan, scored.rewards))
    assert scored.extra_info["critique_failed"] == 1.0


def test_a_critic_without_a_score_needs_the_total_of_spans(tiny_model: Path) -> None:
    with pytest.raises(UserError, match=r"vowels gives no score, but algorithm\.text2grad\.credit\.total is score"):
        score(VowelCritic(), Credit(), [10, 11], tiny_model)
    assert score(VowelCritic(), Credit(total="spans"), [10, 11], tiny_model).valid


def test_settings_are_read_from_the_section_of_the_algorithm() -> None:
    settings = VerlSettings.from_algorithm({"gamma": 1.0, "text2grad": {"critic": {"name": "qa"}, "lam": 0.5}})
    assert (settings.critic.name, settings.lam, settings.gamma) == ("qa", 0.5, None)
    assert VerlSettings.from_algorithm(None) == VerlSettings() == VerlSettings.from_algorithm({})
    with pytest.raises(UserError, match=r'algorithm\.text2grad: unknown key "lamb"; did you mean "lam"'):
        VerlSettings.from_algorithm({"text2grad": {"lamb": 0.5}})
