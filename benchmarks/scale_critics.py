"""Seconds that critics take for the answers of one large step, and reward serving against the offline rate."""

from __future__ import annotations

import asyncio
import os
import random
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import torch
from reward_serve import load, run_server
from scale_models import answer_lengths, config, random_model, texts, tokenizer
from scale_steps import synchronize

from text2grad.align.comment_aligner import CommentAligner
from text2grad.critics.base import Critic, collect_feedback
from text2grad.critics.code import CodeCritic
from text2grad.critics.rules.grounding import GroundingCritic
from text2grad.critics.rules.qa import QACritic
from text2grad.errors import UserError
from text2grad.reward_model.feedback import FeedbackSettings
from text2grad.reward_model.inputs import InputSettings
from text2grad.reward_model.model import SpanRewardModel
from text2grad.reward_model.network import SpanRewardNetwork
from text2grad.reward_model.settings import RewardModelSettings
from text2grad.schema import Example, Feedback

ENDLESS = 0.02  # share of programs that never end
WORDS_PER_TOKEN = 0.75
PROMPT_WORDS, LONGEST_TOKENS = 225, 512


def rule_critics(answers: int) -> dict[str, Any]:
    """Seconds of the rule critics and the aligner, median of three, after a call that starts workers."""
    examples = prose(answers)
    critics: dict[str, Critic] = {"grounding": GroundingCritic(), "qa": QACritic(), "aligner": CommentAligner()}
    cores = len(os.sched_getaffinity(0))
    return {"answers": answers, "cores": cores} | {name: timed(critic, examples, 3) for name, critic in critics.items()}


def code_critic(answers: int) -> dict[str, Any]:
    """Seconds of the code critic on all cores, where some programs never end."""
    examples = programs(answers)
    critic, sandboxed = CodeCritic(), True
    try:
        critic.critique(examples[:1])
    except UserError as error:
        print(f"no sandbox here ({error}); programs run without one")
        critic, sandboxed = CodeCritic(unsafe=True), False
    cores = len(os.sched_getaffinity(0))
    return {"answers": answers, "cores": cores, "sandboxed": sandboxed, "code": timed(critic, examples, 1)}


def timed(critic: Critic, examples: Sequence[Example], runs: int) -> dict[str, float]:
    """Return seconds, and how many critiques failed and had spans."""
    feedback = collect_feedback(critic, examples)  # libraries, caches, worker processes
    seconds = []
    for _ in range(runs):
        began = time.perf_counter()
        feedback = collect_feedback(critic, examples)
        synchronize()
        seconds.append(time.perf_counter() - began)
    return {
        "seconds": median(seconds),
        "failed": sum(item.status == "failed" for item in feedback),
        "with_spans": sum(bool(item.spans) for item in feedback),
    }


def prose(count: int) -> list[Example]:
    """Answers of the lengths of a step, about documents of 300 tokens, each with a comment and a reference."""
    words = " ".join(texts()).split()
    draw = random.Random(2)

    def excerpt(length: int) -> str:
        start = draw.randrange(len(words) - length)
        return " ".join(words[start : start + length])

    found = []
    for i, tokens in enumerate(answer_lengths(count, LONGEST_TOKENS)):
        document = excerpt(PROMPT_WORDS)
        answer = " ".join([*document.split()[:20], excerpt(max(1, round(tokens * WORDS_PER_TOKEN)))])
        quoted, other = " ".join(answer.split()[3:7]), " ".join(answer.split()[-4:])
        comment = f'"{quoted}" is right. The part about {other} is not in the text; it should say when this happened.'
        found.append(
            Example(
                id=str(i),
                prompt=f"{document}\n\nWhat happened first?",
                completion=answer,
                reference=" ".join(document.split()[:6]),
                feedback=Feedback(critic="human", critique=comment),
                meta={"document": document, "question": "What happened first?"},
            )
        )
    return found


def programs(count: int) -> list[Example]:
    """Programs with five tests each: three in five right, some wrong, two in a hundred endless."""
    draw = random.Random(3)
    endless = set(draw.sample(range(count), max(1, round(ENDLESS * count))))
    found = []
    for i in range(count):
        name, factor = f"weighted_{i}", draw.randint(2, 9)
        wrong = draw.random() < 0.4
        loop = "while True:\n        pass" if i in endless else f"factor = {factor + wrong}"
        body = (
            f"def keep(number):\n    return number % 2 == 0\n\n\ndef {name}(numbers):\n    {loop}\n    total = 0\n"
            f"    for number in numbers:\n        if keep(number):\n            total += factor * number\n"
            f"    return total\n"
        )
        cases = [[draw.randint(0, 99) for _ in range(6)] for _ in range(5)]
        tests = "\n".join(f"assert {name}({c}) == {factor * sum(n for n in c if n % 2 == 0)}" for c in cases)
        prompt = f"Write a function `{name}` that returns {factor} times the sum of the even numbers of a list."
        found.append(Example(id=str(i), prompt=prompt, completion=f"```python\n{body}```", tests=tests))
    return found


def reward_model(folder: Path, device: str, quick: bool) -> SpanRewardModel:
    """Return a random reward model of the size of the default one, saved and loaded as a user would."""
    made = config("smollm2-135m", quick)
    network = SpanRewardNetwork(random_model(made, "cpu", torch.float32)).eval()
    torch.nn.init.normal_(network.head.weight, std=0.5)
    # The made-up tokenizer has a token per character, so that texts are cut to the tokens of a step.
    settings = RewardModelSettings(
        base="random", feedback=FeedbackSettings(rewards="spans"), inputs=InputSettings(max_length=2048)
    )
    SpanRewardModel(network, tokenizer(made.vocab_size), settings).save_pretrained(folder)
    return SpanRewardModel.from_pretrained(folder, device=device)


def short_prose(count: int) -> list[Example]:
    """As `prose`, with as many characters as a step's prompts and answers have tokens."""
    lengths = answer_lengths(count, LONGEST_TOKENS)
    return [
        e.model_copy(update={"prompt": e.prompt_text[:300], "completion": e.completion[:n], "feedback": None})
        for e, n in zip(prose(count), lengths, strict=True)
    ]


def reward_critic(answers: int, device: str, quick: bool) -> dict[str, Any]:
    """Seconds of the reward model's head on the answers of a step."""
    with tempfile.TemporaryDirectory() as folder:
        critic = reward_model(Path(folder), device, quick)
        return {"answers": answers, "reward_model": timed(critic, short_prose(answers), 3)}


def serving(clients: int, seconds: float, device: str, quick: bool) -> dict[str, Any]:
    """Clients of the server, each with one to four answers per request, against `critique` without a server."""
    pool = short_prose(32 if quick else 512)
    with tempfile.TemporaryDirectory() as folder:
        critic = reward_model(Path(folder), device, quick)
        offline = critic.critique(pool)
        rate = len(pool) / timed(critic, pool, 3)["seconds"]
        del critic
        if device.startswith("cuda"):
            torch.cuda.empty_cache()
        with run_server(folder, device) as port:
            asyncio.run(load(port, pool, offline, clients, 3.0 if not quick else 0.5))
            phase = asyncio.run(load(port, pool, offline, clients, seconds))
    return {
        "clients": clients,
        "offline_answers_per_second": rate,
        "requests_per_second": len(phase.latencies) / seconds,
        "answers_per_second": phase.examples / seconds,
        "p50_ms": float(np.percentile(phase.latencies, 50)) * 1000,
        "p95_ms": phase.milliseconds(95),
        "errors": phase.errors.total(),
        "share_of_offline": phase.examples / seconds / rate,
    }
