"""The model card of a trained policy."""

from __future__ import annotations

from collections.abc import Sequence
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
PLACEHOLDER = "THIS FOLDER OR REPOSITORY"
# Settings that do not affect the model; some name a machine.
OMITTED_SETTINGS = {
    "output_dir",
    "report_to",
    "logging_steps",
    "log_completions_steps",
    "num_logged_completions",
    "save_steps",
    "max_tokens_per_batch",
    "gradient_checkpointing",
    "vllm_server_base_url",
    "vllm_server_timeout",
    "vllm_weight_transfer",
    "vllm_gpu_memory_utilization",
}


def model_card(
    base: str,
    trained: str,
    is_adapter: bool,
    step: int,
    settings: dict[str, Any],
    names: dict[str, str],
    scores: Sequence[tuple[int, float]] = (),
    evaluation: dict[str, Any] | None = None,
) -> str:
    """Return the Markdown of a card, with metadata for the Hugging Face hub and the run's results.

    base: a name or a folder. trained: description of the trained weights, for instance an adapter. names: more rows of
    the first table, such as the critic's name. scores: evaluations up to `step`. evaluation: the result of `compare`.
    """
    name, published = base_model_name(base)
    metadata = {
        **({"base_model": name, "base_model_relation": "adapter" if is_adapter else "finetune"} if published else {}),
        "library_name": "peft" if is_adapter else "transformers",
        "pipeline_tag": "text-generation",
        "tags": ["text2grad"],
    }
    rows = {"base model": name, **names, "trained": trained, "steps": str(step)}
    shown = {key: value for key, value in settings.items() if key not in OMITTED_SETTINGS}
    settings_yaml = yaml.safe_dump(shown, sort_keys=False, allow_unicode=True)
    return f"""{front_matter(metadata)}
# {code(name)}, taught from written feedback

Trained with text2grad: a critic commented on completions, and each comment became a reward for the words it refers to.

```python
from transformers import AutoModelForCausalLM

model = AutoModelForCausalLM.from_pretrained("{PLACEHOLDER}")
```

{table(["", ""], [[key, code(value)] for key, value in rows.items()])}{_results(scores, evaluation)}
## Settings

{fenced(settings_yaml, "yaml")}"""


def merged_card(card: str, path: Path) -> str:
    """Return the card of an adapter adapted to the merged model; the user's own changes are kept."""
    try:
        metadata, text = split_front_matter(card)
    except yaml.YAMLError as error:
        raise UserError(
            f"{path}: the lines between the first two --- are not valid YAML; fix or remove them"
        ) from error
    if "base_model" in metadata:
        metadata["base_model_relation"] = "finetune"
    return front_matter(metadata | {"library_name": "transformers"}) + text


def describe_trained(model: PreTrainedModel | PeftModel) -> str:
    """Describe the trained weights: an adapter with its size, or all weights."""
    if not isinstance(model, PeftModel):
        return "all weights"
    adapter = model.active_peft_config
    size = f", r {adapter.r}, alpha {adapter.lora_alpha}" if isinstance(adapter, LoraConfig) else ""
    return f"a {'LoRA' if size else adapter.peft_type.value} adapter{size}"


def read_names(config: Path) -> dict[str, str]:
    """Return critic and prompts of a run's config.yaml, without their folders; empty without such a file."""
    if not config.is_file():
        return {}
    values = yaml.safe_load(config.read_text(encoding="utf-8"))
    kind, colon, target = values["critic"]["name"].partition(":")  # `reward:FOLDER`, or package.module:Class
    return {"critic": kind + colon + Path(target).name, "prompts": Path(values["data"]["train"]).name}


def _results(scores: Sequence[tuple[int, float]], evaluation: dict[str, Any] | None) -> str:
    parts = []
    if scores:
        ends = dict.fromkeys((scores[0], scores[-1]))
        change = ", ".join(f"{score:.3f} after step {step}" for step, score in ends)
        parts.append(f"## Held-out score during training\n\n{change} (evaluations: {len(scores)}).\n")
    if evaluation is not None:
        header = ["metric", "before", "after", "95% interval of the difference"]
        rows = [
            [name, f"{m['before']:.3f}", f"{m['after']:.3f}", f"[{m['low']:+.3f}, {m['high']:+.3f}]"]
            for name, m in evaluation["metrics"].items()
        ]
        parts.append(f"## Held-out completions, n = {evaluation['n']}\n\n{table(header, rows)}")
    return "".join(f"\n{part}" for part in parts)
