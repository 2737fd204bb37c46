"""Reading of completions that TRL's GRPOTrainer logs (`log_completions=True`), with the metrics of its checkpoints.

OUTPUT_DIR/completions/completions_00010.parquet has the columns step, prompt and completion (text or messages), one per
reward function, those of `log_extra`, and advantage. OUTPUT_DIR/checkpoint-10/trainer_state.json has the metrics.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from pathlib import Path
from statistics import fmean
from typing import Any

from text2grad.data.messages import is_conversation, parse_messages
from text2grad.data.rows import read_rows_of
from text2grad.errors import UserError
from text2grad.files import parse_json
from text2grad.report.columns import is_number
from text2grad.report.read import MAX_SAMPLES, Run, Sample, Tokens
from text2grad.report.subsample import subsample_by_step
from text2grad.schema import Message

_OWN = ("step", "prompt", "completion", "advantage")
_FILE = re.compile(r"completions_(\d+)\.parquet")
_REWARD = re.compile(r"rewards/(.+)/mean")


def has_logged_completions(folder: Path) -> bool:
    """Whether a folder is the output of a trainer of TRL that logged completions."""
    return bool(_files(folder))


def read_trl_run(folder: Path) -> Run:
    """Read the logged completions, at most as many as a report shows, and the metrics of the last checkpoint.

    Without a checkpoint, the curves are those of the mean reward. The reward of a completion is the sum of its reward
    functions: their weights are not logged.
    """
    files, steps = _files(folder), _logged_metrics(folder)
    records = [(number, row.where, row.fields) for number, path in files.items() for row in read_rows_of(path)]
    rewards = [name for name in _reward_names(steps, records) if name not in _OWN]
    positions = subsample_by_step([number for number, _, _ in records], MAX_SAMPLES)
    first = {number: i for i, (number, _, _) in reversed(list(enumerate(records)))}
    samples = [_sample(*records[i][1:], records[i][0], i - first[records[i][0]], rewards) for i in positions]
    return Run(
        name=folder.resolve().name,
        config=None,
        model=None,
        metrics=steps or _mean_rewards(records, rewards),
        samples=samples,
        num_samples_recorded=len(records),
        evaluation=None,
        is_foreign=True,
    )


def _files(folder: Path) -> dict[int, Path]:
    """Return the files of completions by step; those of an output folder, or of its folder of completions."""
    found = {}
    for path in (*folder.glob("completions/*.parquet"), *folder.glob("*.parquet")):
        if match := _FILE.fullmatch(path.name):
            found[int(match[1])] = path
    return dict(sorted(found.items()))


def _logged_metrics(folder: Path) -> list[dict[str, Any]]:
    """Return the metrics of each logged step from the last checkpoint; none without one."""
    states = [*folder.glob("checkpoint-*/trainer_state.json"), *folder.glob("trainer_state.json")]
    by_step: dict[int, dict[str, Any]] = {}
    for path in sorted(states, key=lambda path: path.stat().st_mtime)[-1:]:
        try:
            history = parse_json(path.read_bytes())["log_history"]
        except (ValueError, KeyError, TypeError) as error:
            raise UserError(f"{path} is damaged: it has no log_history; move it away") from error
        for entry in history:
            by_step.setdefault(entry["step"], {}).update(entry)
    return [by_step[step] for step in sorted(by_step)]


def _reward_names(steps: list[dict[str, Any]], records: list[tuple[int, str, dict[str, Any]]]) -> list[str]:
    """Return the reward functions: those that the metrics name, else all columns of numbers."""
    named = {match[1] for step in steps for name in step if (match := _REWARD.fullmatch(name))}
    columns = dict.fromkeys(name for _, _, fields in records for name in fields)
    found = [name for name in columns if name in named]
    return found or [name for name in columns if any(is_number(fields.get(name)) for _, _, fields in records)]


def _mean_rewards(records: list[tuple[int, str, dict[str, Any]]], rewards: list[str]) -> list[dict[str, Any]]:
    by_step: dict[int, list[float | None]] = {}
    for number, _, fields in records:
        by_step.setdefault(number, []).append(_total(_scores(fields, rewards)))
    return [{"step": step, "samples": len(totals), "reward": _mean(totals)} for step, totals in sorted(by_step.items())]


def _sample(where: str, fields: dict[str, Any], step: int, number: int, rewards: list[str]) -> Sample:
    for name in ("prompt", "completion"):
        if name not in fields:
            raise UserError(f"{where}: no column {name}; these are no completions that TRL has logged")
    completion, scores = _text(fields["completion"], where), _scores(fields, rewards)
    advantage = fields.get("advantage")
    total = _total(scores)
    whole = Tokens(
        text=["the whole completion"],
        start=[0],
        end=[len(completion)],
        reward=[total],
        advantage=[advantage if is_number(advantage) and math.isfinite(advantage) else None],
    )
    return Sample(
        step=step,
        sample=number,
        prompt=_messages(fields["prompt"], where),
        completion=completion,
        total=total,
        scores=scores,
        is_whole=True,
        tokens=whole,
    )


def _scores(fields: dict[str, Any], rewards: Iterable[str]) -> dict[str, float]:
    """Return the rewards of a completion; a function that does not apply to it has logged NaN."""
    found = {name: fields.get(name) for name in rewards}
    return {name: float(value) for name, value in found.items() if is_number(value) and math.isfinite(value)}


def _total(scores: dict[str, float]) -> float | None:
    return sum(scores.values()) if scores else None


def _mean(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return fmean(known) if known else None


def _messages(value: Any, where: str) -> str | list[Message]:
    if not is_conversation(value):
        return str(value)
    try:
        return [Message.model_validate(message) for message in parse_messages(value)]
    except ValueError as error:
        raise UserError(f"{where}: {error}") from error


def _text(value: Any, where: str) -> str:
    """Return the text of a completion; one of several messages, with tools, shows all of them."""
    messages = _messages(value, where)
    return messages if isinstance(messages, str) else "\n\n".join(message.content for message in messages)
