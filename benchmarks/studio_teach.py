"""Teaching in the studio: do ten comments make the faults they are about rarer elsewhere, and leave the rest alone?

The default model answers quickstart training texts greedily. Ten answers get a comment with corrections, written by
rule from what the grounding critic finds (`studio_comments.py`): words without content go, inventions are blamed and
replaced where the text has exactly one candidate. One lesson of the studio teaches them. Reported are the faults of
each kind per answer to the held-out texts before and after, with a paired 95% interval of the decrease, and how far the
model moved on prompts of other kinds: KL divergence in nats per token of its own earlier answer. Answers also become
shorter, so that faults per 100 words and the critic's whole score, which asks for content too, are reported as well.

The settings of the lesson (`studio/teaching.py`) were chosen on the second half of the training texts, with
`--selection`, which reports nothing.
"""

from __future__ import annotations

import argparse
import sys
from statistics import fmean

import torch
from harness import Bar, report, show
from studio_comments import CRITIC, KINDS, comment, count_faults
from studio_prompts import UNRELATED

from text2grad.data import summaries
from text2grad.evaluation.metrics import critic_score
from text2grad.evaluation.significance import paired_bootstrap
from text2grad.models.loading import DEFAULT_MODEL
from text2grad.schema import Example, Feedback
from text2grad.studio.teaching import SETTINGS, Teacher

NUM_COMMENTS = 10
RESAMPLES = 10_000
BATCH = 12
BARS = {
    "comments": Bar(at_least=NUM_COMMENTS),
    "seconds": Bar(at_most=60),
    "fewer_faults_low": Bar(at_least=1e-9),
    "fewer_filler_low": Bar(at_least=1e-9),
    "fewer_invention_low": Bar(at_least=1e-9),
    "nats_per_token": Bar(at_most=0.02),
}


def main() -> None:
    args = parse_arguments()
    train, heldout = list(summaries.load("train")), list(summaries.load("heldout"))
    half = len(train) // 2
    judged = train[half:] if args.selection else heldout
    if args.quick or args.selection:
        judged = judged[: 4 if args.quick else 24]
    settings = SETTINGS.model_copy(update={key: float(value) for key, value in args.settings})
    settings = settings.model_copy(update={"num_iterations": int(settings.num_iterations)})
    teacher = Teacher(DEFAULT_MODEL, device=args.device, settings=settings)
    lessons = write_comments(teacher, train[: 8 if args.quick else half])
    unrelated = UNRELATED[:4] if args.quick else UNRELATED
    before, other = answer(teacher, judged), answers_to(teacher, unrelated)
    distributions = [predictions(teacher, *pair) for pair in zip(unrelated, other, strict=True)]
    lesson = teacher.teach(lessons, unrelated[:2])
    teacher.keep(lesson.id)
    after = answer(teacher, judged)
    moved = [
        mean_kl(old, predictions(teacher, *pair)) for old, *pair in zip(distributions, unrelated, other, strict=True)
    ]
    figures = {"comments": len(lessons), "corrections": sum(len(a.corrections) for a in lesson.answers)}
    figures |= {"seconds": lesson.seconds, "texts": len(judged)} | compare(before, after)
    figures |= {"unrelated": len(moved), "nats_per_token": fmean(moved), "nats_per_token_max": max(moved)}
    if args.selection:
        print({key: round(value, 4) for key, value in figures.items()}, file=sys.stderr)
        for old, new in list(zip(before, after, strict=True))[:6]:
            print(f"- {old.completion}\n+ {new.completion}\n", file=sys.stderr)
        return
    report("studio_teach", figures, {} if args.quick else BARS, args)


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cpu", help="cpu or cuda (default: cpu)")
    parser.add_argument("--quick", action="store_true", help="use a small part of the data and save no result")
    parser.add_argument("--selection", action="store_true", help="judge on the selection split and save no result")
    parser.add_argument("--settings", nargs=2, action="append", default=[], metavar=("NAME", "VALUE"))
    return parser.parse_args()


