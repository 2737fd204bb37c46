"""Training on a few answers with the tiny model: it learns, it says what it used, and it can be stopped anywhere."""

from __future__ import annotations

import json
import shutil
import signal
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from peft import PeftModel
from reward_support import about_animals
from torch.utils.data import DataLoader
from transformers import TrainerCallback

from text2grad.data.split import split_by_prompt
from text2grad.errors import UserError
from text2grad.reward_model.feedback import TokenProbabilities
from text2grad.reward_model.head import GOOD, POOR, Calibration
from text2grad.reward_model.model import SpanRewardModel
from text2grad.reward_model.train import RewardTrainingSettings, train_reward_model, training_arguments
from text2grad.reward_model.trainer import LengthGroupedSampler
from text2grad.schema import Example, Feedback

Train = Callable[..., SpanRewardModel]
EXAMPLES = about_animals(14)


class StoppedError(Exception):
    pass


@pytest.fixture
def train(tiny_model: Path, tmp_path: Path) -> Train:
    def train(
        folder: str = "rm",
        resume: bool = False,
        stop: int | None = None,
        examples: Sequence[Example] = EXAMPLES,
        each_step: Callable[[int], None] = lambda step: None,
        **settings: Any,
    ) -> SpanRewardModel:
        class EachStep(TrainerCallback):
            """Takes the place of the trainer's own printing."""

            def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
                if state.global_step == stop:
                    raise StoppedError
                each_step(state.global_step)

        defaults: dict[str, Any] = {
            "model": str(tiny_model),
            "per_device_train_batch_size": 3,
            "learning_rate": 1e-2,
            "heldout_share": 0.2,
            "logging_steps": 1,
            "save_steps": 1,
            "bf16": False,
        }
        return train_reward_model(
            examples,
            RewardTrainingSettings.parse(defaults | settings, where="test"),
            tmp_path / folder,
            resume=resume,
            callbacks=[EachStep()],
        )

    return train


def weights(model: SpanRewardModel) -> dict[str, torch.Tensor]:
    return dict(model.network.state_dict())


@pytest.mark.parametrize("lora", [None, {"r": 4, "alpha": 8}])
def test_training_learns_which_words_are_poor(train: Train, tmp_path: Path, lora: dict[str, int] | None) -> None:
    model = train(num_train_epochs=12, lora=lora, save_steps=100)
    assert isinstance(model.network.model, PeftModel) is (lora is not None)
    assert model.settings.calibration != Calibration(), "fitted on the held-out answers"
    assert model.familiarity is not None
    example = Example(id="new", prompt="Write about animals (0).", completion="owl dog owl cat")
    for scored in (model.score([example])[0], SpanRewardModel.from_pretrained(tmp_path / "rm").score([example])[0]):
        assert isinstance(scored, TokenProbabilities)
        poor = dict(zip(scored.offsets, scored.probabilities[:, POOR], strict=True))
        of_dog = max(p for (start, end), p in poor.items() if start < 7 and end > 4)
        others = [p for (start, end), p in poor.items() if end <= 3 or start >= 7]
        assert of_dog > 2 * max(others)


def test_the_summary_describes_the_data(train: Train, tmp_path: Path) -> None:
    train(max_steps=2)
    summary = json.loads((tmp_path / "rm" / "training.json").read_text())
    seen, unseen = split_by_prompt(EXAMPLES, 0.2)
    assert summary["train"]["examples"] == len(seen)
    assert summary["heldout"]["examples"] == len(unseen) > 0
    assert summary["train"]["skipped"] == {}
    assert summary["train"]["truncated_prompts"] == 0
    assert all(count > 0 for count in summary["train"]["tokens"].values())
    assert summary["settings"]["max_steps"] == 2
    steps = [entry for entry in summary["log"] if "loss" in entry]
    assert len(steps) == 2
    for entry in steps:
        assert entry["loss"] == pytest.approx(entry["head_loss"] + 0.3 * entry["lm_loss"], abs=1e-3)


