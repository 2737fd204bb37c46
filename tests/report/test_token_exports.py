"""Token exports of prime-rl: files of the same shape."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from transformers import PreTrainedTokenizerBase

from text2grad.errors import UserError
from text2grad.models.loading import load_tokenizer
from text2grad.report import build_report
from text2grad.report.token_exports import read_token_exports

PROMPT, COMPLETION = "Say a word.", "The quick 🦊."


@pytest.fixture
def tokenizer(tiny_model: Path) -> PreTrainedTokenizerBase:
    return load_tokenizer(tiny_model)


def record(tokenizer: PreTrainedTokenizerBase, rewards: list[float | None] | None = None) -> dict[str, Any]:
    prompt, completion = (tokenizer.encode(text) for text in (PROMPT, COMPLETION))
    completion.append(tokenizer.eos_token_id)
    length = len(prompt) + len(completion)
    return {
        "schema_version": 1,
        "step": 3,
        "export_step": 3,
        "rank": 0,
        "micro_step": 0,
        "micro_sequence_idx": 0,
        "export_sequence_idx": 0,
        "run_id": None,
        "env_name": "words",
        "token_ids": prompt + completion,
        "position_ids": list(range(length)),
        "loss_mask": [False] * len(prompt) + [True] * len(completion),
        "advantages": [0.0] * len(prompt) + [0.5] * len(completion),
        "rewards": rewards or [None] * length,
        "inference_logprobs": [0.0] * len(prompt) + [-1.0] * len(completion),
        "trainer_logprobs": [0.0] * len(prompt) + [-1.5] * len(completion),
        "entropy": [9.0] * len(prompt) + [2.0] * len(completion),
        "mismatch_kl": [None] * length,
        "importance_ratio": [9.0] * len(prompt) + [0.5] * len(completion),
    }


def write(folder: Path, step: int, *records: dict[str, Any], rank: int = 0) -> Path:
    path = folder / "token_exports" / f"step_{step}"
    path.mkdir(parents=True, exist_ok=True)
    lines = "".join(json.dumps(one, separators=(",", ":")) + "\n" for one in records)
    (path / f"rank_{rank}.jsonl").write_text(lines)
    return folder


def test_text_is_decoded_and_values_stay_on_their_tokens(tmp_path: Path, tokenizer: PreTrainedTokenizerBase) -> None:
    whole = record(tokenizer)
    length = len(whole["token_ids"])
    write(tmp_path, 3, whole, record(tokenizer, [0.25] * length))
    write(tmp_path, 10, record(tokenizer, [float(i) for i in range(length)]), rank=1)
    run = read_token_exports(tmp_path, tokenizer)
    assert [(sample.step, sample.sample) for sample in run.samples] == [(3, 0), (3, 1), (10, 0)]
    assert [(sample.prompt, sample.completion) for sample in run.samples] == [(PROMPT, COMPLETION)] * 3
    none, same, single = run.samples
    assert none.total is None
    assert same.total == 0.25
    assert set(same.tokens.reward) == {None}
    start = whole["loss_mask"].index(True)
    assert single.tokens.reward == [float(i) for i in range(start, length)]
    assert single.total == sum(range(start, length))
    assert (set(none.tokens.advantage), set(none.tokens.logprob_before)) == ({0.5}, {-1.5})
    assert set(none.tokens.logprob_after) == {None}
    assert (none.tokens.start[-1], none.tokens.end[-1]) == (len(COMPLETION), len(COMPLETION))
    assert run.metrics[0] == {
        "step": 3,
        "samples": 2,
        "completions/mean_length": length - start,
        "entropy": 2.0,
        "importance_ratio": 0.5,
        "reward": 0.25,
    }


def test_tokens_between_trained_ones_have_no_values(tmp_path: Path, tokenizer: PreTrainedTokenizerBase) -> None:
    tool = record(tokenizer)
    start = tool["loss_mask"].index(True)
    tool["loss_mask"][start + 1] = False
    (sample,) = read_token_exports(write(tmp_path, 1, tool), tokenizer).samples
    assert sample.tokens.advantage[:3] == [0.5, None, 0.5]


@pytest.mark.parametrize("change", [{"advantages": [0.0]}, {"token_ids": None}, {"loss_mask": "none"}])
def test_other_records_are_refused(tmp_path: Path, tokenizer: PreTrainedTokenizerBase, change: dict[str, Any]) -> None:
    one = record(tokenizer)
    change = {"loss_mask": [False] * len(one["token_ids"])} if change.get("loss_mask") else change
    with pytest.raises(UserError, match=r"rank_0\.jsonl:1: .*this is no token export"):
        read_token_exports(write(tmp_path, 1, one | change), tokenizer)


def test_the_page_needs_a_tokenizer(
    tmp_path: Path, tokenizer: PreTrainedTokenizerBase, tiny_model: Path, browser: Any
) -> None:
    write(tmp_path, 1, record(tokenizer))
    with pytest.raises(UserError, match="name their model with --tokenizer"):
        build_report(tmp_path)
    browser.open(build_report(tmp_path, str(tiny_model)))
    assert browser.errors() == []
    assert COMPLETION in browser.evaluate("document.querySelector('.sample-view .completion').textContent")
