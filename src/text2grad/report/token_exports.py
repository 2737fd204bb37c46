"""Reading of prime-rl's token exports (`enable_token_export`): ids, advantages and log-probabilities of each token.

OUTPUT_DIR/token_exports/step_3/rank_0.jsonl has one record per sequence, with a list per field: token_ids, loss_mask,
advantages, rewards (null where there are none), trainer_logprobs, inference_logprobs, entropy, mismatch_kl, ...
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any

from text2grad.align.tokens import decode, offsets
from text2grad.errors import UserError
from text2grad.files import read_json_lines
from text2grad.report.read import MAX_SAMPLES, Run, Sample, Tokens
from text2grad.report.subsample import subsample_by_step

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

_STEP = re.compile(r"step_(\d+)")
_MEANS = ("entropy", "mismatch_kl", "importance_ratio")
_LISTS = ("token_ids", "loss_mask", "advantages", "trainer_logprobs")


def has_token_exports(folder: Path) -> bool:
    """Whether a folder has token exports, or is the folder of them."""
    return bool(_files(folder))


def read_token_exports(folder: Path, tokenizer: PreTrainedTokenizerBase) -> Run:
    """Read the sequences, at most as many as a report shows, and the means of each step.

    A prompt is what comes before the first trained token. Rewards that are the same for all tokens of a sequence are
    its own; others are token rewards.
    """
    keys: list[tuple[int, str]] = []
    by_step: dict[int, list[dict[str, float]]] = {}
    for step, path in _files(folder):
        for where, record in read_json_lines(path):
            _check(record, where)
            keys.append((step, where))
            by_step.setdefault(step, []).append(_summary(record))
    chosen = {keys[i][1] for i in subsample_by_step([step for step, _ in keys], MAX_SAMPLES)}
    samples: list[Sample] = []
    counts: dict[int, int] = {}
    for step, path in _files(folder):
        for where, record in read_json_lines(path):
            number = counts.setdefault(step, 0)
            counts[step] += 1
            if where in chosen:
                samples.append(_sample(record, step, number, tokenizer))
    return Run(
        name=folder.resolve().name,
        config=None,
        model=tokenizer.name_or_path,
        metrics=[_means(step, records) for step, records in sorted(by_step.items())],
        samples=samples,
        num_samples_recorded=len(keys),
        evaluation=None,
        is_foreign=True,
    )


def _files(folder: Path) -> list[tuple[int, Path]]:
    """Return the files by step: of an output folder, or of its folder of exports."""
    paths = [*folder.glob("token_exports/step_*/rank_*.jsonl"), *folder.glob("step_*/rank_*.jsonl")]
    found = [(match, path) for path in paths if (match := _STEP.fullmatch(path.parent.name))]
    return sorted((int(match[1]), path) for match, path in found)


def _check(record: dict[str, Any], where: str) -> None:
    lists = [record.get(name) for name in _LISTS]
    if not all(isinstance(one, list) for one in lists) or len({len(one) for one in lists if one is not None}) != 1:
        raise UserError(f"{where}: {', '.join(_LISTS)} are not lists of the same length; this is no token export")
    if not any(record["loss_mask"]):
        raise UserError(f"{where}: loss_mask has no trained token; this is no token export")


def _sample(record: dict[str, Any], step: int, number: int, tokenizer: PreTrainedTokenizerBase) -> Sample:
    start = record["loss_mask"].index(True)
    ids = record["token_ids"][start:]
    completion = decode(ids, tokenizer)
    reward, token_rewards = _rewards(record)
    ranges, is_trained = offsets(ids, tokenizer), record["loss_mask"][start:]
    tokens = Tokens(
        text=[completion[low:high] for low, high in ranges],
        start=[low for low, _ in ranges],
        end=[high for _, high in ranges],
        reward=_where(is_trained, token_rewards[start:]),
        advantage=_where(is_trained, record["advantages"][start:]),
        logprob_before=record["trainer_logprobs"][start:],
        logprob_after=[None] * len(ids),
    )
    prompt = decode(record["token_ids"][:start], tokenizer)
    return Sample(step=step, sample=number, prompt=prompt, completion=completion, total=reward, tokens=tokens)


def _where(mask: Sequence[bool], values: Sequence[float | None]) -> list[float | None]:
    return [value if is_known else None for is_known, value in zip(mask, values, strict=True)]


def _rewards(record: dict[str, Any]) -> tuple[float | None, Sequence[float | None]]:
    """Return the reward of the sequence, and those of its tokens, None where there are none."""
    none: list[float | None] = [None] * len(record["token_ids"])
    values = _trained(record, record.get("rewards") or none)
    if not values:
        return None, none
    return (values[0], none) if len(set(values)) == 1 else (sum(values), record["rewards"])


def _trained(record: dict[str, Any], values: Sequence[float | None]) -> list[float]:
    """Return the values of the tokens that are trained on, where they have one."""
    mask = record["loss_mask"]
    return [value for value, is_trained in zip(values, mask, strict=True) if is_trained and value is not None]


def _summary(record: dict[str, Any]) -> dict[str, float]:
    found: dict[str, float] = {"completions/mean_length": sum(record["loss_mask"])}
    reward, _ = _rewards(record)
    if reward is not None:
        found["reward"] = reward
    for name in _MEANS:
        if values := _trained(record, record.get(name) or [None] * len(record["loss_mask"])):
            found[name] = fmean(values)
    return found


def _means(step: int, records: list[dict[str, float]]) -> dict[str, Any]:
    names = dict.fromkeys(name for record in records for name in record)
    means = {name: fmean(record[name] for record in records if name in record) for name in names}
    return {"step": step, "samples": len(records), **means}
