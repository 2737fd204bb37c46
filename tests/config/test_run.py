from pathlib import Path

import pytest

from text2grad.config.packaged import PRESETS
from text2grad.config.run import RunConfig, changed_keys, load_config
from text2grad.errors import UserError


def write(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "config.yaml"
    path.write_text(text)
    return path


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("policy: {learning_rte: 1}", 'unknown key "learning_rte" in [policy]; did you mean "learning_rate"?'),
        ("polcy: {}", 'unknown key "polcy"; did you mean "policy"?'),
        ("model: {lora: {rank: 3}}", 'unknown key "rank" in [model.lora]; known: r, alpha, target_modules'),
        ("credit: {mod: first}", 'unknown key "mod" in [credit]; did you mean "mode"?'),
        ("policy: {learning_rate: fast}", "policy.learning_rate: Input should be a valid number"),
        ("policy: {max_steps: 0}", "policy.max_steps: Input should be greater than 0"),
        ("credit: {mode: everything}", "credit.mode: Input should be 'uniform', 'normalized'"),
        ("policy: {num_generations: 3}", "num_generations is 3 but a step samples 8 completions"),
        ("- a list", "expected sections such as `model:`"),
        ("policy: {", "is not valid YAML"),
    ],
)
def test_a_bad_config_is_one_clear_sentence(tmp_path: Path, text: str, says: str) -> None:
    path = write(tmp_path, text)
    with pytest.raises(UserError) as error:
        load_config(path)
    assert str(path) in str(error.value)
    assert says in str(error.value)


def test_a_missing_config_is_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"nowhere\.yaml: no such file"):
        load_config(tmp_path / "nowhere.yaml")


def test_data_beside_the_file_is_found_where_the_current_folder_has_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "mine").mkdir()
    write(tmp_path / "mine", "data: {train: here.jsonl, eval: beside.jsonl}")
    for place in ("here.jsonl", "mine/here.jsonl", "mine/beside.jsonl", "mine/summaries"):
        (tmp_path / place).touch()
    monkeypatch.chdir(tmp_path)
    (path,) = Path("mine").glob("*.yaml")
    assert load_config(path).data.model_dump(include={"train", "eval"}) == {
        "train": "here.jsonl",
        "eval": "mine/beside.jsonl",
    }
    assert load_config(path, ["data.eval=beside.jsonl"]).data.eval == "beside.jsonl"  # the user's own folder
    path.write_text("data: {train: summaries}")
    assert load_config(path).data.train == "summaries"


def test_overrides_reach_every_section(tmp_path: Path) -> None:
    path = write(tmp_path, "policy: {max_steps: 5, beta: 0.1}\nmodel: {lora: null}")
    config = load_config(path, ["policy.learning_rate=1e-5", "seed=3", "model.lora.r=8", "data.eval=null"])
    assert config.policy.learning_rate == 1e-5
    assert (config.policy.max_steps, config.policy.beta, config.seed, config.data.eval) == (5, 0.1, 3, None)
    assert config.model.lora is not None
    assert config.model.lora.r == 8


@pytest.mark.parametrize(
    ("text", "overrides", "origin"),
    [
        ("seed: 1", ["policy.learning_rte=1"], "policy.learning_rte=1"),
        ("seed: 1", ["policy.beta=1", "policy.max_steps=0"], "policy.max_steps=0"),
        ("seed: 1", ["polcy.beta=1"], "polcy.beta=1"),
        ("seed: 1", ["policy=3"], "policy=3"),
        ("seed: 1", ["model.lora.rank=3", "seed=2"], "model.lora.rank=3"),
        ("seed: 1", ["policy.num_generations=3", "seed=2"], "policy.num_generations=3"),
        ("policy: {num_generations: 3}", ["policy.beta=1"], "config.yaml"),
        ("policy: {max_steps: 0}", ["policy.beta=1"], "config.yaml"),
        ("policy: {max_steps: 0}", ["policy.beta=-1"], "config.yaml"),
        ("policy: {max_steps: 0}", ["policy.max_steps=-1"], "policy.max_steps=-1"),
    ],
)
def test_an_error_is_attributed_to_the_override_or_to_the_file(
    tmp_path: Path, text: str, overrides: list[str], origin: str
) -> None:
    path = write(tmp_path, text)
    with pytest.raises(UserError) as error:
        load_config(path, overrides)
    assert str(error.value).startswith(f"{path if origin == 'config.yaml' else origin}: ")


@pytest.mark.parametrize("override", ["max_steps", "seed.more=3", "model.name={", "critic.name=a: b: c"])
def test_an_override_that_is_no_setting_is_quoted(tmp_path: Path, override: str) -> None:
    with pytest.raises(UserError, match=f'"{override}"'):
        load_config(write(tmp_path, "seed: 1"), [override])


def test_the_written_file_repeats_the_run(tmp_path: Path) -> None:
    config = load_config(Path("quickstart"), ["seed=4"])
    assert load_config(write(tmp_path, config.to_yaml())) == config


def test_changed_keys_are_named_with_their_sections() -> None:
    other = RunConfig.model_validate({"seed": 1, "policy": {"beta": 0.5}, "model": {"lora": None}})
    assert changed_keys(RunConfig(), other) == [
        "model.lora.alpha",
        "model.lora.r",
        "model.lora.target_modules",
        "policy.beta",
        "seed",
    ]


@pytest.mark.parametrize("path", sorted(PRESETS.glob("*.yaml")), ids=lambda path: path.name)
def test_presets_are_valid(path: Path) -> None:
    assert load_config(path).output_dir != RunConfig().output_dir


def test_defaults_of_a_command_fill_what_is_not_set_inside_groups_too(tmp_path: Path) -> None:
    defaults = {"policy": {"beta": 0.1, "corrections": {"weight": 0.5, "robustness": 0.0}}}
    plain = load_config(None, [], defaults).policy
    assert (plain.beta, plain.corrections.weight, plain.corrections.robustness) == (0.1, 0.5, 0.0)
    path = write(tmp_path, "policy: {beta: 0.3, corrections: {kl: 0.2}}")
    changed = load_config(path, ["policy.corrections.weight=1"], defaults).policy
    assert (changed.beta, changed.corrections.kl) == (0.3, 0.2)
    assert (changed.corrections.weight, changed.corrections.robustness) == (1.0, 0.0)
    assert defaults["policy"]["corrections"] == {"weight": 0.5, "robustness": 0.0}


@pytest.mark.parametrize("text", ["", "\n# policy:\n#   max_steps: 3\n"])
def test_an_empty_file_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "empty.yaml").write_text(text)
    with pytest.raises(UserError, match=r"empty\.yaml is empty; `text2grad init` .* the presets are .*quickstart"):
        load_config(tmp_path / "empty.yaml")
