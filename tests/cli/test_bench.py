"""`text2grad bench` through the command line, and its rules."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from support import PROMPTS
from typer.testing import CliRunner

from text2grad.bench import StepCost, TimedCritic, advise, measure
from text2grad.cli.app import app
from text2grad.config.run import RunConfig, load_config
from text2grad.schema import write_examples

GIB = 2**30
FINE = StepCost(
    device="cuda",
    completions=64,
    seconds=10.0,
    stages={"rollout": 4.0, "critic": 1.0, "scoring": 1.0, "update": 3.9, "other": 0.1},
    sampled=6400,
    trained=12_800,
    clipped_ratio=0.0,
    failed=0.0,
    error=None,
    peak_memory=30 * GIB,
    memory=80 * GIB,
    checkpoint=GIB // 100,
)


@pytest.fixture
def config(tmp_path: Path, tiny_model: Path) -> Path:
    write_examples(tmp_path / "prompts.jsonl", PROMPTS)
    path = tmp_path / "run.yaml"
    path.write_text(
        f"""
model: {{name: "{tiny_model}", lora: {{r: 2, alpha: 4}}}}
data: {{train: "{tmp_path}/prompts.jsonl", eval: null}}
critic: {{name: "support:SlowVowelCritic"}}
policy: {{max_steps: 1, per_device_train_batch_size: 2, max_completion_length: 6, bf16: false}}
output_dir: "{tmp_path}/run"
"""
    )
    return path


def test_it_prints_where_the_time_goes_and_saves_nothing(config: Path, tmp_path: Path) -> None:
    before = sorted(tmp_path.iterdir())
    done = CliRunner().invoke(app, ["bench", str(config), "--steps", "1"], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    for words in ("the critic", "the update", "tokens per second", "Peak memory", "longer than the sampling"):
        assert words in " ".join(done.output.split())
    assert sorted(tmp_path.iterdir()) == before


def test_stages_add_up_and_the_critic_has_its_own(config: Path) -> None:
    seen: list[tuple[int, int]] = []
    cost = measure(load_config(config), 2, lambda done, total: seen.append((done, total)))
    assert seen == [(1, 3), (2, 3), (3, 3)]
    assert sum(cost.stages.values()) == pytest.approx(cost.seconds)
    assert 0.4 <= cost.stages["critic"] < 1  # it sleeps for 0.4 seconds
    assert 0 <= cost.stages["scoring"] < cost.seconds
    assert cost.completions == 2
    assert 2 <= cost.sampled <= 12 < cost.trained


def test_a_timed_critic_has_the_attributes_of_the_critic() -> None:
    class Batched:
        batch_size = 7

        def critique(self, examples: object) -> list[object]:
            raise LookupError

    timed = TimedCritic(Batched())  # type: ignore[arg-type]
    assert timed.batch_size == 7
    assert not hasattr(timed, "acritique")
    with pytest.raises(LookupError):
        timed.critique([])
    assert timed.seconds > 0


@pytest.mark.parametrize(
    ("changes", "settings", "words"),
    [
        ({"failed": 0.5, "error": "no key"}, {}, "50% of the critiques fail"),
        ({"peak_memory": 75 * GIB}, {"gradient_checkpointing": False}, "policy.gradient_checkpointing=true"),
        ({"peak_memory": 75 * GIB}, {"max_tokens_per_batch": 8192}, "policy.max_tokens_per_batch=4096"),
        ({"clipped_ratio": 0.3}, {"max_completion_length": 77}, "policy.max_completion_length=77"),
        ({}, {"bf16": False}, "remove policy.bf16=false"),
        ({"stages": FINE.stages | {"critic": 5.0}}, {}, "The critic takes longer than the sampling (50% of the step)"),
        ({"checkpoint": 15 * GIB}, {}, "policy.save_steps=50"),
        ({"stages": FINE.stages | {"rollout": 8.0}}, {}, "policy.per_device_train_batch_size=16"),
        ({"stages": FINE.stages | {"rollout": 8.0}, "completions": 512}, {}, "vllm_colocated"),
        ({"stages": FINE.stages | {"rollout": 8.0}, "device": "cpu"}, {}, "policy.max_completion_length"),
        ({"stages": FINE.stages | {"update": 6.0}}, {"num_iterations": 4}, "policy.num_iterations=4"),
        (
            {"stages": FINE.stages | {"update": 6.0}},
            {},
            "gradient_checkpointing=false policy.max_tokens_per_batch=8192",
        ),
        (
            {"stages": FINE.stages | {"update": 6.0}},
            {"max_tokens_per_batch": 8192, "gradient_checkpointing": False},
            "max_tokens_per_batch=16384",
        ),
    ],
)
def test_each_rule_names_the_setting(changes: dict[str, object], settings: dict[str, object], words: str) -> None:
    given = RunConfig.model_validate({"policy": settings})
    (sentence,) = advise(replace(FINE, **changes), given)  # type: ignore[arg-type]
    assert words in sentence


def test_a_step_without_a_bottleneck_gets_no_advice_and_a_bad_one_three_sentences() -> None:
    assert advise(FINE, RunConfig()) == []
    bad = replace(FINE, failed=1.0, error="x", peak_memory=79 * GIB, clipped_ratio=1.0, checkpoint=9 * GIB)
    assert len(advise(bad, RunConfig())) == 3
