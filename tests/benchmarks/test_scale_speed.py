"""What the figures of `scale_speed` rest on: the tokenizer, equal lengths, the bounds, and what counts as missing."""

from __future__ import annotations

import json
from argparse import Namespace
from pathlib import Path
from typing import Any

import pytest
import scale_speed
import torch
from harness import Bar
from scale_decode import BANDWIDTH, lower_bound
from scale_models import answer_lengths, config, forced_lengths, matrix_parameters, prompts, random_model, tokenizer

from text2grad.align.tokens import decode
from text2grad.rollout import samplers
from text2grad.rollout.rng import Stream
from text2grad.rollout.sampling import sample


def test_every_id_has_a_text_and_the_last_one_ends() -> None:
    made: Any = tokenizer(2000)
    assert len(made) == 2000
    assert made.eos_token_id == 1999
    assert len(made("one letter")["input_ids"]) == 10
    assert decode([300, 1500], made) == made.decode([300, 1500])
    assert len({made.decode([i]) for i in range(256, 1999)}) == 2000 - 1 - 256


def test_prompts_have_about_the_length_and_are_different() -> None:
    found = prompts(50, 300)
    assert all(250 <= len(e.prompt_text) <= 350 for e in found)
    assert len({e.prompt_text for e in found}) == 50


def test_completions_end_at_the_lengths_they_are_given() -> None:
    made = config("llama-1b", quick=True)
    model = random_model(made, "cpu", torch.float32).eval()
    lengths = answer_lengths(6, 20)
    with forced_lengths(lengths):
        uniforms = samplers.noise(Stream.SAMPLING, 0, 1, range(6), 20)
    end = made.vocab_size - 1
    completions, _ = sample(model, [[1, 2, 3]], uniforms, 1.0, [end], end, num_generations=6)
    assert [len(ids) for ids in completions] == lengths


def test_the_bound_reads_weights_and_the_cache_of_unfinished_rows() -> None:
    made = config("llama-1b", quick=True, vocab_size=512)
    model: Any = random_model(made, "cpu", torch.float32)
    weights = sum(p.numel() for p in model.parameters()) * 4  # tied: all of them are read
    per_token = 2 * 2 * 2 * 16 * 4
    # After the first token: 3 + 1 and 5 + 1 cached tokens, then only the second row's 5 + 2.
    assert lower_bound(model, [3, 5], [2, 3]) == pytest.approx((2 * weights + per_token * (4 + 6 + 7)) / BANDWIDTH)


def test_operations_leave_out_an_embedding_that_is_only_read() -> None:
    tied = random_model(config("llama-1b", quick=True), "cpu", torch.float32)
    untied = random_model(config("llama-8b", quick=True), "cpu", torch.float32)
    assert matrix_parameters(tied) == matrix_parameters(untied)
    assert matrix_parameters(tied)[1] == 1024 * 64


def test_a_report_counts_what_is_missing_and_takes_the_better_of_both_settings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sides = {"ours": (10.0, 30.0), "checkpointed": (40.0, 60.0), "plain": (25.0, 90.0)}
    for side, (seconds, gib) in sides.items():
        case = {"seconds": seconds, "gib": gib, "parts": {}, "mfu": 0.4}
        (tmp_path / f"step.llama-1b_lora_{side}.json").write_text(json.dumps(case))
    rules = {"answers": 512, "qa": {"seconds": 2.0}, "commit": "abc", "machine": {"cores": 16}}
    (tmp_path / "critics.rules.json").write_text(json.dumps(rules))
    reported: dict[str, Any] = {}
    bars: dict[str, Bar] = {}

    def keep(name: str, figures: dict[str, Any], limits: dict[str, Bar], args: Namespace, **fields: Any) -> None:
        reported.update(figures | fields)
        bars.update(limits)

    monkeypatch.setattr(scale_speed, "report", keep)
    scale_speed.join(Namespace(out=tmp_path, quick=False))
    assert reported["llama-1b_lora_share_of_trl_time"] == pytest.approx(0.4)
    assert reported["llama-1b_lora_share_of_trl_memory"] == pytest.approx(0.5)
    assert reported["qa_share_of_step"] == pytest.approx(0.2)
    assert not bars["qa_share_of_step"].reached(0.2)
    assert (reported["commit"], reported["machine"]["cores"]) == ("abc", 16), "those of the cases"
    assert not reported["complete"]
    assert "step/qwen3-1.7b_full_ours" in reported["missing"]
    assert not bars["cases_missing"].reached(reported["cases_missing"])
