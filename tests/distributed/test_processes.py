"""One process and two must do the same. The processes are real and talk over gloo."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from accelerate import Accelerator
from hypothesis import given
from hypothesis import strategies as st
from processes_support import (
    Choosy,
    Correcting,
    Diary,
    Refusing,
    Scripted,
    break_one_gradient,
    crash_one,
    launch,
    report_different_weights,
    report_error,
    train,
    train_logged,
    weights_of,
)
from safetensors.torch import load_file
from support import VowelCritic
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from text2grad.checkpoint.run_folder import RunFolder
from text2grad.distributed.environment import Parallelism
from text2grad.distributed.processes import SINGLE_PROCESS, Processes, balance_rows, catch_user_error
from text2grad.errors import UserError
from text2grad.schema import Example

HELD_OUT = [Example(id=f"h{i}", prompt=f"Say {i}.") for i in range(3)]
EVERY_PARALLELISM = pytest.mark.parametrize("parallelism", ["ddp", "fsdp2"])


def curves(folder: Path) -> list[dict[str, Any]]:
    lines = RunFolder(folder).metrics.read_text().splitlines()
    clocks = ("time/", "tokens_per_second")
    return [{k: v for k, v in json.loads(line).items() if not k.startswith(clocks)} for line in lines]


def answers(folder: Path) -> list[str]:
    return [json.loads(line)["completion"] for line in RunFolder(folder).samples.read_text().splitlines()]


def assert_same_run(one: Path, other: Path, steps: int = 5) -> None:
    """Weights, optimiser state, answers and metrics of all steps, and what `from_pretrained` would load."""
    first, second = RunFolder(one), RunFolder(other)
    files = [first.checkpoint / f"{name}.safetensors" for name in ("policy", "optimizer")]
    for path in [*files, *first.final.glob("*.safetensors"), *first.best.glob("*.safetensors")]:
        expected, found = load_file(path), load_file(second.root / path.relative_to(first.root))
        torch.testing.assert_close(found, expected, atol=1e-4, rtol=1e-4)
    assert_same_curves(one, other, steps)


def assert_same_curves(one: Path, other: Path, steps: int) -> None:
    assert answers(one) == answers(other)
    assert len(curves(one)) == steps
    for expected, found in zip(curves(one), curves(other), strict=True):
        words = {name for name, value in expected.items() if not isinstance(value, int | float)}
        assert [found.pop(name) for name in words] == [expected.pop(name) for name in words]
        assert found == pytest.approx(expected, abs=1e-4, rel=1e-4)


@EVERY_PARALLELISM
@pytest.mark.parametrize("lora", [True, False], ids=["lora", "all weights"])
def test_two_processes_sample_and_learn_as_one_does(
    tiny_model: Path, tmp_path: Path, lora: bool, parallelism: Parallelism
) -> None:
    train(tiny_model, tmp_path / "one", 1, lora)
    launch(train, tiny_model, tmp_path / "two", 2, lora, parallelism=parallelism)
    assert_same_run(tmp_path / "one", tmp_path / "two")
    before = weights_of(tiny_model, lora)
    assert any(not torch.equal(before[k], v) for k, v in _trained(tmp_path / "two").items())


@EVERY_PARALLELISM
def test_two_processes_learn_from_logged_answers_as_one_does(
    tiny_model: Path, tmp_path: Path, parallelism: Parallelism
) -> None:
    """The answers are replayed, so that nothing but the update can differ."""
    train_logged(tiny_model, tmp_path / "one", 1)
    launch(train_logged, tiny_model, tmp_path / "two", 2, parallelism=parallelism)
    assert_same_run(tmp_path / "one", tmp_path / "two")


@EVERY_PARALLELISM
def test_a_process_without_valid_samples_takes_idle_passes(
    tiny_model: Path, tmp_path: Path, parallelism: Parallelism
) -> None:
    """Of a step's eight answers those to one prompt are usable: two, one, or none."""
    settings = {"critic": Choosy(), "num_generations": 1, "rollback_kl": 10.0}
    train(tiny_model, tmp_path / "one", 1, True, **settings)
    launch(train, tiny_model, tmp_path / "two", 2, True, False, settings, parallelism=parallelism)
    assert_same_run(tmp_path / "one", tmp_path / "two")
    assert {metrics["samples"] - metrics["critic/failed"] for metrics in curves(tmp_path / "two")} >= {0, 1}


