import json
from pathlib import Path

import pytest

from text2grad.errors import UserError
from text2grad.explain import Explanation, explain, gradient_step, read_or_fail
from text2grad.models.loading import load_model, load_tokenizer
from text2grad.models.policy import Policy

SUMMARY_SOURCE = (
    "Householders who own a Brightwell BK-20 electric kettle should stop using it at once. The maker has received 17 "
    "reports of handles that came loose when the kettle was full, and four people were scalded."
)


def changes(explanation: Explanation) -> dict[str, list[float]]:
    by_sign: dict[str, list[float]] = {"poor": [], "good": [], "rest": []}
    for token in explanation.tokens:
        kind = "poor" if token.reward < 0 else "good" if token.reward > 0 else "rest"
        by_sign[kind].append(token.logprob_after - token.logprob_before)
    return by_sign


@pytest.mark.model
@pytest.mark.parametrize(
    ("prompt", "completion", "comment", "poor", "good"),
    [
        ("When do we meet?", "We meet on Friday at noon.", 'The meeting was not on "Friday".', {"Friday"}, set()),
        (
            f"Summarise: {SUMMARY_SOURCE}",
            "Brightwell recalls its kettles after 17 reports of loose handles and nine deaths.",
            'The "17 reports" are right, but "nine deaths" is wrong: four people were scalded.',
            {"nine deaths"},
            {"17 reports"},
        ),
    ],
)
def test_blamed_tokens_go_down_praised_tokens_go_up_and_the_rest_moves_less(
    smollm2: str, prompt: str, completion: str, comment: str, poor: set[str], good: set[str]
) -> None:
    explanation = explain(load_model(smollm2), load_tokenizer(smollm2), prompt, completion, comment)
    assert {completion[s.start : s.end] for s in explanation.spans if s.label == "poor"} == poor
    assert {completion[s.start : s.end] for s in explanation.spans if s.label == "good"} == good
    moved = changes(explanation)
    assert all(change < 0 for change in moved["poor"])
    assert all(change > 0 for change in moved["good"])
    rewarded = [abs(change) for change in moved["poor"] + moved["good"]]
    rest = [abs(change) for change in moved["rest"]]
    assert sum(rest) / len(rest) < 0.5 * sum(rewarded) / len(rewarded)


def test_explanation_is_plain_data(tiny_model: Path) -> None:
    explanation = explain(
        load_model(tiny_model), load_tokenizer(tiny_model), "Write.", "The lazy fox 🦊 jumps.", 'Not "lazy".'
    )
    record = json.loads(json.dumps(explanation.to_dict()))
    assert [t["text"] for t in record["tokens"] if t["reward"] < 0]
    assert "".join(t["text"] for t in record["tokens"] if t["reward"] < 0).strip() == "lazy"
    assert record["tokens"][-1]["start"] == record["tokens"][-1]["end"] == len(explanation.completion)
    assert record["unmatched"] == []


def test_a_comment_without_a_match_is_an_error() -> None:
    with pytest.raises(UserError, match="does not say which words"):
        read_or_fail("The recipe for soup in Zanzibar is wrong.", "We meet on Friday at noon.", "When?")
    with pytest.raises(UserError, match="not found: Tuesday"):
        read_or_fail('It was not "Tuesday".', "We meet at noon.", "When?")


def test_praise_and_blame_that_cancel_out_are_an_error(tiny_model: Path) -> None:
    policy = Policy(load_model(tiny_model), keep_reference=False)
    with pytest.raises(UserError, match="cancel out"):
        gradient_step(policy, [5, 6], [7, 8], rewards=[0.0, 0.0], step_size=0.5)


def test_a_comment_on_code_needs_no_quote() -> None:
    program = (
        "def factorial(n):\n    result = 1\n    for i in range(1, n + 1):\n        result *= i\n    return result\n"
    )
    feedback = read_or_fail("The code fails to handle negative inputs.", program, "Write a function that gives n!.")
    blamed = sum(span.end - span.start for span in feedback.spans)
    assert {span.label for span in feedback.spans} == {"poor"}
    assert 0 < blamed < len(program) / 2
