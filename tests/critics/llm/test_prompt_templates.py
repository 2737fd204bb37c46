"""Prompt templates: what they render, and how users replace them."""

from __future__ import annotations

import re

import pytest

from text2grad.critics.llm.prompt_templates import TASKS, PromptTemplate
from text2grad.errors import UserError
from text2grad.schema import Example

EXAMPLE = Example(
    id="1",
    prompt="Add {{ two }} numbers.",
    completion="def add(a, b):\n    return a - b",
    tests="assert add(1, 2) == 3",
    meta={"test_log": "AssertionError: add(1, 2) is -1"},
)


@pytest.mark.parametrize("task", TASKS)
def test_every_task_shows_the_answer_and_asks_for_reasons_first(task):
    prompt = PromptTemplate.load(task).render(EXAMPLE)
    assert EXAMPLE.completion in prompt
    assert EXAMPLE.prompt_text in prompt  # braces in data are no template
    keys = [prompt.index(f'"{key}":') for key in ("reasoning", "critique", "spans", "omissions")]
    assert keys == sorted(keys)


def test_the_code_prompt_shows_tests_and_their_log():
    prompt = PromptTemplate.load("code").render(EXAMPLE)
    assert "assert add(1, 2) == 3" in prompt
    assert "AssertionError: add(1, 2) is -1" in prompt


def test_nothing_is_said_about_what_is_not_there():
    prompt = PromptTemplate.load("code").render(Example(id="1", prompt="p", completion="c"))
    assert "<tests" not in prompt
    assert "<test_log" not in prompt
    assert "None" not in prompt


def test_an_empty_completion_is_shown_as_such():
    prompt = PromptTemplate.load("general").render(Example(id="1", prompt="p", completion="", reference=""))
    assert re.search(r"<answer-(\w+)>\n\n</answer-\1>", prompt)
    assert "<reference" not in prompt


def test_gold_answers_are_listed():
    prompt = PromptTemplate.load("qa").render(
        Example(id="1", prompt="p", completion="c", reference=["Oslo", "the capital"])
    )
    assert re.search(r"<reference-(\w+)>\nOslo\nthe capital\n</reference-\1>", prompt)


def test_a_users_prompt_replaces_ours_and_may_include_the_form(tmp_path):
    path = tmp_path / "own.md"
    path.write_text('Sehr streng: {{ completion }}\n{% include "form.md" %}')
    prompt = PromptTemplate.load("general", path).render(EXAMPLE)
    assert re.search(r"\n\nSehr streng: <answer-\w+>\ndef add", prompt)
    assert "Reply with one JSON object" in prompt


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("Judge {{ answer }}", "'answer' is undefined"),
        ("Judge {% if %}", "own.md: Expected"),
        ("Judge this.", "never shows the whole completion; add {{ completion }}"),
        ("Judge {{ completion | truncate(30) }}", "never shows the whole completion; add {{ completion }}"),
        (
            "{{ completion.__class__.__mro__ }} {{ completion }}",
            "access to attribute '__class__' of 'str' object is unsafe",
        ),
        ("{{ cycler.__init__.__globals__.os.system('true') }} {{ completion }}", "is unsafe"),
        ("{{ completion }}{% for i in range(10**7) %}{% endfor %}", "Range too big"),
    ],
)
def test_a_broken_prompt_is_refused(tmp_path, text, sentence):
    path = tmp_path / "own.md"
    path.write_text(text)
    with pytest.raises(UserError) as error:
        PromptTemplate(path)
    assert sentence in str(error.value)


def test_a_missing_prompt_is_refused(tmp_path):
    with pytest.raises(UserError, match="no such prompt"):
        PromptTemplate(tmp_path / "nowhere.md")
