"""Whole commands, mostly in subprocesses."""

import errno
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from support import PROMPTS, restore_sigint

import text2grad as text2grad_package
from text2grad.checkpoint import run_folder
from text2grad.cli.app import _can_resume, main
from text2grad.config.packaged import preset_names
from text2grad.config.run import load_config
from text2grad.errors import UserError
from text2grad.files import disk_errors
from text2grad.schema import Example, write_examples

TESTS = Path(__file__).parents[1]
FAST = [
    "policy.max_steps=3",
    "policy.per_device_train_batch_size=4",
    "policy.max_completion_length=8",
    "policy.bf16=false",
]


def command(*arguments: str | Path) -> list[str]:
    return [sys.executable, "-c", "from text2grad.cli.app import main; main()", *map(str, arguments)]


def environment() -> dict[str, str]:
    path = os.pathsep.join([str(TESTS), str(Path(text2grad_package.__file__).parents[1])])
    return os.environ | {"PYTHONPATH": path, "OMP_NUM_THREADS": "1", "COLUMNS": "200"}


def text2grad(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command(*arguments), capture_output=True, text=True, env=environment(), timeout=240, check=False
    )


@pytest.fixture
def config(tmp_path: Path, tiny_model: Path) -> Path:
    """A configuration with the tiny model and a critic of the tests."""
    write_examples(tmp_path / "prompts.jsonl", PROMPTS)
    heldout = [
        Example(id="h1", prompt="Write a word.", reference="fox"),
        Example(id="h2", prompt="Go.", reference="dog"),
    ]
    write_examples(tmp_path / "heldout.jsonl", heldout)
    path = tmp_path / "config.yaml"
    path.write_text(
        f"model: {{name: {tiny_model}, lora: {{r: 4, alpha: 8}}}}\n"
        f"data: {{train: {tmp_path}/prompts.jsonl, eval: {tmp_path}/heldout.jsonl}}\n"
        f"critic: {{name: 'support:SlowVowelCritic'}}\n"
        f"evaluate: {{resamples: 50}}\n"
        f"output_dir: {tmp_path}/run\n"
    )
    return path


Refused = Callable[..., str]


