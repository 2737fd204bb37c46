"""Completions per second: a score generated for every word, as published, against our critique format and our head.

One run, one model, the same completions of about 100 words (HaluQuestQA, 80 to 120 words).
(a) As published: a critique, then a score for every word, as JSON, unconstrained. The critique is that of (b), and the
    decoder produces as many tokens as critique and scores have; the quality of the scores does not affect the time.
(b) Our generated critique, compilation of the grammars included.
(c) Our head, one forward pass.
All three encode the inputs and decode in the same loop and batches. (a) and the control below do not sample tokens but
are given them, in the unconstrained loop, which synchronises with the GPU only every few tokens.
The overhead of the grammar is the time of (b) against that loop with the very tokens that (b) sampled: compilation,
masks, and the transfer of every token to the host before the next. The two alternate, and medians are compared. (a)
runs once, after the same loop has run before.
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

from text2grad.reward_model.critique_format import parse_critique
from text2grad.reward_model.grammar import max_critique_tokens
from text2grad.reward_model.inputs import InputBuilder, ModelInput
from text2grad.reward_model.model import SpanRewardModel
from text2grad.rollout import sampling
from text2grad.schema import Example

ANSWERS, BATCH, TURNS = 256, 64, 9


def given(logits: Tensor, uniforms: Tensor, temperature: float) -> Tensor:
    """Replace `sampling.sample_tokens`: uniforms are the tokens to take; the argmax is computed all the same."""
    return torch.where(uniforms >= 0, uniforms.long(), logits.argmax(-1))


@patch.object(sampling, "sample_tokens", given)
def decode(model: SpanRewardModel, examples: Sequence[Example], completions: Sequence[Sequence[int]]) -> None:
    """Decode these completions of the model inputs, whatever the logits."""
    end, pad = int(model.tokenizer.eos_token_id), int(model.tokenizer.pad_token_id)
    questions = InputBuilder(model.tokenizer, model.settings.inputs).build_batch(examples)
    rooms = [max_critique_tokens(example.completion, model.settings.critique_format.limits) for example in examples]
    for start in range(0, len(examples), BATCH):
        batch = slice(start, start + BATCH)
        longest = max(*rooms[batch], *map(len, completions[batch]))
        tokens = torch.tensor([[*ids, *[end] * (longest - len(ids))] for ids in completions[batch]], dtype=torch.double)
        prompts = [question.ids for question in questions[batch] if isinstance(question, ModelInput)]
        sampling.sample(model.network.model, prompts, tokens, temperature=0.0, end_ids=[end], pad_id=pad)


def main() -> None:
    args = options(__doc__ or "")
    count = 4 if args.quick else ANSWERS
    model = SpanRewardModel.from_pretrained(folder() / KEPT)
    seen, unseen = others(data_folder())["haluquestqa"]
    examples = [e for e in [*unseen, *seen] if 80 <= len(e.completion.split()) <= 120][:count]
    reader: Any = InputBuilder(model.tokenizer, model.settings.inputs)
    examples.sort(key=lambda example: len(reader.build_batch([example])[0].ids))  # as the model does it
    drawn: Any = model.generate_critique_ids(examples, batch_size=BATCH)
    written = model.generate_critiques(examples, batch_size=BATCH)
    published = [ids_of(model, spelled_out(text, e)) for text, e in zip(written, examples, strict=True)]
    turns = [
        (
            timed(lambda: model.generate_critiques(examples, batch_size=BATCH)),
            timed(lambda: decode(model, examples, drawn)),
        )
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
        "completions": len(examples),
        "words": sum(len(e.completion.split()) for e in examples) / len(examples),
        "published_tokens": sum(map(len, published)) / len(published),
        "critique_tokens": sum(map(len, drawn)) / len(drawn),
        **{f"completions_per_second_{name}": len(examples) / value for name, value in seconds.items()},
        "seconds_b": [min(guided), max(guided)],
        "seconds_b without grammar": [min(unguided), max(unguided)],
        "critique_speedup": seconds["a"] / seconds["b"],
        "head_speedup": seconds["a"] / seconds["c"],
        "grammar_overhead": seconds["b"] / seconds["b without grammar"] - 1,
    }
    names = {"a": "a score for every word", "b": "our critique", "b without grammar": "the same tokens, no grammar",
             "c": "our head"}  # fmt: skip
    rows = [[names[k], f"{len(examples) / v:.1f}", f"{seconds['a'] / v:.1f}"] for k, v in seconds.items()]
    show("Completions per second", ["", "completions/s", "times (a)"], rows)
    bars = {
        "critique_speedup": Bar(at_least=5),
        "head_speedup": Bar(at_least=50),
        "grammar_overhead": Bar(at_most=0.10),
    }
    report("reward_speed", figures, bars, args)


def spelled_out(judgement: Any, example: Example) -> str:
    """The published form: the critique, then every word with its score."""
    critique = parse_critique(judgement, example.completion).critique
    scores = [{"word": word, "score": 0} for word in example.completion.split()]
    return json.dumps({"critique": critique, "scores": scores}, ensure_ascii=False)


def ids_of(model: SpanRewardModel, text: Any) -> list[int]:
    encoded: Any = model.tokenizer(text, add_special_tokens=False)
    return [*encoded["input_ids"], int(model.tokenizer.eos_token_id)]


def timed(work: Callable[[], object]) -> float:
    """Return the seconds that this takes."""
    began = time.perf_counter()
    work()
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    return time.perf_counter() - began


if __name__ == "__main__":
    main()
