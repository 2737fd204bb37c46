"""The card of a trained model: metrics, metadata, and names that cannot break out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from support import PROMPTS, MakeTrainer

from text2grad.checkpoint.markdown import split_front_matter
from text2grad.checkpoint.model_card import merged_card, model_card, read_names
from text2grad.errors import UserError
from text2grad.trainer.config import Text2GradConfig
from text2grad.trainer.guards import EvalScore

FACTS: dict[str, Any] = {
    "base": "org/base",
    "trained": "all weights",
    "is_adapter": False,
    "step": 40,
    "settings": {"learning_rate": 0.001, "save_steps": 7, "credit": {"mode": "uniform"}, "output_dir": "/home/me/run"},
    "names": {"critic": "lint", "prompts": "summaries"},
}
EVALUATION = {"n": 7, "metrics": {"score": {"before": -1.0, "after": 0.5, "low": 1.0, "high": 2.0}}}


def make_card(**changes: Any) -> str:
    return model_card(**FACTS | changes)


def test_the_card_has_the_runs_metrics() -> None:
    card = make_card(scores=[EvalScore(10, 0.25), EvalScore(40, 0.5)], evaluation=EVALUATION)
    metadata, text = split_front_matter(card)
    assert metadata == {
        "base_model": "org/base",
        "base_model_relation": "finetune",
        "library_name": "transformers",
        "pipeline_tag": "text-generation",
        "tags": ["text2grad"],
    }
    for line in (
        "| base model | `org/base` |",
        "| critic | `lint` |",
        "| prompts | `summaries` |",
        "| steps | `40` |",
        "0.250 after step 10, 0.500 after step 40 (evaluations: 2).",
        "## Held-out completions, n = 7",
        "| score | -1.000 | 0.500 | [+1.000, +2.000] |",
        "learning_rate: 0.001",
    ):
        assert line in text
    assert "# license:" in card


def test_what_is_not_known_or_does_not_matter_is_left_out() -> None:
    card = make_card()
    assert "Held-out" not in card
    assert "save_steps" not in card
    assert "/home/me" not in card


def test_a_card_names_no_server() -> None:
    server = Text2GradConfig(output_dir=Path("run"), vllm_server_base_url="http://gpu-7.internal:8000")
    assert "internal" not in make_card(settings=server.model_dump(mode="json"))


def test_a_local_base_is_called_by_its_name_alone(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    metadata, text = split_front_matter(make_card(base=str(tmp_path / "mine")))
    assert "base_model" not in metadata, "the hub knows no folders"
    assert "| base model | `mine` |" in text
    assert str(tmp_path) not in text
    assert split_front_matter(make_card(base="smollm2"))[0]["base_model"] == ("HuggingFaceTB/SmolLM2-135M-Instruct")


def test_names_cannot_break_out() -> None:
    evil = 'x"\n---\nlicense: mit\n---\n# Owned `<script>` |'
    card = make_card(base=evil, names={"critic": evil}, settings={"name": "```\n# Owned"})
    metadata, text = split_front_matter(card)
    assert metadata["base_model"] == " ".join(evil.split())
    assert "license" not in metadata
    headings = [line for line in text.splitlines() if line.startswith("#")]
    assert len(headings) == 2  # the title and the settings
    assert "````yaml" in text


def test_a_merged_model_keeps_the_card_with_what_the_user_wrote() -> None:
    card = make_card(is_adapter=True).replace("pipeline_tag", "license: mit\npipeline_tag")
    metadata, text = split_front_matter(merged_card(card + "\nMy words.\n", Path("README.md")))
    assert (metadata["library_name"], metadata["base_model_relation"]) == ("transformers", "finetune")
    assert metadata["license"] == "mit"
    assert text.endswith("My words.\n")
    with pytest.raises(UserError, match="not valid YAML; fix or remove them"):
        merged_card("---\na: [\n---\n", Path("README.md"))


def test_the_trainers_own_card(make_trainer: MakeTrainer, tmp_path: Path) -> None:
    trainer = make_trainer(max_steps=2, eval_steps=1, eval_dataset=PROMPTS[:2])
    trainer.train()
    card = (trainer.save_model() / "README.md").read_text()
    for line in (
        "| critic | `VowelCritic` |",
        "| trained | `a LoRA adapter, r 4, alpha 8` |",
        "| steps | `2` |",
        "after step 2 (evaluations: 2).",
        "library_name: peft",
    ):
        assert line in card
    best = (trainer.run.best / "README.md").read_text()
    assert trainer.best_checkpoint.best is not None
    assert f"| steps | `{trainer.best_checkpoint.best.step}` |" in best
    trainer.run.config.write_text("critic: {name: grounding}\ndata: {train: summaries}\n")
    assert "| critic | `grounding` |" in trainer.create_model_card()


def test_names_come_from_the_runs_settings_without_folders(tmp_path: Path) -> None:
    config = tmp_path / "config.yaml"
    assert read_names(config) == {}
    config.write_text("critic: {name: 'reward:/home/me/rm'}\ndata: {train: /home/me/prompts.jsonl}\n")
    assert read_names(config) == {"critic": "reward:rm", "prompts": "prompts.jsonl"}
    config.write_text("critic: {name: 'my.module:Calm'}\ndata: {train: summaries}\n")
    assert read_names(config) == {"critic": "my.module:Calm", "prompts": "summaries"}