@EVERY_PARALLELISM
@pytest.mark.parametrize("share_prompts", [True, False], ids=["shared", "apart"])
def test_corrections_are_learned_as_on_one_process(
    tiny_model: Path, tmp_path: Path, parallelism: Parallelism, share_prompts: bool
) -> None:
    """One process may have no corrections, or no samples at all; the mean is over the corrections of both."""
    settings = {
        "critic": Correcting(),
        "share_prompts": share_prompts,
        "max_steps": 3,
        "corrections": {"contrast": 0.5},
    }
    train(tiny_model, tmp_path / "one", 1, True, **settings)
    launch(train, tiny_model, tmp_path / "two", 2, True, False, settings, parallelism=parallelism)
    assert_same_run(tmp_path / "one", tmp_path / "two", steps=3)
    assert sum(metrics["corrections/count"] for metrics in curves(tmp_path / "two")) > 3


@EVERY_PARALLELISM
@pytest.mark.parametrize("share_prompts", [True, False], ids=["shared", "apart"])
def test_groups_are_learned_from_as_on_one_process(
    tiny_model: Path, tmp_path: Path, parallelism: Parallelism, share_prompts: bool
) -> None:
    """Answers to one prompt in one row, of which some processes have more than others, or in a row each."""
    settings = {"num_generations": 4, "share_prompts": share_prompts, "max_steps": 3, "max_tokens_per_batch": 60}
    train(tiny_model, tmp_path / "one", 1, False, **settings)
    launch(train, tiny_model, tmp_path / "two", 2, False, False, settings, parallelism=parallelism)
    assert_same_run(tmp_path / "one", tmp_path / "two", steps=3)


@EVERY_PARALLELISM
def test_the_gap_to_the_sampler_is_that_of_the_whole_step(
    tiny_model: Path, tmp_path: Path, parallelism: Parallelism
) -> None:
    """By each answer's number in the step the sampler is off, so the last process has the largest gap."""
    settings = {"critic": VowelCritic(), "biased": True, "max_steps": 3}
    train(tiny_model, tmp_path / "one", 1, True, **settings)
    launch(train, tiny_model, tmp_path / "two", 2, True, False, settings, parallelism=parallelism)
    assert_same_run(tmp_path / "one", tmp_path / "two", steps=3)
    for metrics in curves(tmp_path / "two"):
        assert metrics["sampling/logp_difference/max"] == pytest.approx(0.7, abs=1e-4)
        assert 1.2 < metrics["sampling/importance_ratio/mean"] < 1.6


@EVERY_PARALLELISM
@pytest.mark.parametrize(("lora", "prompts"), [(True, 1), (False, 3)], ids=["lora", "all weights"])
def test_two_processes_evaluate_and_select_as_one_does(
    tiny_model: Path, tmp_path: Path, lora: bool, parallelism: Parallelism, prompts: int
) -> None:
    """The third of five evaluations is the best; with one held-out prompt one process has none to answer."""
    settings = {
        "eval_dataset": HELD_OUT[:prompts],
        "critic": Scripted([0.1, 0.3, 0.5, 0.4, 0.2]),
        "eval_steps": 1,
        "load_best_model_at_end": True,
    }
    launch(train, tiny_model, tmp_path / "two", 2, lora, False, settings, parallelism=parallelism)
    train(tiny_model, tmp_path / "one", 1, lora, **settings)
    assert_same_run(tmp_path / "one", tmp_path / "two")
    scores = [metrics["eval/score"] for metrics in curves(tmp_path / "two")]
    assert scores == pytest.approx([0.1, 0.3, 0.5, 0.4, 0.2])
    assert {metrics["eval/samples"] for metrics in curves(tmp_path / "two")} == {prompts}
    run = RunFolder(tmp_path / "two")
    (best,), (final,) = (list(folder.glob("*.safetensors")) for folder in (run.best, run.final))
    assert best.read_bytes() == final.read_bytes()
    assert "| steps | `3` |" in (run.final / "README.md").read_text()
    last = _trained(tmp_path / "two")
    assert not any(torch.equal(tensor, other) for tensor in load_file(final).values() for other in last.values())


