"""A critic of your own, from check to trained model: `python examples/custom_critic.py [--steps 12] [--model smollm2]`.

The critic wants calm answers: it blames exclamation marks, says what should stand there instead, and gives a score, so
that silence does not pay.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from peft import LoraConfig

from text2grad import Example, Feedback, Span, Text2GradConfig, Text2GradTrainer
from text2grad.critics.check.check import check_critic

OCCASIONS = ["a new colleague", "a birthday", "a first prize", "an opening", "a wedding", "a good harvest"]
HELD_OUT = ["a new house", "a passed exam"]


class CalmCritic:
    """Blames exclamation marks. The score is 1 for a calm answer, less for each mark, and -1 for no answer at all."""

    def critique(self, examples: Sequence[Example]) -> list[Feedback]:
        """Return one Feedback per example."""
        return [self.comment(example.completion) for example in examples]

    def comment(self, answer: str) -> Feedback:
        """Return the feedback on one answer."""
        marks = [place for place, character in enumerate(answer) if character == "!"]
        words = len(answer.split())
        spans = [Span(start=at, end=at + 1, label="poor", reason="It shouts.", replacement=".") for at in marks]
        score = -1.0 if words < 3 else max(-0.9, 1 - len(marks))
        critique = "It says nothing." if words < 3 else "It shouts." if marks else "It is calm."
        return Feedback(critic="calm", critique=critique, spans=spans, score=score)


def prompts(occasions: Sequence[str]) -> list[Example]:
    """Return a prompt per occasion."""
    return [Example(id=one, prompt=f"Write one sentence of congratulation for {one}!") for one in occasions]


def main() -> None:
    """Check the critic, train with it, and compare held-out answers."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", default="smollm2", help="a Hugging Face name or a folder")
    parser.add_argument("--steps", type=int, default=12)
    parser.add_argument("--output", default="runs/calm")
    arguments = parser.parse_args()

    honest = [
        example.model_copy(update={"completion": "We are all very glad and wish you the best."})
        for example in prompts(HELD_OUT)
    ]
    for kind in check_critic(CalmCritic(), honest).kinds:
        if kind.mean is not None and kind.mean > kind.limit:
            print(f"the critic would pay more for {kind.kind.name} ({kind.mean:+.2f}) than for honest answers")

    trainer = Text2GradTrainer(
        model=arguments.model,
        critic=CalmCritic(),
        args=Text2GradConfig(
            output_dir=arguments.output, max_steps=arguments.steps, max_completion_length=24, learning_rate=3e-4
        ),
        train_dataset=prompts(OCCASIONS),
        peft_config=LoraConfig(r=16, lora_alpha=32, target_modules="all-linear"),
    )
    before = trainer.generate_with_feedback(prompts(HELD_OUT))
    trainer.train()
    trainer.save_model()
    for side, answers in (("before", before), ("after", trainer.generate_with_feedback(prompts(HELD_OUT)))):
        for answer in answers:
            print(f"{side}: {answer.completion!r}: {answer.feedback.critique}")


if __name__ == "__main__":
    main()
