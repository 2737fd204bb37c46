"""Reading of run folders. The only damage tolerated is an incomplete last line, which a killed run leaves behind."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import yaml
from pydantic import BaseModel, BeforeValidator

from text2grad.errors import UserError
from text2grad.files import parse_json, read_json_lines
from text2grad.report.subsample import subsample_by_step
from text2grad.schema import Feedback, Message, validate

MAX_SAMPLES = 10_000
MAX_SAMPLE_BYTES = 192 * 2**20  # as recorded; the page has a tenth of that
MAX_EXAMPLES = 500


class Tokens(BaseModel):
    """The tokens of a completion, one list per attribute; None where a token has none.

    start, end: code points in the completion. text: None where it is the completion's own. kl: to the reference before
    the update. value: of the value head.
    """

    text: list[str | None] = []
    start: list[int] = []
    end: list[int] = []
    reward: list[float | None] = []
    advantage: list[float | None] = []
    logprob_before: list[float | None] = []
    logprob_after: list[float | None] = []
    kl: list[float | None] = []
    value: list[float | None] = []


def _to_columns(tokens: Any) -> Any:
    """Turn the records of tokens into lists, which need a fraction of the memory."""
    if not isinstance(tokens, list) or not all(isinstance(token, dict) for token in tokens):
        return tokens
    return {name: [token.get(name) for token in tokens] for name in Tokens.model_fields}


class Correction(BaseModel):
    """Words that should have been written in place of the tokens [start, end), and their mean token probability."""

    start: int
    end: int
    text: str
    before: float | None = None
    after: float | None = None


class Sample(BaseModel):
    """One logged completion with its critique and tokens.

    scores: what single reward functions gave. is_whole: there is one token, the whole completion, for trainers that log
    no others.
    """

    step: int
    sample: int
    prompt: str | list[Message]
    completion: str
    reference: str | list[str] | None = None
    feedback: Feedback | None = None
    total: float | None = None
    outcome: float | None = None
    truncated: bool = False
    scores: dict[str, float] = {}
    is_whole: bool = False
    corrections: list[Correction] = []
    tokens: Annotated[Tokens, BeforeValidator(_to_columns)] = Tokens()


class MetricChange(BaseModel):
    """A held-out metric before and after training, with the 95% interval of the difference; n: its prompts."""

    before: float | None = None
    after: float | None = None
    difference: float | None = None
    low: float | None = None
    high: float | None = None
    n: int | None = None


class Completion(BaseModel):
    """A held-out completion with its feedback."""

    completion: str = ""
    feedback: Feedback | None = None


class Comparison(BaseModel):
    """The completions of one held-out prompt before and after training."""

    id: str
    prompt: str | list[Message]
    reference: str | list[str] | None = None
    before: Completion
    after: Completion


class Evaluation(BaseModel):
    """The content of `evaluation.json`."""

    n: int
    metrics: dict[str, MetricChange] = {}
    examples: list[Comparison] = []


@dataclass(frozen=True)
class Run:
    """Everything that a report shows: of the recorded samples a selection, of the rest all that there is."""

    name: str
    config: str | None
    model: str | None
    metrics: list[dict[str, Any]]
    samples: list[Sample]
    num_samples_recorded: int
    evaluation: Evaluation | None
    is_foreign: bool = False  # of another trainer, which records other metrics


def read_run(folder: Path, max_samples: int = MAX_SAMPLES) -> Run:
    """Read a finished or unfinished run; files that it has not written yet are empty or None."""
    if not folder.is_dir():
        raise UserError(f"{folder}: no such run folder; give the output_dir of a run")
    metrics = folder / "metrics.jsonl"
    if not metrics.is_file():
        raise UserError(
            f"{folder}: no metrics.jsonl in this folder; give the output_dir of a run that has started training"
        )
    config_file = folder / "config.yaml"
    config = config_file.read_text(encoding="utf-8", errors="replace") if config_file.is_file() else None
    samples, num_recorded = read_samples(folder / "samples.jsonl", max_samples)
    return Run(
        name=folder.resolve().name,
        config=config,
        model=None if config is None else _model_name(config, config_file),
        metrics=read_metrics(metrics),
        samples=samples,
        num_samples_recorded=num_recorded,
        evaluation=read_evaluation(folder / "evaluation.json"),
    )


def read_metrics(path: Path) -> list[dict[str, Any]]:
    """Return one record per step in ascending order; the later of two records of one step (a resumed run) wins."""
    by_step = {_integer(record, "step", where): record for where, record in read_json_lines(path)}
    return [by_step[step] for step in sorted(by_step)]


def read_samples(path: Path, limit: int = MAX_SAMPLES, byte_limit: int = MAX_SAMPLE_BYTES) -> tuple[list[Sample], int]:
    """Return samples spread evenly over the steps, bounded in number and bytes, and how many the file has.

    The file is read twice, so that only the selected samples are held in memory.
    """
    if not path.is_file():
        return [], 0
    recorded = {
        (_integer(record, "step", where), _integer(record, "sample", where)): where
        for where, record in read_json_lines(path)
    }
    if not recorded:
        return [], 0
    keys = sorted(recorded)
    affordable = byte_limit * len(keys) // path.stat().st_size
    positions = subsample_by_step([step for step, _ in keys], max(1, min(limit, affordable)))
    selected = {recorded[keys[position]] for position in positions}
    samples = [_sample(record, where) for where, record in read_json_lines(path) if where in selected]
    return sorted(samples, key=lambda sample: (sample.step, sample.sample)), len(keys)


def _sample(record: dict[str, Any], where: str) -> Sample:
    try:
        return validate(Sample, record, where)
    except UserError as error:
        raise UserError(f"{error}; remove the line") from error


def read_evaluation(path: Path) -> Evaluation | None:
    """Return the held-out evaluation, or None if the run has not been evaluated."""
    if not path.is_file():
        return None
    try:
        record = parse_json(path.read_bytes())
    except ValueError as error:
        raise UserError(f"{path}: not valid JSON ({error}); evaluate the run again") from error
    return validate(Evaluation, record, str(path))


def _integer(record: dict[str, Any], field: str, where: str) -> int:
    value = record.get(field)
    if not isinstance(value, int):
        raise UserError(f"{where}: {field} is {value!r}, not an integer; remove the line")
    return value


def _model_name(config: str, path: Path) -> str | None:
    """Return the model that `config` trains: `model: NAME` or `model: {name: NAME}`."""
    try:
        sections = yaml.safe_load(config)
    except yaml.YAMLError as error:
        raise UserError(f"{path}: not valid YAML; fix it, or move it away to build the report without it") from error
    model = sections.get("model") if isinstance(sections, dict) else None
    name = model.get("name") if isinstance(model, dict) else model
    return None if name is None else str(name)
