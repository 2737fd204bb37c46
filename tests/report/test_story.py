"""The story of a run: counted by hand."""

from __future__ import annotations

from typing import Any

from text2grad.report.read import Comparison, Evaluation, MetricChange, Run, Sample
from text2grad.report.story import MISSING, NO_REASON, heldout_rows, reasons_of, tell_story, training_rows
from text2grad.schema import Feedback


def feedback(*reasons: str | None, missing: int = 0, score: float | None = None) -> dict[str, Any]:
    spans = [{"start": i, "end": i + 1, "label": "poor", "reason": reason} for i, reason in enumerate(reasons)]
    return {"critic": "c", "spans": spans, "omissions": [{"text": "x"}] * missing, "score": score}


def sample(step: int, *reasons: str | None, missing: int = 0) -> Sample:
    said = feedback(*reasons, missing=missing)
    return Sample.model_validate({"step": step, "sample": 0, "prompt": "p", "completion": "abcdefgh", "feedback": said})


def comparison(name: str, before: dict[str, Any], after: dict[str, Any]) -> Comparison:
    sides = {"before": before, "after": after}
    return Comparison.model_validate(
        {"id": name, "prompt": "p"} | {key: {"completion": "abcdefgh", "feedback": f} for key, f in sides.items()}
    )


def make_run(**fields: Any) -> Run:
    nothing: dict[str, Any] = {"name": "r", "config": None, "model": None, "metrics": [], "samples": []}
    return Run(**(nothing | {"num_samples_recorded": 0, "evaluation": None} | fields))


def test_reasons_are_counted_and_praise_is_not() -> None:
    said = Feedback.model_validate(feedback("a", "a", None, missing=2))
    said.spans.append(said.spans[0].model_copy(update={"label": "good"}))
    assert reasons_of(said) == {"a": 2, NO_REASON: 1, MISSING: 2}


def test_shares_of_the_first_and_last_third_of_the_steps() -> None:
    samples = [sample(step, *(["a"] if step <= 10 else []), "b") for step in range(1, 31)]
    rows = {row.reason: row for row in training_rows(samples)}
    assert (rows["a"].before, rows["a"].after, rows["a"].change) == ("100%", "0%", "rarer")
    assert (rows["b"].before, rows["b"].after, rows["b"].change) == ("100%", "100%", "no clear change")


def test_a_small_difference_is_no_clear_change() -> None:
    samples = [sample(step, *(["a"] if step in (1, 2, 9) else [])) for step in range(1, 10)]
    (row,) = training_rows(samples)
    assert (row.before, row.after, row.change) == ("67%", "33%", "no clear change")


def test_two_steps_tell_no_trend() -> None:
    assert training_rows([sample(1, "a"), sample(2, "a")]) == []


def test_criticisms_of_held_out_answers_are_compared_in_pairs() -> None:
    pairs = [comparison(str(i), feedback("a", "a", "b"), feedback("b", "c")) for i in range(8)]
    rows = {row.reason: (row.before, row.after, row.change) for row in heldout_rows(pairs)}
    assert rows == {
        "a": ("2.00", "0.00", "rarer"),
        "b": ("1.00", "1.00", "no clear change"),
        "c": ("0.00", "1.00", "more frequent"),
    }


def test_the_story_of_a_run() -> None:
    pairs = [
        comparison("same", feedback(score=0.5), feedback(score=0.5)),
        comparison("worse", feedback(score=0.5), feedback("a", score=0.25)),
        comparison("better", feedback("a", score=-0.5), feedback(score=0.5)),
        comparison("failed", feedback(), {"critic": "c", "status": "failed", "error": "late"}),
    ]
    change = MetricChange(before=0.1, after=0.3, difference=0.2, low=0.1, high=0.3)
    evaluation = Evaluation(n=3, metrics={"score": change, "rouge_l": MetricChange(low=-1, high=1)}, examples=pairs)
    metrics = [{"step": 1, "samples": 8, "critic/failed": 1}, {"step": 2, "samples": 8, "critic/failed": 0}]
    samples = [sample(1, "a"), sample(2, "a"), sample(2)]
    story = tell_story(make_run(metrics=metrics, samples=samples, evaluation=evaluation))
    assert story.sentences == [
        "In 2 steps the model learned from 16 completions; the critic commented on 15 of them.",
        "What was criticised most, and in how many of the logged completions: “a” (67%).",
        "On 3 held-out prompts: Critic’s score rose from 0.1 to 0.3.",
        "Held-out answers, by the critic’s score: 1 better than before, 1 worse, 1 the same.",
    ]
    assert story.examples == [
        ("The largest rise of the critic’s score: +1.00", 2),
        ("The median change of the score: +0.00", 0),
        ("The largest fall of the critic’s score: −0.25", 1),
    ]


def test_a_run_that_only_improves_shows_no_fall() -> None:
    pairs = [comparison(str(i), feedback(score=0.0), feedback(score=0.1 * i)) for i in (1, 2, 3)]
    story = tell_story(make_run(evaluation=Evaluation(n=3, examples=pairs)))
    assert [i for _, i in story.examples] == [2, 1]


def test_of_another_trainer_nothing_is_said_that_it_does_not_record() -> None:
    run = make_run(metrics=[{"step": 1, "samples": 8, "reward": 0.5}], is_foreign=True, num_samples_recorded=8)
    assert tell_story(run).sentences == ["Another trainer has logged 8 completions of this run."]


def test_a_run_without_records_has_no_story() -> None:
    story = tell_story(make_run())
    assert (story.sentences, story.training, story.heldout, story.examples) == ([], [], [], [])