def answers_to(teacher: Teacher, prompts: list[str]) -> list[str]:
    """Return greedy answers, in batches."""
    batches = [prompts[i : i + BATCH] for i in range(0, len(prompts), BATCH)]
    return [text for batch in batches for text in teacher.generate_all(batch)]


def answer(teacher: Teacher, examples: list[Example]) -> list[Example]:
    """Return the examples with greedy answers."""
    texts = answers_to(teacher, [example.prompt_text for example in examples])
    return [e.model_copy(update={"completion": text}) for e, text in zip(examples, texts, strict=True)]


def write_comments(teacher: Teacher, examples: list[Example]) -> list[tuple[Example, Feedback]]:
    """Return the first NUM_COMMENTS finished answers whose comment has a correction, with their comments."""
    found: list[tuple[Example, Feedback]] = []
    for start in range(0, len(examples), BATCH):
        for example in answer(teacher, examples[start : start + BATCH]):
            feedback = comment(example)
            finished = example.completion.endswith(".")
            if finished and any(span.replacement is not None for span in feedback.spans):
                found.append((example, feedback))
        if len(found) >= NUM_COMMENTS:
            break
    return found[:NUM_COMMENTS]


def compare(before: list[Example], after: list[Example]) -> dict[str, float]:
    """Return faults per answer before and after, by kind and in all, with intervals of the decrease."""
    counts = [[count_faults(example) for example in examples] for examples in (before, after)]
    figures: dict[str, float] = {}
    rows = []
    for name in (*KINDS, "faults"):
        old, new = ([sum(c.values()) if name == "faults" else c[name] for c in side] for side in counts)
        change = paired_bootstrap(new, old, RESAMPLES, seed=0)  # old - new: how many fewer
        figures |= {f"{name}_before": fmean(old), f"{name}_after": fmean(new)}
        figures |= {f"fewer_{name}": change.difference, f"fewer_{name}_low": change.low}
        figures |= {f"fewer_{name}_high": change.high}
        rows.append([name, f"{fmean(old):.2f}", f"{fmean(new):.2f}", f"[{change.low:.2f}, {change.high:.2f}]"])
    show("Faults per answer", ["kind", "before", "after", "fewer, 95%"], rows)
    for name, examples, found in zip(("before", "after"), (before, after), counts, strict=True):
        words = sum(len(example.completion.split()) for example in examples)
        figures[f"words_{name}"] = words / len(examples)
        figures[f"faults_per_100_words_{name}"] = 100 * sum(c.total() for c in found) / words
        figures[f"empty_{name}"] = fmean(not example.completion.strip() for example in examples)
    scores = [[critic_score(feedback) for feedback in CRITIC.critique(examples)] for examples in (before, after)]
    change = paired_bootstrap(*scores, RESAMPLES, seed=0)
    figures |= {"score_before": fmean(scores[0]), "score_after": fmean(scores[1])}
    return figures | {"score_change_low": change.low, "score_change_high": change.high}


@torch.no_grad()
def predictions(teacher: Teacher, prompt: str, text: str) -> torch.Tensor:
    """Return log-probabilities of the whole vocabulary at each token of an answer: (tokens, vocabulary)."""
    message = [{"role": "user", "content": prompt}]
    ids = teacher.tokenizer.apply_chat_template(message, add_generation_prompt=True, return_dict=False)
    tokens = [*ids, *teacher.tokenizer.encode(text, add_special_tokens=False)]
    model = teacher.policy.model
    logits = model(input_ids=torch.tensor([tokens], device=model.device), use_cache=False).logits
    return torch.log_softmax(logits[0, len(ids) - 1 :].float(), dim=-1)


def mean_kl(before: torch.Tensor, after: torch.Tensor) -> float:
    """KL(before || after), mean over tokens."""
    return float((before.exp() * (before - after)).sum(-1).mean())


if __name__ == "__main__":
    main()
