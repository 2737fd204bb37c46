import json
from pathlib import Path
from typing import Any

import pytest

from text2grad.errors import UserError
from text2grad.report.read import read_evaluation, read_metrics, read_run, read_samples


def write(path: Path, *lines: Any) -> Path:
    path.write_text("".join((line if isinstance(line, str) else json.dumps(line)) + "\n" for line in lines))
    return path


def sample(step: int, number: int = 0, completion: str = "yes") -> dict[str, Any]:
    return {"step": step, "sample": number, "prompt": "why?", "completion": completion}


def test_an_incomplete_last_line_is_ignored(tmp_path: Path):
    path = write(tmp_path / "metrics.jsonl", {"step": 1}, {"step": 2})
    path.write_bytes(path.read_bytes() + '{"step": 3, "note": "é'.encode()[:-1])
    assert read_metrics(path) == [{"step": 1}, {"step": 2}]


def test_an_incomplete_line_in_the_middle_is_an_error_that_names_it(tmp_path: Path):
    path = write(tmp_path / "metrics.jsonl", {"step": 1}, '{"step": 2, "rew', {"step": 3})
    with pytest.raises(UserError, match=r"metrics\.jsonl:2: not valid JSON .*; remove the line"):
        read_metrics(path)


@pytest.mark.parametrize("line", ["[1]", '{"reward": 1}', '{"step": "one"}', '{"step": null}'])
def test_a_line_without_a_step_is_an_error_that_names_it(tmp_path: Path, line: str):
    path = write(tmp_path / "metrics.jsonl", line)
    with pytest.raises(UserError, match=r"metrics\.jsonl:1: "):
        read_metrics(path)


def test_the_later_of_two_records_of_a_step_is_kept(tmp_path: Path):
    metrics = write(tmp_path / "metrics.jsonl", {"step": 1}, {"step": 2, "kl": 1}, {"step": 2, "kl": 3})
    assert read_metrics(metrics) == [{"step": 1}, {"step": 2, "kl": 3}]
    samples = write(tmp_path / "samples.jsonl", sample(2, 0, "old"), sample(2, 1), sample(2, 0, "new"))
    selected, num_recorded = read_samples(samples)
    assert num_recorded == 2
    assert [one.completion for one in selected] == ["new", "yes"]


def test_numbers_that_a_browser_cannot_parse_become_null(tmp_path: Path):
    path = write(tmp_path / "metrics.jsonl", '{"step": 1, "kl": NaN, "reward": -Infinity, "loss": 1e999}')
    assert read_metrics(path) == [{"step": 1, "kl": None, "reward": None, "loss": None}]


def test_samples_are_spread_evenly_over_the_steps(tmp_path: Path):
    path = write(tmp_path / "samples.jsonl", *(sample(step, number) for step in range(5) for number in range(3)))
    selected, num_recorded = read_samples(path, limit=6)
    assert num_recorded == 15
    assert [(one.step, one.sample) for one in selected] == [(0, 0), (0, 1), (1, 0), (2, 0), (3, 0), (4, 0)]


def test_long_samples_are_kept_in_smaller_number(tmp_path: Path):
    path = write(tmp_path / "samples.jsonl", *(sample(step, completion="x" * 1000) for step in range(10)))
    selected, _ = read_samples(path, byte_limit=path.stat().st_size // 3)
    assert [one.step for one in selected] == [0, 4, 9]


def test_a_damaged_sample_is_an_error_that_names_line_and_field(tmp_path: Path):
    feedback = {"critic": "c", "spans": [{"start": 3, "end": 3, "label": "poor"}]}
    path = write(tmp_path / "samples.jsonl", sample(1), sample(2) | {"feedback": feedback})
    with pytest.raises(UserError, match=r"samples\.jsonl:2: feedback\.spans\[0\]: end is 3 but start is 3"):
        read_samples(path)


def test_a_run_that_has_just_started_is_readable(tmp_path: Path):
    write(tmp_path / "metrics.jsonl")
    run = read_run(tmp_path)
    assert (run.metrics, run.samples, run.evaluation, run.config, run.model) == ([], [], None, None, None)
    write(tmp_path / "samples.jsonl", '{"step": 1, "sam')
    assert read_run(tmp_path).num_samples_recorded == 0


@pytest.mark.parametrize(
    ("config", "model"),
    [("model: smollm2", "smollm2"), ("model: {name: smollm2, lora: 16}", "smollm2"), ("seed: 1", None), ("", None)],
)
def test_the_model_is_named_by_the_config(tmp_path: Path, config: str, model: str | None):
    write(tmp_path / "metrics.jsonl")
    write(tmp_path / "config.yaml", config)
    assert read_run(tmp_path).model == model


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("config.yaml", "model: [", r"config\.yaml: not valid YAML; fix it"),
        ("evaluation.json", "{", r"evaluation\.json: not valid JSON .*; evaluate the run again"),
        ("evaluation.json", '{"n": "many"}', r"evaluation\.json: n: "),
    ],
)
def test_a_damaged_file_is_an_error_that_names_it(tmp_path: Path, name: str, content: str, message: str):
    write(tmp_path / "metrics.jsonl")
    write(tmp_path / name, content)
    with pytest.raises(UserError, match=message):
        read_run(tmp_path)


def test_no_evaluation_is_none(tmp_path: Path):
    assert read_evaluation(tmp_path / "evaluation.json") is None


def test_a_folder_that_is_not_a_run_is_an_error_with_a_remedy(tmp_path: Path):
    with pytest.raises(UserError, match=r"nowhere: no such run folder; give the output_dir"):
        read_run(tmp_path / "nowhere")
    with pytest.raises(UserError, match=r"no metrics\.jsonl in this folder; give the output_dir"):
        read_run(tmp_path)
