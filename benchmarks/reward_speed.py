"""Answers a second: a score spelled out for every word, as published, against our written judgement and our head.

One run, one model, the same answers of about 100 words (HaluQuestQA, 80 to 120 words).
(a) As published: a critique, then a score for every word, spelled out as JSON, unconstrained. The critique is the one
    that (b) wrote, and the decoder produces as many tokens as critique and scores have; how well a model would do that
    does not matter for the time.
(b) Our written judgement, compilation of the grammars included.
(c) Our head, one forward pass.
All three with the same decoding loop and batch, in the same order; questions are encoded within (b) and (c) only. The
overhead of the grammar is the time of (b) against a decoder that is told the tokens of (b) one after the other, without
any grammar; the two take turns, and medians are compared. (a) runs once, after the same loop has run before.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from statistics import median
from typing import Any

import torch
from harness import Bar, data_folder, options, report, show
from reward_data import others
from reward_model import folder
from reward_runs import KEPT
from torch import Tensor

from text2grad.lm.batching import sent
from text2grad.lm.sampling import sample
from text2grad.reward.judgement import read
from text2grad.reward.model import SpanRewardModel
from text2grad.schema import Example

ANSWERS, BATCH, TURNS = 256, 64, 5


class Told:
    """A guide that knows every completion in advance."""

    def __init__(self, completions: Sequence[Sequence[int]]) -> None:
        self._completions = completions
        self._at = [0] * len(completions)

    def allowed(self, completions: Sequence[int], width: int, device: torch.device) -> Tensor:
        wanted = sent(torch.tensor([self._completions[i][self._at[i]] for i in completions]), device)
        return torch.zeros(len(completions), width, dtype=torch.bool, device=device).scatter_(
            1, wanted.unsqueeze(1), True
        )

    def advance(self, completions: Sequence[int], tokens: Sequence[int]) -> None:
        for i in completions:
            self._at[i] += 1


def main() -> None:
    args = options(__doc__ or "")
    count = 4 if args.quick else ANSWERS
    model = SpanRewardModel.from_pretrained(folder() / KEPT)
    seen, unseen = others(data_folder())["haluquestqa"]
    examples = [e for e in [*unseen, *seen] if 80 <= len(e.completion.split()) <= 120][:count]
    examples.sort(key=lambda example: len(model.question_ids(example)))
    written = model.write(examples, batch_size=BATCH)
    told = [ids_of(model, text) for text in written]
    published = [ids_of(model, spelled_out(text, e)) for text, e in zip(written, examples, strict=True)]
    questions = [model.question_ids(example) for example in examples]

    def decode(completions: list[list[int]]) -> None:
        for start in range(0, len(questions), BATCH):
            batch = slice(start, start + BATCH)
            longest = max(map(len, completions[batch]))
            sample(
                model.scorer.model,
                questions[batch],
                torch.zeros(len(questions[batch]), longest),
                temperature=0.0,
                end_ids=[int(model.tokenizer.eos_token_id)],
                pad_id=int(model.tokenizer.pad_token_id),
                guide=Told(completions[batch]),
            )

    turns = [
        (timed(lambda: model.write(examples, batch_size=BATCH)), timed(lambda: decode(told))) for _ in range(TURNS)
    ]
    guided, unguided = (median(times) for times in zip(*turns, strict=True))
    seconds = {
        "a": timed(lambda: decode(published)),
        "b": guided,
        "b without grammar": unguided,
        "c": median(timed(lambda: model.score(examples)) for _ in range(TURNS)),
    }
    figures: dict[str, Any] = {
        "answers": len(examples),
        "words": sum(len(e.completion.split()) for e in examples) / len(examples),
        "published_tokens": sum(map(len, published)) / len(published),
        "written_tokens": sum(map(len, told)) / len(told),
        **{f"answers_a_second_{name}": len(examples) / value for name, value in seconds.items()},
        "written_speedup": seconds["a"] / seconds["b"],
        "head_speedup": seconds["a"] / seconds["c"],
        "grammar_overhead": seconds["b"] / seconds["b without grammar"] - 1,
    }
    names = {"a": "a score for every word", "b": "our judgement", "b without grammar": "the same tokens, no grammar",
             "c": "our head"}  # fmt: skip
    rows = [[names[k], f"{len(examples) / v:.1f}", f"{seconds['a'] / v:.1f}"] for k, v in seconds.items()]
    show("Answers a second", ["", "answers/s", "times (a)"], rows)
    bars = {
        "written_speedup": Bar(at_least=5),
        "head_speedup": Bar(at_least=50),
        "grammar_overhead": Bar(at_most=0.10),
    }
    report("reward_speed", figures, bars, args)


def spelled_out(judgement: Any, example: Example) -> str:
    """The published form: the critique, then every word with its score."""
    critique = read(judgement, example.completion).critique
    scores = [{"word": word, "score": 0} for word in example.completion.split()]
    return json.dumps({"critique": critique, "scores": scores}, ensure_ascii=False)


def ids_of(model: SpanRewardModel, text: Any) -> list[int]:
    encoded: Any = model.tokenizer(text, add_special_tokens=False)
    return [*encoded["input_ids"], int(model.tokenizer.eos_token_id)]


def timed(work: Callable[[], object]) -> float:
    """Seconds."""
    began = time.perf_counter()
    work()
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    return time.perf_counter() - began


if __name__ == "__main__":
    main()
