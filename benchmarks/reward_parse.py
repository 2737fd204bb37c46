"""Share of generated critiques that parse: at least 10 000, from an untrained, a half-trained and a trained model.

At temperatures 0 and 1, on completions of three data sets and on adversarial ones: quotation marks, line breaks,
backslashes, emoji, joined emoji, other scripts, control characters, keywords of the critique format, code. A truncated
critique counts as a failure. The half-trained and the trained model are those that reward_model.py saved.
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from itertools import chain, cycle, islice
from typing import Any

import torch
from harness import Bar, data_folder, options, report, show
from reward_data import others
from reward_model import folder
from reward_runs import KEPT, base_model

from text2grad.models.loading import load_model, load_tokenizer
from text2grad.reward_model.critique_format import CritiqueFormatError, parse_critique
from text2grad.reward_model.model import SpanRewardModel
from text2grad.reward_model.network import SpanRewardNetwork
from text2grad.reward_model.settings import RewardModelSettings
from text2grad.schema import Example

EACH = 1_700  # critiques per model and temperature
BATCH = 512
PIECES = [
    'He said "no".', "\\", "\\n", "C:\\new\\table", "\n", "\n\n\t", "😀", "👩‍👩‍👧‍👦", "日本語です。", "e\u0301",
    "\u2028", "\x07",
    'Poor: "x"#2', "Good: none", "none", "#1", '";"', "the man", "the man", "def f(x):\n    return x['a'] + \"b\"\n",
    "print('''x''')", "{'k': [1, 2]}", "x" * 90, "مرحبا", "\u200b", "%", "1,000", "<|im_end|>",
]  # fmt: skip


def main() -> None:
    args = options(__doc__ or "")
    each = 12 if args.quick else EACH
    figures: dict[str, Any] = {"critiques": 0, "unreadable": 0}
    rows = []
    for name, model in models():
        for temperature in (0.0, 1.0):
            examples = answers(each)
            began = time.monotonic()
            written = model.generate_critiques(examples, temperature, seed=1, batch_size=BATCH)
            seconds = time.monotonic() - began
            bad = [text for text, example in zip(written, examples, strict=True) if not parses(text, example)]
            parsed = [(t, e) for t, e in zip(written, examples, strict=True) if isinstance(t, str) and t not in bad]
            quotations = sum(len(list(parse_critique(t, e.completion).spans())) for t, e in parsed)
            figures["critiques"] += len(written)
            figures["unreadable"] += len(bad)
            figures[f"{name}, temperature {temperature:g}"] = {
                "critiques": len(written), "unreadable": len(bad), "quotes": quotations, "seconds": seconds,
            }  # fmt: skip
            rows.append([name, f"{temperature:g}", str(len(written)), str(quotations), str(len(bad)), f"{seconds:.0f}"])
            for text in bad[:3]:
                print("unreadable:", repr(text))
    show("Critiques", ["model", "temperature", "generated", "quotes", "unreadable", "s"], rows)
    figures["parse_rate"] = 1 - figures["unreadable"] / figures["critiques"]
    bars = {"parse_rate": Bar(at_least=1.0), "critiques": Bar(at_least=10_000)}
    report("reward_parse", figures, bars, args)


def models() -> Iterator[tuple[str, SpanRewardModel]]:
    tokenizer, device = load_tokenizer(base_model()), "cuda" if torch.cuda.is_available() else "cpu"
    dtype = torch.bfloat16 if device == "cuda" else torch.float32
    network = SpanRewardNetwork(load_model(base_model(), dtype)).to(device).eval()
    yield "untrained", SpanRewardModel(network, tokenizer, RewardModelSettings(base=base_model()))
    yield "half-trained", SpanRewardModel.from_pretrained(folder() / f"{KEPT}-half")
    yield "trained", SpanRewardModel.from_pretrained(folder() / KEPT)


def answers(count: int) -> list[Example]:
    """One third completions of questions and summaries, one third code, one third adversarial."""
    data = data_folder()
    sets = others(data)
    prose = cycle(_short([*sets["haluquestqa"][1], *sets["fgrlhf"][1]]))
    code = cycle(_short(sets["debugbench"][1]))
    return list(islice(chain.from_iterable(zip(prose, code, _adversarial(), strict=False)), count))


def _short(examples: list[Example]) -> list[Example]:
    """Examples short enough for large batches."""
    return [e for e in examples if len(e.completion) < 1_000 and len(e.prompt_text) < 1_500]


def _adversarial() -> Iterator[Example]:
    draw = random.Random(0)
    number = 0
    while True:
        words = draw.choices(PIECES, k=draw.randint(1, 12))
        number += 1
        yield Example(
            id=f"adversarial-{number}", prompt="Say something.", completion=draw.choice(["", " "]).join(words)
        )


def parses(text: Any, example: Example) -> bool:
    if not isinstance(text, str):
        return False
    try:
        judgement = parse_critique(text, example.completion)
    except CritiqueFormatError:
        return False
    return all(0 <= start < end <= len(example.completion) for _, (start, end) in judgement.spans())


if __name__ == "__main__":
    main()
