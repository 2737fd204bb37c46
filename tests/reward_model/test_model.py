"""The reward model as a whole: saving and loading, independent predictions, and the critic protocol."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from reward_support import ANSWERS, about_animals, tiny_reward_model, unlabelled

from text2grad.errors import UserError
from text2grad.models.loading import load_tokenizer
from text2grad.reward_model.critique_format import CritiqueFormat, CritiqueLimits, parse_critique
from text2grad.reward_model.dataset import build_dataset
from text2grad.reward_model.familiarity import Familiarity, trust
from text2grad.reward_model.feedback import FeedbackSettings, TokenProbabilities
from text2grad.reward_model.head import GOOD, POOR, Calibration
from text2grad.reward_model.inputs import InputError, InputSettings
from text2grad.reward_model.model import SpanRewardModel
from text2grad.schema import Example

READABLE = [answer for answer in ANSWERS if answer.strip()]


@pytest.fixture(scope="module")
def model(tiny_model: Path) -> SpanRewardModel:
    return tiny_reward_model(tiny_model)


def probabilities(model: SpanRewardModel, examples: list[Example]) -> list[np.ndarray]:
    scored = model.score(examples)
    assert all(isinstance(one, TokenProbabilities) for one in scored)
    return [one.probabilities for one in scored if isinstance(one, TokenProbabilities)]


@pytest.mark.parametrize("lora", [False, True])
def test_a_loaded_model_predicts_the_same(tiny_model: Path, tmp_path: Path, lora: bool) -> None:
    model = tiny_reward_model(
        tiny_model, lora, inputs=InputSettings(reading="around"), feedback=FeedbackSettings(threshold=0.2)
    )
    model.settings = model.settings.model_copy(update={"calibration": Calibration(scale=1.5, bias=(0.1, -0.2, 0.3))})
    model.save_pretrained(tmp_path / "saved")
    loaded = SpanRewardModel.from_pretrained(tmp_path / "saved", device="cpu")
    assert loaded.settings == model.settings
    for one, other in zip(
        probabilities(model, unlabelled(ANSWERS)), probabilities(loaded, unlabelled(ANSWERS)), strict=True
    ):
        # A merged adapter rounds differently; whole weights do not.
        np.testing.assert_allclose(one, other, rtol=0, atol=1e-5 if lora else 0)
    assert not loaded.network.training


@pytest.mark.parametrize("lora", [False, True])
def test_no_local_path_is_saved(tiny_model: Path, tmp_path: Path, lora: bool) -> None:
    model = tiny_reward_model(tiny_model, lora=lora)
    model.settings = model.settings.model_copy(update={"base": "org/base"})
    model.save_pretrained(tmp_path)
    names = {path.name for path in tmp_path.iterdir()}
    assert {"reward_model.json", "head.safetensors", "README.md", "tokenizer.json"} <= names
    assert ("adapter_config.json" in names) is lora
    for path in tmp_path.iterdir():
        assert str(tiny_model).encode() not in path.read_bytes(), path.name
    assert json.loads((tmp_path / "reward_model.json").read_text())["base"] == "org/base"
    if lora:
        assert json.loads((tmp_path / "adapter_config.json").read_text())["base_model_name_or_path"] == "org/base"


def test_saved_settings_can_be_replaced_when_loading(model: SpanRewardModel, tmp_path: Path) -> None:
    model.save_pretrained(tmp_path)
    loaded = SpanRewardModel.from_pretrained(tmp_path, method="generative", threshold=0.5)
    assert loaded.settings.feedback == FeedbackSettings(method="generative", threshold=0.5)
    with pytest.raises(UserError, match='reward model: unknown key "treshold"; did you mean "threshold"'):
        SpanRewardModel.from_pretrained(tmp_path, treshold=0.5)
    with pytest.raises(UserError, match="reward model: method"):
        SpanRewardModel.from_pretrained(tmp_path, method="telepathy")


def test_a_folder_without_a_reward_model_is_rejected(
    tiny_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(UserError, match=r"is not a reward model: it has no reward_model\.json"):
        SpanRewardModel.from_pretrained(tiny_model)
    (tmp_path / "reward_model.json").write_text("{")
    with pytest.raises(UserError, match=r"is not a reward model: it has no head\.safetensors"):
        SpanRewardModel.from_pretrained(tmp_path)
    (tmp_path / "head.safetensors").touch()
    with pytest.raises(UserError, match=r"reward_model\.json: not valid JSON"):
        SpanRewardModel.from_pretrained(tmp_path)
    (tmp_path / "reward_model.json").write_text("{}")
    with pytest.raises(UserError, match=r'reward_model\.json: key "base" is missing'):
        SpanRewardModel.from_pretrained(tmp_path)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    with pytest.raises(UserError, match='reward model "no/where" cannot be found'):
        SpanRewardModel.from_pretrained("no/where")


@pytest.mark.parametrize(
    ("device", "says"), [("banana", '"banana" is not a device'), ("cuda:99", 'device "cuda:99" does not exist')]
)
def test_an_unknown_device_is_rejected(model: SpanRewardModel, tmp_path: Path, device: str, says: str) -> None:
    model.save_pretrained(tmp_path)
    with pytest.raises(UserError, match=says):
        SpanRewardModel.from_pretrained(tmp_path, device=device)


def test_probabilities_do_not_depend_on_the_batch(model: SpanRewardModel) -> None:
    examples = unlabelled(ANSWERS)
    together = probabilities(model, examples)
    for example, whole in zip(examples, together, strict=True):
        (alone,) = probabilities(model, [example])
        np.testing.assert_allclose(alone, whole, rtol=0, atol=1e-5)
        np.testing.assert_allclose(whole.sum(-1), 1)
    for one, other in zip(probabilities(model, examples[::-1]), together[::-1], strict=True):
        np.testing.assert_allclose(one, other, rtol=0, atol=1e-5)


def test_small_batches_change_nothing(model: SpanRewardModel, monkeypatch: pytest.MonkeyPatch) -> None:
    examples = unlabelled(ANSWERS)
    whole = probabilities(model, examples)
    monkeypatch.setattr("text2grad.reward_model.model.MAX_TOKENS_PER_BATCH", {"cpu": 1})
    for one, other in zip(probabilities(model, examples), whole, strict=True):
        np.testing.assert_allclose(one, other, rtol=0, atol=1e-5)


def test_the_repetition_sees_the_rest_of_the_completion(tiny_model: Path) -> None:
    """A causal model's first word depends on the last one only where the answer is read twice."""
    for reading, sees in (("once", False), ("twice", True), ("around", True)):
        model = tiny_reward_model(tiny_model, inputs=InputSettings.model_validate({"reading": reading}))
        one, other = (probabilities(model, unlabelled([answer]))[0][0] for answer in ("fox and cat", "fox and owl"))
        assert np.allclose(one, other, atol=1e-7) is not sees


