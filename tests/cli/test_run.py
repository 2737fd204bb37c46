"""`text2grad run` through the command line."""

from __future__ import annotations

import json
import re
import urllib.request
from collections.abc import Sequence
from pathlib import Path

import pytest
from support import PROMPTS, VowelCritic
from typer.testing import CliRunner

from text2grad.cli.app import app
from text2grad.errors import UserError
from text2grad.schema import Example, Feedback, write_examples


@pytest.fixture
def config(tmp_path: Path, tiny_model: Path) -> Path:
    write_examples(tmp_path / "prompts.jsonl", PROMPTS)
    path = tmp_path / "run.yaml"
    path.write_text(
        f"""
model: {{name: "{tiny_model}", lora: {{r: 2, alpha: 4}}}}
data: {{train: "{tmp_path}/prompts.jsonl", eval: null}}
critic: {{name: "support:VowelCritic"}}
policy: {{max_steps: 3, per_device_train_batch_size: 2, max_completion_length: 6, learning_rate: 1.0e-2, bf16: false}}
"""
    )
    return path


def test_a_watched_run_is_the_same_to_the_bit(
    config: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pages: list[str] = []
    critique = VowelCritic.critique

    def critique_and_look(self: VowelCritic, examples: Sequence[Example]) -> list[Feedback]:
        printed = capsys.readouterr().out
        if found := re.search(r"Watch the run at (http://127\.0\.0\.1:\d+/)", printed):
            addresses.append(found.group(1))
        if addresses:
            with urllib.request.urlopen(addresses[0]) as reply:
                pages.append(reply.read().decode())
        return critique(self, examples)

    addresses: list[str] = []
    monkeypatch.setattr(VowelCritic, "critique", critique_and_look)

    def run(name: str, *options: str) -> Path:
        app(["run", str(config), "-o", str(tmp_path / name), *options], standalone_mode=False)
        return tmp_path / name

    plain, watched = run("plain"), run("watched", "--watch")
    assert len(pages) == 3
    assert "The run is starting" in pages[0]
    assert "This run is going on" in pages[2]
    assert 'id="chunk-0"' in pages[2]
    adapters = [folder / "checkpoints" / "final" / "adapter_model.safetensors" for folder in (plain, watched)]
    assert adapters[0].read_bytes() == adapters[1].read_bytes()
    assert (plain / "samples.jsonl").read_bytes() == (watched / "samples.jsonl").read_bytes()

    def results(folder: Path) -> list[dict[str, object]]:
        records = map(json.loads, (folder / "metrics.jsonl").read_text().splitlines())
        timed = ("time/", "tokens_per_second")
        return [{name: value for name, value in r.items() if not name.startswith(timed)} for r in records]

    assert results(plain) == results(watched)


def test_help_names_the_option() -> None:
    assert "--watch" in CliRunner(env={"COLUMNS": "200"}).invoke(app, ["run", "--help"]).output


def test_options_of_the_file_s_critic_are_explained_where_another_is_named(config: Path) -> None:
    config.write_text(
        config.read_text().replace('{name: "support:VowelCritic"}', "{name: qa, options: {max_words: 9}}")
    )

    def run(*changes: str) -> None:
        app(["run", str(config), *changes], standalone_mode=False)

    with pytest.raises(UserError, match=r'has no option "max_words".*run\.yaml; leave out .* critic\.options={}'):
        run("critic.name=support:VowelCritic")
    with pytest.raises(UserError, match=r'has no option "max_words"; known: failing\.$'):
        run("critic.name=support:VowelCritic", "critic.options.max_words=3")
