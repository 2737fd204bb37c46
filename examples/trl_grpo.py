"""Written feedback in TRL's GRPO trainer: a critic names words, and those words get the gradient.

    pip install "text2grad[trl]"
    python examples/trl_grpo.py --max_steps 2              # SmolLM2-135M, half a minute on two idle cores
    python examples/trl_grpo.py --model Qwen/Qwen3-0.6B --max_steps 200 --num_generations 8

The critic below blames exclamation marks and superlatives. Any object with `critique(examples) -> list[Feedback]` will
do: `text2grad.critics` has critics for summaries, answers and code, for people's comments, and for LLMs as judges.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Sequence

import torch
from datasets import Dataset
from peft import LoraConfig

from text2grad import Example, Feedback, Span
from text2grad.integrations.trl import SpanGRPOConfig, SpanGRPOTrainer
from text2grad.models.loading import load_tokenizer, resolve

LOUD = re.compile(
    r"!+|\b(?:amazing|awesome|best|breathtaking|delicious|exciting|greatest|incredible|most|perfect|really|ultimate|very)\b",
    re.IGNORECASE,
)
THINGS = ("kettle", "bicycle", "library", "raincoat", "bakery", "night train", "lamp", "garden", "ferry", "novel")
PROMPTS = [f"Write an enthusiastic {text} for a {thing}!" for text in ("advertisement", "slogan") for thing in THINGS]


class Calm:
    """Blames what shouts, word by word, and scores the whole."""

    def critique(self, examples: Sequence[Example]) -> list[Feedback]:
        """Return one Feedback per example."""
        return [self.comment(example.completion) for example in examples]

    def comment(self, completion: str) -> Feedback:
        """Name every loud word. The score says how much the completion earns; the spans say where it is lost."""
        loud = list(LOUD.finditer(completion))
        spans = [Span(start=m.start(), end=m.end(), label="poor", reason="It shouts.") for m in loud]
        words = ", ".join(f'"{match.group()}"' for match in loud)
        score = max(1 - len(loud) / 2, -1.0) if completion.strip() else -1.0
        return Feedback(critic="calm", critique=f"It shouts: {words}." if loud else "", spans=spans, score=score)


def main() -> None:
    """Train a LoRA adapter."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="smollm2", help="a name on the hub, or a folder")
    parser.add_argument("--output_dir", default="runs/trl")
    parser.add_argument("--max_steps", type=int, default=5)
    parser.add_argument("--num_generations", type=int, default=4)
    parser.add_argument("--max_completion_length", type=int, default=32)
    options = parser.parse_args()
    trainer = SpanGRPOTrainer(
        model=resolve(options.model),
        critic=Calm(),
        args=SpanGRPOConfig(
            output_dir=options.output_dir,
            max_steps=options.max_steps,
            per_device_train_batch_size=2 * options.num_generations,
            num_generations=options.num_generations,
            max_completion_length=options.max_completion_length,
            learning_rate=1e-4,
            bf16=torch.cuda.is_available(),
            use_cpu=not torch.cuda.is_available(),
            logging_steps=1,
            report_to="none",
        ),
        train_dataset=Dataset.from_list([{"prompt": [{"role": "user", "content": text}]} for text in PROMPTS]),
        processing_class=load_tokenizer(options.model),
        peft_config=LoraConfig(r=16, lora_alpha=32, target_modules="all-linear"),
    )
    trainer.train()
    trainer.save_model()
    for step in trainer.state.log_history:
        if "reward" in step:
            print(f"step {step['step']}: reward {step['reward']:+.2f}, blamed words {step['critic/poor_spans']:.2f}")


if __name__ == "__main__":
    main()
