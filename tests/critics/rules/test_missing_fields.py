"""An instruction that is taken for a source is warned of, once; a prompt with its text is not."""

import pytest

from text2grad.critics.rules import missing_fields
from text2grad.critics.rules.grounding import GroundingCritic
from text2grad.critics.rules.qa import QACritic
from text2grad.schema import Example

SOURCE = (
    "The bridge over the Moll was closed on Monday after 340 bolts were found to be loose. Repairs take six weeks, and "
    "the ferry runs every hour."
)
SUMMARY = "The bridge over the Moll was closed because 340 bolts were loose."
LONG = "You are a careful assistant who writes short texts in plain English for readers of a local newspaper, please."


@pytest.fixture
def warnings(caplog):
    """Judge a summary twice and return the warnings."""
    missing_fields._warn.cache_clear()

    def run(prompt, completion=SUMMARY, **meta):
        critic = GroundingCritic()
        for name in "ab":
            critic.critique([Example(id=name, prompt=prompt, completion=completion, meta=meta)])
        return [record.getMessage() for record in caplog.records]

    return run


def test_an_instruction_without_its_text_is_warned_of_once(warnings):
    (warning,) = warnings("Summarise the text.")
    assert "the prompt is taken as the source of the summary, and it has only 3 words" in warning
    assert warning.endswith("give the source as `document`")


def test_a_long_prompt_that_has_nothing_of_the_summary_is_warned_of(warnings):
    (warning,) = warnings(LONG)
    assert "hardly a word of the summary" in warning


@pytest.mark.parametrize("key", ["documnet", "Document", "documents"])
def test_a_misspelt_key_is_named(warnings, key):
    (warning,) = warnings("Summarise the text.", **{key: SOURCE})
    assert f'give the source as `document`; rename "{key}"' in warning


@pytest.mark.parametrize("prompt", [f"Summarise: {SOURCE}", SOURCE, "The bridge over the Moll was closed: 340 bolts."])
def test_a_prompt_that_has_the_source_is_not(warnings, prompt):
    assert warnings(prompt) == []
    assert warnings(prompt, completion="") == [] or len(prompt) < 60


def test_nor_is_an_example_with_a_document(warnings):
    assert warnings("Summarise the text.", document=SOURCE) == []


def test_one_strange_answer_among_many_is_no_reason_to_warn(caplog):
    missing_fields._warn.cache_clear()
    examples = [Example(id=str(i), prompt=f"Sum up: {SOURCE}", completion=SUMMARY) for i in range(4)]
    strange = examples[0].model_copy(update={"completion": "Violins sing of summer evenings in Cremona."})
    GroundingCritic().critique([*examples, strange])
    assert not caplog.records


@pytest.mark.parametrize(
    ("meta", "advice"),
    [({}, "as `reference`"), ({"refrence": "1871"}, 'rename "refrence"'), ({"answer": "1871"}, 'rename "answer"')],
)
def test_questions_without_a_right_answer_are_warned_of_once(meta, advice, caplog):
    missing_fields._warn_of_reference.cache_clear()
    asked = Example(id="1", prompt="When?", completion="1871", meta={"document": "It was built in 1871.", **meta})
    for _ in range(2):
        QACritic().critique([asked])
    (warning,) = caplog.messages
    assert warning.startswith("qa: examples have no `reference`, so right answers cannot be told from wrong ones")
    assert warning.endswith(advice)
    caplog.clear()
    QACritic().critique([asked.model_copy(update={"reference": "1871"})])
    assert not caplog.messages