@EVERY_PARALLELISM
def test_a_rollback_restores_both_processes(tiny_model: Path, tmp_path: Path, parallelism: Parallelism) -> None:
    """All weights are trained, so that some of them are no layer's; the second step samples with them again."""
    settings = {"max_steps": 2, "rollback_kl": 1e-9, "num_iterations": 1, "learning_rate": 0.05}
    train(tiny_model, tmp_path / "one", 1, False, **settings)
    launch(train, tiny_model, tmp_path / "two", 2, False, False, settings, parallelism=parallelism)
    assert_same_curves(tmp_path / "one", tmp_path / "two", steps=2)
    saved = [load_file(RunFolder(tmp_path / name).final / "model.safetensors") for name in ("one", "two")]
    torch.testing.assert_close(saved[1], saved[0])
    untrained = load_file(tiny_model / "model.safetensors")
    torch.testing.assert_close(saved[1], untrained)
    assert [metrics["skipped"] for metrics in curves(tmp_path / "two")] == [1, 1]


def test_callbacks_run_on_one_process_and_stop_both(tiny_model: Path, tmp_path: Path) -> None:
    settings = {"callbacks": [Diary(tmp_path)], "report_to": "tensorboard"}
    launch(train, tiny_model, tmp_path / "run", 2, True, False, settings)
    told = ["step 1", "save last", "step 2", "save last", "end", "save final"]
    assert (tmp_path / "diary.0").read_text().splitlines() == told
    assert not (tmp_path / "diary.1").exists()
    assert [metrics["step"] for metrics in curves(tmp_path / "run")] == [1, 2]
    logged = RunFolder(tmp_path / "run").trackers / "text2grad"
    assert len(list(logged.glob("events.*"))) == 1
    assert [event.step for event in EventAccumulator(str(logged)).Reload().Scalars("reward")] == [1, 2]


@EVERY_PARALLELISM
def test_bfloat16_and_gradient_checkpointing_work_on_two_processes(
    tiny_model: Path, tmp_path: Path, parallelism: Parallelism
) -> None:
    """Rounding differs with the size of a batch, so the first step's loss is compared, coarsely."""
    settings = {"bf16": True, "gradient_checkpointing": True, "max_steps": 2, "num_iterations": 1}
    train(tiny_model, tmp_path / "one", 1, True, **settings)
    launch(train, tiny_model, tmp_path / "two", 2, True, False, settings, parallelism=parallelism)
    one, two = curves(tmp_path / "one")[0], curves(tmp_path / "two")[0]
    assert two["value_loss"] == pytest.approx(one["value_loss"], rel=0.02)
    assert two["grad_norm"] == pytest.approx(one["grad_norm"], rel=0.1)
    assert {tensor.dtype for tensor in _trained(tmp_path / "two").values()} == {torch.float32}


@EVERY_PARALLELISM
def test_a_run_resumes_on_another_number_of_processes(
    tiny_model: Path, tmp_path: Path, parallelism: Parallelism
) -> None:
    train(tiny_model, tmp_path / "through", 1, True)
    train(tiny_model, tmp_path / "moved", 1, True, max_steps=2)
    launch(train, tiny_model, tmp_path / "moved", 2, True, True, {"max_steps": 4}, parallelism=parallelism)
    train(tiny_model, tmp_path / "moved", 1, True, resume=True)
    assert_same_run(tmp_path / "through", tmp_path / "moved")


def test_a_run_does_not_resume_with_steps_of_another_size(tiny_model: Path, tmp_path: Path) -> None:
    train(tiny_model, tmp_path / "run", 1, True, max_steps=1)
    with pytest.raises(UserError, match="has 8 completions per step, but this launch has 4"):
        train(tiny_model, tmp_path / "run", 2, True, resume=True)