def test_every_method_gives_valid_feedback(model: SpanRewardModel) -> None:
    examples = unlabelled(ANSWERS)
    for settings in ({"rewards": "graded"}, {"rewards": "spans"}, {"method": "generative"}):
        with model.override(**settings):
            given = model.critique(examples)
        assert [feedback.status for feedback in given] == ["ok"] * len(examples)
        for example, feedback in zip(examples, given, strict=True):
            Example.model_validate(example.model_dump() | {"feedback": feedback.model_dump()})
            assert feedback.critic == "reward"
            if "method" in settings:
                assert feedback.raw is not None
                written = {(*place, label) for label, place in parse_critique(feedback.raw, example.completion).spans()}
                assert {(span.start, span.end, span.label) for span in feedback.spans} == written
            elif settings["rewards"] == "graded" and example.completion in READABLE:
                assert feedback.scores
    assert model.settings.feedback == FeedbackSettings()


def test_the_severity_of_a_generated_span_is_the_heads_probability(
    model: SpanRewardModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    examples = unlabelled(["The fox jumps.", "It is cut."])
    texts = ['Critique: Fine.\nGood: "fox jumps"\nPoor: "."\nMissing: "why"', "Critique: Fi"]
    monkeypatch.setattr(model, "generate_critiques", lambda given: texts)
    with model.override(method="generative"):
        said, unreadable = model.critique(examples)
    scored, _ = model.score(examples)
    assert isinstance(scored, TokenProbabilities)
    for span, place, column in zip(said.spans, [(4, 13), (13, 14)], [GOOD, POOR], strict=True):
        assert (span.start, span.end) == place
        inside = [i for i, (start, end) in enumerate(scored.offsets) if start < place[1] and end > place[0]]
        assert span.severity == pytest.approx(max(scored.probabilities[inside, column].mean(), 0.01))
    assert (said.critique, said.omissions[0].text) == ("Fine.", "why")
    assert (unreadable.status, unreadable.raw) == ("failed", "Critique: Fi")
    assert unreadable.error == "unreadable: the critique is incomplete"


def test_a_completion_that_is_too_long_fails_alone(tiny_model: Path) -> None:
    model = tiny_reward_model(tiny_model, inputs=InputSettings(max_length=200))
    long, empty, short = unlabelled(["Q" * 150, "", "The fox jumps."])
    for settings in ({}, {"method": "generative"}):
        with model.override(**settings):
            (alone,) = model.critique([short])
            first, second, third = model.critique([long, empty, short])
        assert (first.status, second.status) == ("failed", "failed")
        assert first.error is not None
        assert first.error.startswith("too long: the completion has 150 tokens")
        assert third == alone


def test_a_critique_that_could_exceed_the_context_is_not_generated(tiny_model: Path) -> None:
    model = tiny_reward_model(tiny_model, critique_format=CritiqueFormat(limits=CritiqueLimits()))
    model.network.config.max_position_embeddings = 512
    (written,) = model.generate_critiques(unlabelled(["The fox jumps."]))
    assert isinstance(written, InputError)
    with model.override(method="generative"):
        (feedback,) = model.critique(unlabelled(["The fox jumps."]))
    assert feedback.error is not None
    assert feedback.error.startswith("too long: a critique may take")
    assert model.critique(unlabelled(["The fox jumps."]))[0].status == "ok", "the head needs no such room"


def test_no_examples(model: SpanRewardModel) -> None:
    assert model.critique([]) == []
    assert model.generate_critiques([]) == []


def test_override_restores_the_settings_even_after_an_error(model: SpanRewardModel) -> None:
    with pytest.raises(UserError, match='unknown key "metod"'), model.override(metod="head"):
        pass
    with pytest.raises(ZeroDivisionError), model.override(method="generative"):
        _ = 1 / 0
    assert model.settings.feedback == FeedbackSettings()


def test_the_fingerprint_follows_weights_and_settings(tiny_model: Path) -> None:
    def fingerprint(**changes: Any) -> str:
        return tiny_reward_model(tiny_model, **changes).fingerprint()

    assert fingerprint() == fingerprint()
    others = [
        fingerprint(seed=1),
        fingerprint(inputs=InputSettings(reading="once")),
        fingerprint(feedback=FeedbackSettings(threshold=0.3)),
        fingerprint(lora=True),
    ]
    recalibrated = tiny_reward_model(tiny_model, calibration=Calibration(scale=1.01))
    straight, turned = tiny_reward_model(tiny_model), tiny_reward_model(tiny_model)
    rows = torch.arange(3.0).unsqueeze(1).expand(3, 32)
    with torch.no_grad():
        straight.network.head.weight.copy_(rows)
        turned.network.head.weight.copy_(rows.flip(0))  # good and poor exchanged: the same numbers in other places
    models = [recalibrated, straight, turned]
    everything = [fingerprint(), *others, *(model.fingerprint() for model in models)]
    assert len(set(everything)) == len(everything)


def test_scoring_leaves_the_mode_as_it_was(tiny_model: Path) -> None:
    model = tiny_reward_model(tiny_model)
    model.network.train()
    model.critique(unlabelled(["The fox jumps."]))
    assert model.network.training


def test_reading_the_rows_of_a_dataset(tiny_model: Path, model: SpanRewardModel) -> None:
    examples = about_animals(5)
    dataset = build_dataset(examples, load_tokenizer(tiny_model), model.settings.inputs, model.settings.critique_format)
    logits, labels, features = model.read_rows(dataset)
    assert logits.shape == (len(labels), 3)
    assert features.shape == (5, 32)
    assert torch.bincount(labels, minlength=3).tolist() == dataset.class_counts()
    expected = np.concatenate(probabilities(model, examples))
    np.testing.assert_allclose(model.settings.calibration.probabilities(logits), expected, rtol=0, atol=1e-5)


def test_unfamiliar_completions_get_weaker_feedback(tiny_model: Path, tmp_path: Path) -> None:
    model = tiny_reward_model(tiny_model)
    settings = model.settings
    dataset = build_dataset(about_animals(60), load_tokenizer(tiny_model), settings.inputs, settings.critique_format)
    features = model.read_rows(dataset)[2]
    answers = unlabelled(["dog fox cat hen", "def f(x):\n    return {'a': 1}[x]  # 50%"])
    before, fingerprint = model.critique(answers), model.fingerprint()
    assert [feedback.distance for feedback in before] == [None, None]

    model.familiarity = Familiarity.fit(features[:40], features[40:])
    assert model.fingerprint() != fingerprint
    near, far = model.critique(answers)
    assert near.distance is not None
    assert far.distance is not None
    assert near.distance < 2 < far.distance
    assert near.score == before[0].score
    assert before[1].score is not None
    assert far.score == pytest.approx(before[1].score * trust(far.distance))
    with model.override(weaken_unfamiliar=False):
        assert model.critique(answers)[1].score == before[1].score

    model.save_pretrained(tmp_path)
    loaded = SpanRewardModel.from_pretrained(tmp_path, device="cpu").critique(answers)
    assert [feedback.distance for feedback in loaded] == pytest.approx([near.distance, far.distance], abs=1e-3)

    model.familiarity = None  # saved over one that has it
    model.save_pretrained(tmp_path)
    assert SpanRewardModel.from_pretrained(tmp_path, device="cpu").familiarity is None


def test_push_to_hub_uploads_what_is_saved(model: SpanRewardModel, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[tuple[str, Any]] = []

    class Hub:
        def create_repo(self, name: str, private: bool, exist_ok: bool) -> None:
            calls.append(("create", (name, private, exist_ok)))

        def upload_folder(self, repo_id: str, folder_path: str, commit_message: str) -> str:
            calls.append(("upload", {path.name for path in Path(folder_path).iterdir()}))
            return "https://hub/commit"

    monkeypatch.setattr("huggingface_hub.HfApi", Hub)
    assert model.push_to_hub("org/rm") == "https://hub/commit"
    assert calls[0] == ("create", ("org/rm", True, True))
    assert {"reward_model.json", "head.safetensors", "model.safetensors", "README.md"} <= calls[1][1]
