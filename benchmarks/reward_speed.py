"""Answers a second: a score spelled out for every word, as published, against our written judgement and our head.

One run, one model, the same answers of about 100 words (HaluQuestQA, 80 to 120 words).
(a) As published: a critique, then a score for every word, spelled out as JSON, unconstrained. The critique is the one
    that (b) wrote, and the decoder produces as many tokens as critique and scores have; how well a model would do that
    does not matter for the time.
(b) Our written judgement, compilation of the grammars included.
(c) Our head, one forward pass.
All three encode the questions and decode in the same loop and batches. (a) and the control below do not draw tokens but
are given them, in the loop of unguided answers, which waits for the GPU only every few tokens.
The overhead of the grammar is the time of (b) against that loop with the very tokens that (b) drew: compiling, masks,
and that every token has to be heard of before the next. The two take turns, and medians are compared. (a) runs once,
after the same loop has run before.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from statistics import median
from typing import Any
from unittest.mock import patch

import torch
from harness import Bar, data_folder, options, report, show
from reward_data import others
from reward_model import folder
from reward_runs import KEPT
from torch import Tensor

from text2grad.reward_model.grammar import most_tokens
from text2grad.reward_model.inputs import Question, Reader
from text2grad.reward_model.judgement import read
from text2grad.reward_model.model import SpanRewardModel
from text2grad.rollout import sampling
from text2grad.schema import Example

ANSWERS, BATCH, TURNS = 256, 64, 9


def given(logits: Tensor, uniforms: Tensor, temperature: float) -> Tensor:
    """Replaces `sampling.sample_tokens`: uniforms are the tokens to take. The most probable is computed anyway."""
    return torch.where(uniforms >= 0, uniforms.long(), logits.argmax(-1))


@patch.object(sampling, "sample_tokens", given)
def decode(model: SpanRewardModel, examples: Sequence[Example], completions: Sequence[Sequence[int]]) -> None:
    """Read the questions and write these completions, whatever the model would rather write."""
    end, pad = int(model.tokenizer.eos_token_id), int(model.tokenizer.pad_token_id)
    questions = Reader(model.tokenizer, model.layout).read_all(examples)
    rooms = [most_tokens(example.completion, model.layout.limits) for example in examples]
    for start in range(0, len(examples), BATCH):
        batch = slice(start, start + BATCH)
        longest = max(*rooms[batch], *map(len, completions[batch]))
        tokens = torch.tensor([[*ids, *[end] * (longest - len(ids))] for ids in completions[batch]], dtype=torch.double)
        prompts = [question.ids for question in questions[batch] if isinstance(question, Question)]
        sampling.sample(model.scorer.model, prompts, tokens, temperature=0.0, end_ids=[end], pad_id=pad)


def main() -> None:
    args = options(__doc__ or "")
    count = 4 if args.quick else ANSWERS
    model = SpanRewardModel.from_pretrained(folder() / KEPT)
    seen, unseen = others(data_folder())["haluquestqa"]
    examples = [e for e in [*unseen, *seen] if 80 <= len(e.completion.split()) <= 120][:count]
    reader = Reader(model.tokenizer, model.layout)
    examples.sort(key=lambda example: len(reader.read(example).ids))  # as the model does it
    drawn: Any = model.write_ids(examples, batch_size=BATCH)
    written = model.write(examples, batch_size=BATCH)
    published = [ids_of(model, spelled_out(text, e)) for text, e in zip(written, examples, strict=True)]
    turns = [
        (timed(lambda: model.write(examples, batch_size=BATCH)), timed(lambda: decode(model, examples, drawn)))
        for _ in range(TURNS)
    ]
    guided, unguided = zip(*turns, strict=True)
    seconds = {
        "a": timed(lambda: decode(model, examples, published)),
        "b": median(guided),
        "b without grammar": median(unguided),
        "c": median(timed(lambda: model.score(examples)) for _ in range(TURNS)),
    }
    figures: dict[str, Any] = {
        "answers": len(examples),
        "words": sum(len(e.completion.split()) for e in examples) / len(examples),
        "published_tokens": sum(map(len, published)) / len(published),
        "written_tokens": sum(map(len, drawn)) / len(drawn),
        **{f"answers_a_second_{name}": len(examples) / value for name, value in seconds.items()},
        "seconds_b": [min(guided), max(guided)],
        "seconds_b without grammar": [min(unguided), max(unguided)],
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
