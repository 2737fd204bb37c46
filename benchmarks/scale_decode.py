"""Decoding against the time that reading weights and cache once per token takes, beside transformers' static cache."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from scale_models import answer_lengths, config, prompts, random_model, tokenizer
from scale_steps import kernel_times, synchronize
from torch import Tensor

from text2grad.models.batching import pad_left, round_up_to_8
from text2grad.models.packed_attention import use_packed_attention
from text2grad.rollout.fast.grouped_attention import additive_mask, grouped_attention
from text2grad.rollout.rng import Stream
from text2grad.rollout.sampling import noise, sample

BANDWIDTH = 4.8e12  # bytes per second of an H200
GENERATIONS = 8
PROFILED = 48  # tokens
UNCACHED, REPLAYS = 500_000_000, 10  # bytes of caches that are read in turn, and how often


def measure(kind: str, batch: int, length: int, prompt_length: int, device: str, quick: bool) -> dict[str, Any]:
    """Return seconds and times the bound: all rows to the full length, and with rows that end."""
    model, ids, end = _model_and_prompts(kind, batch, prompt_length, device, quick)
    use_packed_attention(model)
    sizes = [len(row) for row in ids for _ in range(GENERATIONS)]
    lengths = {"full": [length] * batch, "ending": answer_lengths(batch, length)}
    found: dict[str, Any] = {"batch": batch, "length": length}
    for name, rows in lengths.items():
        uniforms = noise(Stream.SAMPLING, 0, 0, range(batch), length)
        for row, size in enumerate(rows):
            uniforms[row, size - 1] = 1.0

        def run(max_tokens: int, uniforms: Any = uniforms) -> float:
            synchronize()
            began = time.perf_counter()
            sample(
                model, ids, uniforms[:, :max_tokens], 1.0, [end], end, num_generations=GENERATIONS, return_logprobs=True
            )
            synchronize()
            return time.perf_counter() - began

        run(min(length, 32))
        prefill = run(1)
        seconds = min(run(length) for _ in range(2)) - prefill
        bound = lower_bound(model, sizes, rows)
        found[name] = {"seconds": seconds, "prefill": prefill, "bound": bound, "times_bound": seconds / bound,
                       "tokens_per_second": (sum(rows) - batch) / seconds}  # fmt: skip
        if name == "full" and device.startswith("cuda"):
            found["kernels"] = kernel_times(partial(run, PROFILED))[1]
    return found


def _model_and_prompts(
    kind: str, batch: int, prompt_length: int, device: str, quick: bool
) -> tuple[Any, list[list[int]], int]:
    """Return a random model, the ids of one prompt per GENERATIONS rows, and the id of the end."""
    made = config(kind, quick)
    model = random_model(made, device, torch.bfloat16 if device.startswith("cuda") else torch.float32).eval()
    encode: Any = tokenizer(made.vocab_size)
    texts = prompts(batch // GENERATIONS, prompt_length)
    return model, [list(encode(e.prompt_text)["input_ids"]) for e in texts], made.vocab_size - 1


def lower_bound(model: Any, prompt_sizes: Sequence[int], lengths: Sequence[int]) -> float:
    """Return the seconds to read the weights, and the cache of the rows that are left, once per token but the first."""
    made = model.config
    inputs, outputs = model.get_input_embeddings().weight, model.get_output_embeddings().weight
    element = outputs.element_size()
    weights = element * (sum(p.numel() for p in model.parameters()) - (0 if inputs is outputs else inputs.numel()))
    per_token = 2 * made.num_hidden_layers * made.num_key_value_heads * made.head_dim * element
    total = 0.0
    for step in range(1, max(lengths)):
        cached = sum(size + step for size, length in zip(prompt_sizes, lengths, strict=True) if length > step)
        total += weights + per_token * cached
    return total / BANDWIDTH


def attention(kind: str, batch: int, tokens: int, device: str, quick: bool) -> dict[str, Any]:
    """Return the milliseconds of one layer's attention to a cache, by kernel, and of reading that cache.

    matmul: two matrix products and a softmax, as `grouped_attention` has them. sdpa: one kernel, the heads of a group
    as its queries. On a GPU as in use: captured, with more caches in turn than fit the GPU's own.
    """
    made, on_gpu = config(kind, quick), device.startswith("cuda")
    heads, groups, width = made.num_attention_heads, made.num_key_value_heads, made.head_dim
    dtype, capacity = torch.bfloat16 if on_gpu else torch.float32, round_up_to_8(tokens)
    size = 2 * batch * groups * capacity * width * dtype.itemsize
    query = torch.randn(batch, heads, 1, width, device=device, dtype=dtype)
    caches = [
        torch.randn(2, batch, groups, capacity, width, device=device, dtype=dtype)
        for _ in range(-(-UNCACHED // size) if on_gpu else 1)
    ]
    mask = additive_mask(torch.arange(capacity, device=device).expand(batch, -1) >= capacity // 10, dtype)

    def matmul(keys: Tensor, values: Tensor) -> Tensor:
        return grouped_attention(None, query, keys, values, mask)[0]

    def sdpa(keys: Tensor, values: Tensor) -> Tensor:
        grouped = query.view(batch, groups, heads // groups, width)
        return F.scaled_dot_product_attention(grouped, keys, values, mask.expand(-1, -1, heads // groups, -1))

    expected, found = (kernel(*caches[0]).reshape(batch, -1).float() for kernel in (matmul, sdpa))
    torch.testing.assert_close(found, expected, atol=0.02, rtol=0.02)
    times = {kernel.__name__: _milliseconds(kernel, caches) for kernel in (matmul, sdpa)}
    return times | {"bound": 1000 * size / BANDWIDTH}


def _milliseconds(kernel: Callable[[Tensor, Tensor], Tensor], caches: Sequence[Tensor]) -> float:
    """Return the time of one call, as the mean over all caches, replayed from a graph on a GPU."""

    def run() -> None:
        for keys, values in caches:
            kernel(keys, values)

    replay = run
    if caches[0].is_cuda:
        run()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            run()
        replay = graph.replay
    replay()
    synchronize()
    began = time.perf_counter()
    for _ in range(REPLAYS):
        replay()
    synchronize()
    return 1000 * (time.perf_counter() - began) / REPLAYS / len(caches)


def static(kind: str, batch: int, length: int, prompt_length: int, device: str, quick: bool) -> dict[str, Any]:
    """The same rows with transformers' own generate, a static cache and compilation; the second call counts."""
    model, ids, end = _model_and_prompts(kind, batch, prompt_length, device, quick)
    rows = [row for row in ids for _ in range(GENERATIONS)]
    tokens, mask = pad_left(rows, end, model.device)
    options: dict[str, Any] = {"do_sample": True, "top_k": 0, "cache_implementation": "static", "pad_token_id": end}

    def run(max_tokens: int) -> float:
        synchronize()
        began = time.perf_counter()
        model.generate(tokens, attention_mask=mask, max_new_tokens=max_tokens, min_new_tokens=max_tokens, **options)
        synchronize()
        return time.perf_counter() - began

    try:
        first = run(length)
        seconds = run(length)
    except Exception as error:  # a comparison: what it needs, for instance a compiler, may be missing
        return {"error": f"{type(error).__name__}: {error}"[:300]}
    bound = lower_bound(model, [len(row) for row in rows], [length] * batch)
    return {"seconds": seconds, "first_seconds": first, "times_bound": seconds / bound}
