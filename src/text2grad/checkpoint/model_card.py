"""The model card of a trained policy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml
from peft import LoraConfig, PeftModel

from text2grad.checkpoint.markdown import code, fenced, front_matter, split_front_matter, table
from text2grad.errors import UserError
from text2grad.models.loading import base_model_name

if TYPE_CHECKING:
    from transformers import PreTrainedModel

CARD = "README.md"
# How a run was carried out, which its model does not show.
UNTOLD_SETTINGS = {
    "output_dir",
    "report_to",
    "logging_steps",
    "log_completions_steps",
    "num_logged_completions",
    "save_steps",
    "max_tokens_per_batch",
    "gradient_checkpointing",
}


@dataclass(frozen=True)
class CardFacts:
    """What a card tells.

    base: a name or a folder. trained: what of it was trained, for instance an adapter. names: more rows of the first
    table, such as the critic's name. scores: of the evaluations up to `step`. evaluation: what `compare` found.
    """

    base: str
    trained: str
    is_adapter: bool
    step: int
    settings: dict[str, Any]
    names: dict[str, str] = field(default_factory=dict)
    scores: Sequence[tuple[int, float]] = ()
    evaluation: dict[str, Any] | None = None


def model_card(facts: CardFacts) -> str:
    """Markdown with the metadata that the Hugging Face hub reads, and the run's figures."""
    name, published = base_model_name(facts.base)
    metadata = {
        **({"base_model": name, "base_model_relation": _relation(facts.is_adapter)} if published else {}),
        "library_name": _library(facts.is_adapter),
        "pipeline_tag": "text-generation",
        "tags": ["text2grad"],
    }
    told = {"base model": name, **facts.names, "trained": facts.trained, "steps": str(facts.step)}
    settings = {key: value for key, value in facts.settings.items() if key not in UNTOLD_SETTINGS}
    listed = yaml.safe_dump(settings, sort_keys=False, allow_unicode=True)
    return f"""{front_matter(metadata)}
# {code(name)}, taught from written feedback

Trained with text2grad: a critic commented on answers, and each comment became a reward of the words that it is about.

```python
from transformers import AutoModelForCausalLM

model = AutoModelForCausalLM.from_pretrained("THIS FOLDER OR REPOSITORY")
```

{table(["", ""], [[key, code(value)] for key, value in told.items()])}{_figures(facts)}
## Settings

{fenced(listed, "yaml")}"""


def merged_card(card: str, place: Path) -> str:
    """The card of an adapter, for the plain model that it was merged into; the user's own changes stay."""
    try:
        metadata, text = split_front_matter(card)
    except yaml.YAMLError as error:
        raise UserError(
            f"{place}: the lines between the first two --- are not valid YAML; mend or remove it"
        ) from error
    if "base_model" in metadata:
        metadata["base_model_relation"] = _relation(is_adapter=False)
    return front_matter(metadata | {"library_name": _library(is_adapter=False)}) + text


def what_is_trained(model: PreTrainedModel | PeftModel) -> str:
    """In words: an adapter with its size, or all weights."""
    if not isinstance(model, PeftModel):
        return "all weights"
    adapter = model.active_peft_config
    size = f", r {adapter.r}, alpha {adapter.lora_alpha}" if isinstance(adapter, LoraConfig) else ""
    return f"a {adapter.peft_type.value} adapter{size}"


def names_in(config: Path) -> dict[str, str]:
    """Critic and prompts as the run's config.yaml calls them, folders left out; nothing where there is no such file."""
    if not config.is_file():
        return {}
    values = yaml.safe_load(config.read_text(encoding="utf-8"))
    kind, colon, what = values["critic"]["name"].partition(":")  # `reward:FOLDER`, or package.module:Class
    return {"critic": kind + colon + Path(what).name, "prompts": Path(values["data"]["train"]).name}


def _figures(facts: CardFacts) -> str:
    parts = []
    if facts.scores:
        ends = dict.fromkeys((facts.scores[0], facts.scores[-1]))
        change = ", ".join(f"{score:.3f} after step {step}" for step, score in ends)
        parts.append(f"## Held-out score while it was trained\n\n{change} (evaluations: {len(facts.scores)}).\n")
    if facts.evaluation is not None:
        header = ["figure", "before", "after", "95% interval of the difference"]
        rows = [[name, *_change(figure)] for name, figure in facts.evaluation["metrics"].items()]
        parts.append(f"## Held-out answers, n = {facts.evaluation['n']}\n\n{table(header, rows)}")
    return "".join(f"\n{part}" for part in parts)


def _change(figure: dict[str, float]) -> list[str]:
    interval = f"[{figure['low']:+.3f}, {figure['high']:+.3f}]"
    return [f"{figure['before']:.3f}", f"{figure['after']:.3f}", interval]


def _library(is_adapter: bool) -> str:
    return "peft" if is_adapter else "transformers"


def _relation(is_adapter: bool) -> str:
    return "adapter" if is_adapter else "finetune"
