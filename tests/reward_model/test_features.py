"""Examples to rows: labels in their places, what is left out counted, one side for each prompt."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from reward_support import about_animals, labelled
from transformers import PreTrainedTokenizerBase

from text2grad.data.split import split_by_prompt
from text2grad.models.loading import load_tokenizer
from text2grad.reward_model.features import collate, prepare
from text2grad.reward_model.grammar import critique_grammar
from text2grad.reward_model.head import GOOD, IGNORE, NEUTRAL, POOR
from text2grad.reward_model.settings import Layout
from text2grad.rollout.grammar import build_llguidance_tokenizer, compile_grammar
from text2grad.schema import Example, Feedback, Message


@pytest.fixture(scope="module")
def tokenizer(tiny_model: Path) -> PreTrainedTokenizerBase:
    return load_tokenizer(tiny_model)


def test_a_row_is_the_question_the_judgement_and_the_end(tokenizer: PreTrainedTokenizerBase) -> None:
    example = labelled("1", "a fox, a dog", {"fox": "good", "dog": "poor"})
    prepared = prepare([example], tokenizer, Layout())
    (row,) = prepared.rows
    written = [i for i, label in enumerate(row["lm_labels"]) if label != IGNORE]
    assert written == list(range(written[0], len(row["input_ids"])))
    assert [row["lm_labels"][i] for i in written] == row["input_ids"][written[0] :]
    assert tokenizer.decode(row["input_ids"][written[0] : -1]) == (
        'Critique: Too many dogs.\nGood: "fox"\nPoor: "dog"\nMissing: none'
    )
    assert row["input_ids"][-1] == tokenizer.eos_token_id
    judged = [i for i, label in enumerate(row["head_labels"]) if label != IGNORE]
    assert judged[-1] < written[0]
    assert tokenizer.decode([row["input_ids"][i] for i in judged]) == "a fox, a dog"
    for label, text in ((GOOD, " fox"), (POOR, " dog"), (NEUTRAL, "a, a")):
        assert tokenizer.decode([row["input_ids"][i] for i in judged if row["head_labels"][i] == label]) == text
    assert prepared.class_counts() == [row["head_labels"].count(label) for label in (GOOD, NEUTRAL, POOR)]


def test_the_name_of_the_end_token_in_a_critique_does_not_end_it(tokenizer: PreTrainedTokenizerBase) -> None:
    feedback = Feedback(critic="c", critique="It says <|im_end|> too early.")
    said = Feedback(critic="c", critique="It stops too early.")
    plain = prepare([Example(id="1", prompt="p", completion="x", feedback=said)], tokenizer, Layout())
    sly = prepare([Example(id="1", prompt="p", completion="x", feedback=feedback)], tokenizer, Layout())
    end = tokenizer.eos_token_id
    assert sly.rows[0]["input_ids"].count(end) == plain.rows[0]["input_ids"].count(end)


def test_the_grammar_admits_what_is_learned(tokenizer: PreTrainedTokenizerBase) -> None:
    vocabulary = build_llguidance_tokenizer(tokenizer, len(tokenizer))
    for order in ("critique_first", "spans_first", "spans_only"):
        layout = Layout(order=order)
        examples = [labelled("1", "a fox, a cafe\u0301", {"fox": "good", "cafe\u0301": "poor"}), *about_animals(4)]
        for example, row in zip(examples, prepare(examples, tokenizer, layout).rows, strict=True):
            matcher = compile_grammar(vocabulary, critique_grammar(example.completion, layout))
            assert matcher.consume_tokens([label for label in row["lm_labels"] if label != IGNORE][:-1])
            assert matcher.is_stopped() or matcher.is_accepting()


def test_where_nobody_wrote_a_critique_only_the_head_learns(tokenizer: PreTrainedTokenizerBase) -> None:
    silent = Example(id="1", prompt="p", completion="x", feedback=Feedback(critic="c"))
    first, only = (prepare([silent], tokenizer, Layout(order=order)) for order in ("critique_first", "spans_only"))
    assert set(first.rows[0]["lm_labels"]) == {IGNORE}
    assert set(first.rows[0]["head_labels"]) == {IGNORE, NEUTRAL}
    assert (first.written, only.written) == (0, 1)  # spans can be told without a critique


def test_what_is_left_out_is_counted(tokenizer: PreTrainedTokenizerBase) -> None:
    good = labelled("good", "a dog", {"dog": "poor"})
    examples = [
        good,
        Example(id="silent", prompt="p", completion="x"),
        Example(id="failed", prompt="p", completion="x", feedback=Feedback.failure("c", "timeout")),
        Example(id="empty", prompt="p", completion="", feedback=Feedback(critic="c")),
        Example(id="long", prompt="p", completion="y" * 300, feedback=Feedback(critic="c")),
        Example(id="source", prompt="Q" * 500, completion="x", feedback=Feedback(critic="c")),
    ]
    prepared = prepare(examples, tokenizer, Layout(max_length=256))
    assert prepared.left_out == {"no feedback": 1, "failed feedback": 1, "answer empty or too long": 2}
    assert len(prepared.rows) == 2
    assert prepared.cut_sources == 1


def test_collated_rows_are_padded_on_the_right() -> None:
    rows = [
        {"input_ids": [3, 1], "head_labels": [0, IGNORE], "lm_labels": [IGNORE, 1]},
        {"input_ids": [1, 1, 1], "head_labels": [IGNORE, 2, IGNORE], "lm_labels": [IGNORE, IGNORE, 1]},
    ]
    batch = {name: tensor.tolist() for name, tensor in collate(rows, pad_id=1).items()}
    assert batch == {
        "input_ids": [[3, 1, 1], [1, 1, 1]],
        "head_labels": [[0, IGNORE, IGNORE], [IGNORE, 2, IGNORE]],
        "lm_labels": [[IGNORE, 1, IGNORE], [IGNORE, IGNORE, 1]],
    }


def examples_of(prompts: list[int]) -> list[Example]:
    return [Example(id=str(i), prompt=f"Prompt {n}", completion=str(i)) for i, n in enumerate(prompts)]


@given(st.lists(st.integers(0, 20), max_size=40), st.floats(0, 1), st.randoms())
def test_a_prompt_is_on_one_side_whatever_the_order(prompts: list[int], share: float, shuffle: st.randoms) -> None:
    examples = examples_of(prompts)
    train, heldout = split_by_prompt(examples, share)
    assert not {e.prompt_text for e in train} & {e.prompt_text for e in heldout}
    assert sorted((e.id for e in [*train, *heldout]), key=int) == [e.id for e in examples]
    shuffle.shuffle(examples)
    again, _ = split_by_prompt(examples, share)
    assert {e.id for e in again} == {e.id for e in train}


def test_about_the_share_is_held_out() -> None:
    examples = examples_of(list(range(2000)))
    train, heldout = split_by_prompt(examples, 0.2)
    assert len(heldout) == pytest.approx(400, abs=60)
    assert split_by_prompt(examples, 0.0) == (examples, [])
    assert split_by_prompt(examples, 1.0) == ([], examples)
    _, other = split_by_prompt(examples, 0.2, salt="again")
    assert {e.id for e in other} != {e.id for e in heldout}
    # More held out holds out the same ones, and more.
    _, more = split_by_prompt(examples, 0.4)
    assert {e.id for e in heldout} < {e.id for e in more}
    assert len(train) == 2000 - len(heldout)


def test_a_conversation_is_split_by_its_words() -> None:
    text = Example(id="1", prompt="A\n\nB")
    turns = Example(id="2", prompt=[Message(role="system", content="A"), Message(role="user", content="B")])
    train, heldout = split_by_prompt([text, turns], 0.5)
    assert len(train) in (0, 2)
    assert len(heldout) == 2 - len(train)