@pytest.fixture
def refused(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Refused:
    """Run a command that fails in this process, and return its error message of one line."""

    def run(*arguments: str | Path) -> str:
        monkeypatch.setattr(sys, "argv", ["text2grad", *map(str, arguments)])
        with pytest.raises(SystemExit) as stop:
            main()
        assert stop.value.code == 1
        said = capsys.readouterr().err
        assert said.startswith("Error: ")
        assert len(said.strip().splitlines()) == 1
        return said

    return run


def test_a_run_writes_its_folder_and_prints_the_results(config: Path, tmp_path: Path, refused: Refused) -> None:
    done = text2grad("run", config, *FAST)
    assert done.returncode == 0, done.stderr
    for shown in (
        "step 3/3",
        "critic's score",
        "ROUGE-L",
        "95% interval",
        "Example h1",
        str(tmp_path / "run/report.html"),
    ):
        assert shown in done.stdout
    run = tmp_path / "run"
    assert [json.loads(line)["step"] for line in (run / "metrics.jsonl").read_text().splitlines()] == [1, 2, 3]
    sample = json.loads((run / "samples.jsonl").read_text().splitlines()[0])
    assert "".join(token["text"] for token in sample["tokens"] if token["start"] < token["end"])
    assert {"reward", "advantage", "logprob_before", "logprob_after"} <= sample["tokens"][0].keys()
    assert json.loads((run / "evaluation.json").read_text())["n"] == 2
    assert (run / "checkpoints/final/adapter_model.safetensors").is_file()
    assert "<script" in (run / "report.html").read_text()

    said = refused("run", config, *FAST)
    assert "already holds a run" in said
    assert "--resume" in said


def test_a_run_killed_in_the_middle_of_a_step_resumes_to_the_same_weights(config: Path, tmp_path: Path) -> None:
    through = text2grad("run", config, *FAST, f"output_dir={tmp_path}/through")
    assert through.returncode == 0, through.stderr
    victim = subprocess.Popen(
        command("run", config, *FAST), env=environment(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    metrics = tmp_path / "run" / "metrics.jsonl"
    deadline = time.monotonic() + 120
    while not metrics.exists() and time.monotonic() < deadline:
        time.sleep(0.02)
    time.sleep(0.2)  # the critic of the second step is running now
    victim.send_signal(signal.SIGKILL)
    victim.wait()
    assert len(metrics.read_text().splitlines()) < 3
    resumed = text2grad("run", config, *FAST, "--resume")
    assert resumed.returncode == 0, resumed.stderr
    for name in ("checkpoints/final/adapter_model.safetensors", "checkpoints/last/optimizer.safetensors"):
        one, other = load_file(tmp_path / "through" / name), load_file(tmp_path / "run" / name)
        torch.testing.assert_close(one, other, rtol=0, atol=0)


def test_ctrl_c_prints_how_to_continue(config: Path, tmp_path: Path) -> None:
    run = subprocess.Popen(
        command("run", config, *FAST, "policy.max_steps=100"),
        env=environment(),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=restore_sigint,
    )
    deadline = time.monotonic() + 120
    while not (tmp_path / "run" / "metrics.jsonl").exists() and time.monotonic() < deadline:
        time.sleep(0.02)
    run.send_signal(signal.SIGINT)
    _, stderr = run.communicate(timeout=60)
    assert run.returncode == 130
    assert stderr.strip() == "Interrupted. Continue with --resume."
    assert (tmp_path / "run" / "checkpoints" / "last" / "trainer_state.json").is_file()


def test_misspelt_keys_and_names_are_refused(config: Path, refused: Refused) -> None:
    assert 'did you mean "learning_rate"' in refused("run", config, "policy.lerning_rate=1")
    assert 'did you mean "grounding"' in refused("run", config, "critic.name=groundin")
    assert "cannot be imported" in refused("run", config, "critic.name=nowhere:Critic")


def test_an_empty_data_set_is_refused(config: Path, tmp_path: Path, refused: Refused) -> None:
    (tmp_path / "empty.jsonl").touch()
    said = refused("run", config, f"data.train={tmp_path}/empty.jsonl")
    assert "empty.jsonl" in said
    assert "data set is empty" in said


def test_a_prompt_longer_than_the_context_is_named(config: Path, tmp_path: Path, refused: Refused) -> None:
    write_examples(tmp_path / "long.jsonl", [Example(id="endless", prompt="word " * 600)])
    for split in ("train", "eval"):
        said = refused("run", config, f"data.{split}={tmp_path}/long.jsonl", f"output_dir={tmp_path}/{split}")
        assert '"endless"' in said
        assert "shorten it" in said


def test_a_model_without_a_chat_template_is_named(
    config: Path, tiny_model: Path, tmp_path: Path, refused: Refused
) -> None:
    bare = tmp_path / "bare"
    bare.mkdir()
    for path in tiny_model.iterdir():
        if path.name != "chat_template.jinja":
            (bare / path.name).write_bytes(path.read_bytes())
    said = refused("run", config, "--model", bare)
    assert "no chat template" in said
    assert "plain_prompts" in said


def test_a_full_disk_is_named_and_the_last_checkpoint_stays(
    config: Path, tmp_path: Path, refused: Refused, monkeypatch: pytest.MonkeyPatch
) -> None:
    def append(path: Path, records: object) -> None:
        with disk_errors(path):
            raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(run_folder, "append_json_lines", append)
    assert "the disk is full while saving" in refused("run", config, *FAST)
    assert json.loads((tmp_path / "run/checkpoints/last/trainer_state.json").read_text())["step"] == 0


def test_errors_are_attributed_to_the_override(config: Path, refused: Refused) -> None:
    said = refused("run", config, "seed=1", "policy.learning_rate=fast")
    assert said.startswith("Error: policy.learning_rate=fast: policy.learning_rate: Input should be a valid number")
    assert str(config) not in said


def test_a_run_whose_critiques_all_failed_exits_with_the_reason(config: Path, refused: Refused) -> None:
    said = refused("run", config, *FAST, "policy.max_steps=1", "data.eval=null", "critic.name=support:Broken")
    assert "nothing was learned: every critique of the run failed" in said
    assert "the critic Broken raised LookupError: no such style (support.py, line " in said


def test_resume_refuses_other_settings(config: Path, tmp_path: Path, refused: Refused) -> None:
    assert "no run to resume" in refused("run", config, "--resume")
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "config.yaml").write_text(load_config(config).to_yaml())
    said = refused("run", config, "--resume", "policy.beta=0.7", "policy.max_steps=7")
    assert "other settings (policy.beta)" in said


def test_a_folder_in_the_place_of_a_file_is_named(config: Path, tmp_path: Path, refused: Refused) -> None:
    assert f"{tmp_path}: Is a directory" in refused(
        "annotate", tmp_path / "prompts.jsonl", "--critic", "qa", "-o", tmp_path
    )


def test_only_what_can_be_resumed_says_so() -> None:
    assert [_can_resume(words) for words in (["run", "x"], ["train", "x"], ["reward", "train"])] == [True] * 3
    assert [_can_resume(words) for words in (["reward", "score"], ["annotate"], [])] == [False] * 3


def test_debug_shows_the_traceback(config: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["text2grad", "run", str(config), "seed=x", "--debug"])
    with pytest.raises(UserError, match="seed"):
        main()


def test_an_unexpected_error_is_a_sentence(config: Path, refused: Refused, monkeypatch: pytest.MonkeyPatch) -> None:
    def load(*arguments: object) -> None:
        raise ZeroDivisionError("in the\nlibrary")

    monkeypatch.setattr("text2grad.config.run.load_config", load)
    said = refused("run", config)
    assert re.fullmatch(
        r"Error: unexpected ZeroDivisionError: in the library \(test_app.py, line \d+\); repeat the command with "
        r"--debug for the traceback\n",
        said,
    )


def test_explain_prints_json_and_a_table(
    tiny_model: Path, refused: Refused, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    question = ["--prompt", "When?", "--completion", "On Friday.", "--model", str(tiny_model), "--feedback"]
    for extra in ([], ["--json"]):
        monkeypatch.setattr(sys, "argv", ["text2grad", "explain", *question, 'Not "Friday".', *extra])
        with pytest.raises(SystemExit, match="0"):
            main()
        shown = capsys.readouterr().out
        if extra:
            assert json.loads(shown)["spans"][0]["label"] == "poor"
        else:
            assert 'Not "Friday".' in shown
            assert re.search(r"confidence.*-(?:0\.[3-9]|1\.0)", shown, re.DOTALL)
    assert "does not say which words" in refused("explain", *question, "The soup in Zanzibar is wrong.")


def run_in_process(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> None:
    monkeypatch.setattr(sys, "argv", ["text2grad", *arguments])
    with pytest.raises(SystemExit, match="0"):
        main()


COMMANDS = ["init", "run", "train", "annotate", "align", "explain", "report", "export"]
COMMANDS += [f"reward {name}" for name in ("train", "eval", "score", "serve")]


@pytest.mark.parametrize("name", COMMANDS)
def test_the_help_of_every_command_has_an_example(
    name: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    run_in_process(monkeypatch, *name.split(), "-h")
    assert f"Example: text2grad {name} " in capsys.readouterr().out


def test_help_lists_commands_and_presets(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    run_in_process(monkeypatch, "--help")
    overview = capsys.readouterr().out
    assert all(name.partition(" ")[0] in overview for name in COMMANDS)
    run_in_process(monkeypatch, "run", "--help")
    shown = capsys.readouterr().out
    assert all(text in shown for text in ("section.key=value", "--resume", *preset_names()))


def test_an_unknown_preset_is_refused_with_the_list(refused: Refused) -> None:
    said = refused("run", "quickstrat")
    assert "quickstrat: no such file or preset" in said
    assert all(name in said for name in preset_names())


def test_version(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    run_in_process(monkeypatch, "--version")
    assert re.fullmatch(r"text2grad \d+\.\d+\.\d+\n", capsys.readouterr().out)


@pytest.mark.parametrize(
    "statement",
    ["import text2grad", "import text2grad.cli.app", "import sys; sys.argv = ['text2grad', '--help']; main()"],
)
def test_heavy_libraries_are_not_imported_for_help(statement: str) -> None:
    """`text2grad --help` must be fast, and work without the optional dependencies."""
    code = f"""
import sys
if "main()" in {statement!r}:
    from text2grad.cli.app import main
try:
    {statement}
except SystemExit:
    pass
heavy = ["torch", "transformers", "fastapi", "openai", "datasets", "peft"]
sys.exit(", ".join(name for name in heavy if name in sys.modules) or 0)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment(), check=False)
    assert done.returncode == 0, done.stderr
