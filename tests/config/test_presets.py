"""Every preset trains a tiny model for a few steps."""

from __future__ import annotations

import gzip
import json

import pytest
from support import Silent

from text2grad.config.packaged import PRESETS, preset_names
from text2grad.config.run import load_config
from text2grad.pipeline import run

SMALL = ["policy.max_steps=2", "policy.per_device_train_batch_size=4", "policy.max_completion_length=6"]


@pytest.fixture
def data(tmp_path, monkeypatch):
    """A few examples per data set, in the published format."""
    abstract = {"paper_id": "p", "source": ["We add one.", "It works in 3 days."], "target": ["Adding works."]}
    problem = {
        "text": "Add one.",
        "code": "def f(x): return x + 1",
        "test_list": ["assert f(1) == 2"],
        "test_setup_code": "",
    }
    paragraphs = [
        {"context": f"Paris, {i}.", "qas": [{"id": str(i), "question": "Where?", "answers": [{"text": "Paris"}]}]}
        for i in range(12)
    ]
    files = {
        "scitldr_a/train.jsonl.gz": json.dumps(abstract),
        "scitldr_a/dev.jsonl.gz": json.dumps(abstract),
        "mbpp/mbpp.jsonl.gz": "\n".join(json.dumps({**problem, "task_id": i}) for i in (511, 512, 601, 602)),
        "xquad_en/xquad.en.json.gz": json.dumps({"data": [{"title": "t", "paragraphs": paragraphs}]}),
    }
    for name, text in files.items():
        path = tmp_path / "data" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(gzip.compress(text.encode()))
    monkeypatch.setenv("TEXT2GRAD_DATA", str(tmp_path / "data"))


@pytest.mark.usefixtures("data")
@pytest.mark.parametrize("name", preset_names())
def test_a_preset_runs(name, tiny_model, tmp_path):
    settings = [*SMALL, f"model.name={tiny_model}", f"output_dir={tmp_path / 'run'}"]
    folder = run(load_config(PRESETS / f"{name}.yaml", settings), Silent())
    assert len(folder.metrics.read_text(encoding="utf-8").splitlines()) == 2
    assert json.loads(folder.evaluation.read_text(encoding="utf-8"))["n"] > 0
    assert folder.report.is_file()


def test_the_paper_preset_has_the_published_settings():
    config = load_config(PRESETS / "paper.yaml")
    policy, lora = config.policy, config.model.lora
    assert (policy.estimator, policy.gamma, policy.lam, policy.advantage_normalization) == ("gae", 1.0, 0.95, "whiten")
    assert (policy.num_iterations, policy.epsilon, policy.epsilon_value, policy.vf_coef) == (4, 0.2, 0.2, 0.1)
    assert (policy.kl_controller, policy.kl_controller_target, policy.kl_controller_horizon) == (
        "adaptive",
        6.0,
        10_000,
    )
    assert 0.05 <= policy.beta <= 0.2
    assert 5e-7 <= policy.learning_rate <= 1e-6
    assert (config.credit.mode, policy.temperature, lora.r, lora.alpha) == ("uniform", 0.6, 16, 32)