@EVERY_PARALLELISM
def test_an_error_on_one_process_ends_both(tiny_model: Path, tmp_path: Path, parallelism: Parallelism) -> None:
    settings = {"critic": Refusing(process=1)}
    launch(report_error, tiny_model, tmp_path, settings, parallelism=parallelism)
    assert (tmp_path / "error.0").read_text() == "UserError: the budget is spent"
    assert (tmp_path / "error.1").read_text() == "SharedError: the budget is spent"


@EVERY_PARALLELISM
def test_a_gradient_that_breaks_on_one_process_is_skipped_on_both(
    tiny_model: Path, tmp_path: Path, parallelism: Parallelism
) -> None:
    launch(break_one_gradient, tiny_model, tmp_path / "run", parallelism=parallelism)
    (metrics,) = curves(tmp_path / "run")
    assert metrics["skipped"] == 1
    assert "grad_norm is nan" in metrics["update_error"]


def test_processes_that_start_from_different_weights_are_refused(tiny_model: Path, tmp_path: Path) -> None:
    launch(report_different_weights, tiny_model, tmp_path)
    assert "started from different weights" in (tmp_path / "error.0").read_text()


def test_a_crash_shows_where_all_processes_were(tmp_path: Path) -> None:
    with pytest.raises(pytest.fail.Exception) as failure:
        launch(crash_one, tmp_path / "started")
    said = str(failure.value)
    assert "exit codes: [None, -11]" in said
    assert said.count("in crash_one") == 2
    assert "ctypes/__init__.py" in said
    assert "FatalSignalHandler" in said


def _trained(folder: Path) -> dict[str, torch.Tensor]:
    return load_file(RunFolder(folder).checkpoint / "policy.safetensors")


def test_slices_are_whole_groups_and_cover_everything_once() -> None:
    assert [list(Processes(i, 2).local_slice(8, group_size=4)) for i in range(2)] == [[0, 1, 2, 3], [4, 5, 6, 7]]
    assert [list(Processes(i, 3).local_slice(2)) for i in range(3)] == [[], [0], [1]]


@given(st.lists(st.integers(1, 50), max_size=30), st.integers(1, 5))
def test_rows_are_assigned_once_and_evenly(lengths: Sequence[int], num_processes: int) -> None:
    assigned = balance_rows(lengths, num_processes)
    assert sorted(row for rows in assigned for row in rows) == list(range(len(lengths)))
    assert max(map(len, assigned)) - min(map(len, assigned)) <= 1
    tokens = [sum(lengths[row] for row in rows) for rows in assigned]
    assert max(tokens) - min(tokens) <= max(lengths, default=0)


def test_alternating_order_evens_out_the_lengths() -> None:
    assert balance_rows([40, 10, 30, 20], 2) == [[0, 1], [2, 3]]


def test_with_sharded_weights_all_processes_take_equally_many_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Processes, "gather", lambda self, items: [*items, 3])
    assert Processes(0, 2, parallelism="fsdp2").pad_passes(["a"], idle="-") == ["a", "-", "-"]
    assert Processes(0, 2, parallelism="ddp").pad_passes(["a"], idle="-") == ["a"]


def test_a_single_process_shards_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    accelerator = Accelerator(cpu=True)
    monkeypatch.setenv("ACCELERATE_USE_FSDP", "true")
    monkeypatch.setenv("FSDP_VERSION", "2")
    assert Processes.from_accelerator(accelerator).parallelism == "ddp"


def test_a_single_process_does_everything() -> None:
    assert list(SINGLE_PROCESS.local_slice(5)) == [0, 1, 2, 3, 4]
    assert balance_rows([9, 5, 4], SINGLE_PROCESS.world_size) == [[0, 1, 2]]
    assert SINGLE_PROCESS.sum([0.5, -1.0]) == [0.5, -1.0]
    assert SINGLE_PROCESS.map(lambda part: [2 * x for x in part], [1, 2]) == [2, 4]
    assert SINGLE_PROCESS.map(lambda part: [max(part)], []) == []


def test_an_error_comes_back_as_it_was_raised() -> None:
    error = UserError("fix it")

    def fail() -> None:
        raise error

    assert catch_user_error(fail) is error
    with pytest.raises(UserError) as caught:
        SINGLE_PROCESS.run_on_all(fail)
    assert caught.value is error