def test_a_small_share_to_calibrate_on_is_warned_of(
    train: Train, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    train(max_steps=1)
    assert "too few completions are held out to calibrate" in caplog.text
    caplog.clear()
    monkeypatch.setattr("text2grad.reward_model.train.FEW_HELDOUT", 1)
    train("other", max_steps=1)
    assert not caplog.text


def test_without_lm_weight_only_the_head_is_trained(train: Train, tmp_path: Path) -> None:
    train(max_steps=1, lm_weight=0)
    (entry,) = (e for e in json.loads((tmp_path / "rm" / "training.json").read_text())["log"] if "head_loss" in e)
    assert entry["lm_loss"] == 0
    assert entry["loss"] == pytest.approx(entry["head_loss"], abs=1e-3)


def test_without_heldout_examples_there_is_no_calibration(train: Train) -> None:
    calibration = train(max_steps=1, heldout_share=0).settings.calibration
    assert calibration == Calibration(prior=calibration.prior)
    assert sum(calibration.prior) == pytest.approx(1.0)
    assert calibration.centre == pytest.approx(calibration.prior[GOOD] - calibration.prior[POOR])


# An epoch has four steps: within the first, at its end, and within the second.
@pytest.mark.parametrize(("stop", "lora"), [(3, None), (5, {"r": 2}), (7, None)])
def test_a_killed_run_resumes_exactly(train: Train, stop: int, lora: dict[str, int] | None) -> None:
    settings = {"max_steps": 9, "lora": lora, "gradient_accumulation_steps": 1}
    through = train("through", **settings)
    with pytest.raises(StoppedError):
        train("killed", stop=stop, **settings)
    resumed = train("killed", resume=True, **settings)
    torch.testing.assert_close(weights(resumed), weights(through), rtol=0, atol=0)
    assert resumed.settings.calibration == through.settings.calibration


def test_an_incomplete_checkpoint_is_skipped(train: Train, tmp_path: Path) -> None:
    through = train("through", max_steps=3)
    with pytest.raises(StoppedError):
        train("killed", max_steps=3, stop=3)
    (tmp_path / "killed/checkpoints/checkpoint-2/trainer_state.json").unlink()
    (tmp_path / "killed/checkpoints/checkpoint-2/model.safetensors").write_bytes(b"torn")
    resumed = train("killed", max_steps=3, resume=True)
    torch.testing.assert_close(weights(resumed), weights(through), rtol=0, atol=0)


def test_checkpoints_hold_only_what_is_trained(train: Train, tmp_path: Path) -> None:
    from safetensors import safe_open

    train(max_steps=1, lora={"r": 2})
    with safe_open(tmp_path / "rm/checkpoints/checkpoint-1/model.safetensors", "pt") as stored:
        assert all("lora_" in name or name.startswith("head.") for name in stored.keys())  # noqa: SIM118


def test_resuming_requires_the_same_settings_and_examples(train: Train) -> None:
    with pytest.raises(StoppedError):
        train(max_steps=3, stop=2, lora={"r": 2, "target_modules": ["q_proj"]})
    with pytest.raises(
        UserError, match=r"continues the same training, but lora.target_modules was \['q_proj'\] and is"
    ):
        train(max_steps=3, resume=True, lora={"r": 2, "target_modules": ["q_proj", "v_proj"]})
    with pytest.raises(UserError, match="but the examples differ"):
        train(max_steps=3, resume=True, examples=EXAMPLES[1:], lora={"r": 2, "target_modules": ["q_proj"]})


@pytest.fixture
def listening() -> Iterator[None]:
    """A shell that starts tests in the background lets them ignore Ctrl-C."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("listening")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_saves_a_checkpoint_after_the_current_step(
    train: Train, tmp_path: Path, capsys: pytest.CaptureFixture[str], number: signal.Signals
) -> None:
    whole = train("whole", max_steps=4)
    before = signal.getsignal(number)
    with pytest.raises(KeyboardInterrupt):
        train(max_steps=4, save_steps=1000, each_step=lambda step: signal.raise_signal(number) if step == 2 else None)
    assert signal.getsignal(number) is before
    assert "Saving a checkpoint after this step" in capsys.readouterr().err
    assert [path.name for path in (tmp_path / "rm" / "checkpoints").iterdir()] == ["checkpoint-2"]
    resumed = train(max_steps=4, save_steps=1000, resume=True)
    assert weights(resumed).keys() == weights(whole).keys()
    assert all(torch.equal(weights(resumed)[name], tensor) for name, tensor in weights(whole).items())
    with pytest.raises(UserError, match="this training is finished"):
        train(max_steps=4, save_steps=1000, resume=True)


@pytest.mark.usefixtures("listening")
def test_a_second_ctrl_c_stops_at_once(train: Train, tmp_path: Path) -> None:
    def impatient(step: int) -> None:
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        train(max_steps=4, save_steps=1000, each_step=impatient)
    assert not list((tmp_path / "rm" / "checkpoints").glob("checkpoint-*"))


def test_without_good_or_poor_words_there_is_nothing_to_learn(train: Train) -> None:
    silent = [Example(id="1", prompt="p", completion="x", feedback=Feedback(critic="c", critique="Poor."))]
    with pytest.raises(UserError, match=r"none of the 1 completions has a good or poor word.*text2grad align"):
        train(examples=silent, heldout_share=0)


def test_arguments_that_the_trainer_rejects_are_reported(train: Train) -> None:
    with pytest.raises(UserError, match="reward train: foo is not a valid SchedulerType"):
        train(max_steps=1, lr_scheduler_type="foo")


def test_a_folder_of_others_is_not_written_to(tiny_model: Path, tmp_path: Path) -> None:
    (tmp_path / "README.md").write_text("my project")
    with pytest.raises(UserError, match="exists and is not a reward model of text2grad; choose an empty folder"):
        train_reward_model([], RewardTrainingSettings(model=str(tiny_model)), tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["README.md"]
    assert (tmp_path / "README.md").read_text() == "my project"


def test_resuming_requires_a_checkpoint_and_starting_requires_none(train: Train) -> None:
    with pytest.raises(UserError, match="no checkpoint to resume from; start the training without --resume"):
        train(max_steps=1, resume=True)
    with pytest.raises(StoppedError):
        train(max_steps=2, stop=2)
    with pytest.raises(UserError, match="already holds a training run; continue it with --resume"):
        train(max_steps=2)


def test_a_finished_model_is_not_overwritten_where_its_checkpoints_were_removed(train: Train, tmp_path: Path) -> None:
    before = weights(train(max_steps=1))
    shutil.rmtree(tmp_path / "rm" / "checkpoints")
    with pytest.raises(UserError, match="rm already holds a trained reward model; choose another folder"):
        train(max_steps=1, seed=1)
    after = weights(SpanRewardModel.from_pretrained(tmp_path / "rm", "cpu"))
    assert torch.equal(after["head.weight"], before["head.weight"])


def test_resuming_without_the_settings_of_the_run_is_an_error(train: Train, tmp_path: Path) -> None:
    with pytest.raises(StoppedError):
        train(max_steps=2, stop=2)
    (tmp_path / "rm" / "run.json").unlink()
    with pytest.raises(UserError, match=r"run\.json is missing; restore it from a copy"):
        train(max_steps=2, resume=True)


def test_nothing_to_train_on_is_an_error(tiny_model: Path, tmp_path: Path) -> None:
    examples = [
        Example(id="1", prompt="p", completion="x", feedback=Feedback.failure("c", "timeout")),
        Example(id="2", prompt="p", completion="x"),
    ]
    settings = RewardTrainingSettings(model=str(tiny_model), heldout_share=0)
    with pytest.raises(UserError, match=r"no example is usable \(1 failed feedback, 1 no feedback\)"):
        train_reward_model(examples, settings, tmp_path)
    with pytest.raises(UserError, match=r"\(no examples\)"):
        train_reward_model([], settings, tmp_path)


def test_mixed_precision_gradient_checkpointing_and_accumulation_are_passed_on(train: Train, tmp_path: Path) -> None:
    for lora in (None, {"r": 2}):
        train(f"lora {lora}", max_steps=1, bf16=True, gradient_checkpointing=True, lora=lora)
    settings = RewardTrainingSettings(bf16=True, gradient_accumulation_steps=2, warmup_ratio=0.25, max_steps=8)
    arguments = training_arguments(settings, tmp_path)
    assert (arguments.bf16, arguments.gradient_accumulation_steps) == (True, 2)
    assert arguments.get_warmup_steps(8) == 2


@pytest.mark.parametrize(
    ("values", "says"),
    [
        ({"learning_rte": 1}, 'unknown key "learning_rte"; did you mean "learning_rate"'),
        ({"inputs": {"reading": "thrice"}}, "inputs.reading"),
        ({"critique_format": {"limits": {"quote": 3}}}, "critique_format.limits.quote"),
        ({"heldout_share": 1.0}, "heldout_share"),
        ({"max_steps": 0}, "max_steps"),
        ({"max_steps": -5}, "max_steps"),
    ],
)
def test_wrong_settings_are_named(values: dict[str, Any], says: str) -> None:
    with pytest.raises(UserError) as error:
        RewardTrainingSettings.parse(values, where="reward train")
    assert str(error.value).startswith("reward train: ")
    assert says in str(error.value)


def test_the_order_of_rows_depends_on_seed_and_epoch_alone() -> None:
    epoch = 0
    rows = LengthGroupedSampler(list(range(20)), batch_size=4, seed=3, epoch=lambda: epoch)
    first = list(rows)
    torch.rand(5)
    assert list(rows) == first
    assert sorted(first) == list(range(len(rows)))
    epoch = 1
    assert list(rows) != first
    assert list(LengthGroupedSampler(list(range(20)), 4, seed=4, epoch=lambda: 0)) != first
    # Within a batch, lengths fall.
    batches = list(DataLoader(list(range(20)), batch_size=4, sampler=rows))
    assert all((batch[:-1] >= batch[1:]).all() for batch in batches)
