"""Metrics of answers, each with its reference, feedback and test result; and their means over prompts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from statistics import fmean
from typing import Any

from text2grad.errors import UserError
from text2grad.evaluation.metrics import critic_score, exact_match, rouge_l, sentence_bleu, token_f1
from text2grad.evaluation.pass_at_k import pass_at_k
from text2grad.evaluation.significance import bootstrap
from text2grad.schema import Example, Feedback

Metric = Callable[[Example], float | None]
Prompt = tuple[str, str]  # id and text
PASSED = "passed"  # the entry of an answer's meta: whether its program passes the tests
SAMPLE = "sample"  # and which of the answers to its prompt it is


def valid_feedback(example: Example) -> Feedback | None:
    """Return the feedback, if there is any that did not fail."""
    return example.feedback if example.feedback is not None and example.feedback.status == "ok" else None


def _of_feedback(metric: Callable[[Feedback], float]) -> Metric:
    def measure(example: Example) -> float | None:
        feedback = valid_feedback(example)
        return None if feedback is None else metric(feedback)

    return measure


def _of_reference(metric: Callable[[str, str | list[str]], float]) -> Metric:
    return lambda example: None if example.reference is None else metric(example.completion, example.reference)


def _count_spans(label: str) -> Metric:
    return _of_feedback(lambda feedback: sum(span.label == label for span in feedback.spans))


def _passed(example: Example) -> float | None:
    passed = example.meta.get(PASSED)
    return float(passed) if isinstance(passed, bool) else None  # a column of that name may hold anything


# Each gives None where it does not apply: without a reference, without valid feedback, without tests.
METRICS: dict[str, Metric] = {
    "score": _of_feedback(critic_score),
    PASSED: _passed,
    "rouge_l": _of_reference(rouge_l),
    "token_f1": _of_reference(token_f1),
    "exact_match": _of_reference(exact_match),
    "praised spans": _count_spans("good"),
    "blamed spans": _count_spans("poor"),
    "omissions": _of_feedback(lambda feedback: len(feedback.omissions)),
    "words": lambda example: len(example.completion.split()),
}
BLEU: dict[str, Metric] = {"sentence_bleu": _of_reference(sentence_bleu)}  # needs the package sacrebleu
LABELS = {
    "score": "critic's score",
    "passed": "tests passed",
    "rouge_l": "ROUGE-L",
    "token_f1": "token F1",
    "exact_match": "exact match",
    "sentence_bleu": "sentence BLEU",
}


def group_answers(answers: Iterable[Example]) -> dict[Prompt, list[Example]]:
    """Return the answers to each prompt, in their order."""
    groups: dict[Prompt, list[Example]] = {}
    for answer in answers:
        groups.setdefault((answer.id, answer.prompt_text), []).append(answer)
    return groups


def prompt_values(groups: dict[Prompt, list[Example]], metric: Metric) -> dict[Prompt, float]:
    """Return the metric's mean over the answers to each prompt; a prompt without any value is left out."""
    values = {
        prompt: [value for value in map(metric, answers) if value is not None] for prompt, answers in groups.items()
    }
    return {prompt: fmean(of_prompt) for prompt, of_prompt in values.items() if of_prompt}


def summarise(
    answers: Sequence[Example],
    resamples: int,
    seed: int,
    metrics: dict[str, Metric] = METRICS,
    ks: Sequence[int] = (),
) -> dict[str, Any]:
    """Return the mean of each metric over the prompts, with its 95% bootstrap interval; and pass@k for each of `ks`.

    A metric that applies to no answer is left out. n: the prompts that a mean is over.
    """
    groups = group_answers(answers)
    results = {}
    for name, metric in metrics.items():
        if name == PASSED and ks:
            continue
        if values := list(prompt_values(groups, metric).values()):
            results[name] = {**bootstrap(values, resamples, seed)._asdict(), "n": len(values)}
    passes = [[passed for passed in map(_passed, group) if passed is not None] for group in groups.values()]
    for k in ks:
        values = [pass_at_k(len(group), int(sum(group)), k) for group in passes if len(group) >= k]
        if not values:
            raise UserError(f"pass@{k} needs at least {k} answers with tests per prompt; give --samples {k} or more")
        results[f"pass@{k}"] = {**bootstrap(values, resamples, seed)._asdict(), "n": len(values)}
    failed = sum(answer.feedback is not None and valid_feedback(answer) is None for answer in answers)
    return {"prompts": len(groups), "answers": len(answers), "failed": failed, "metrics": results}
