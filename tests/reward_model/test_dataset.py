"""Training rows: ids and labels, and the counts of skipped examples."""

from __future__ import annotations

from pathlib import Path

import pytest
from reward_support import about_animals, labelled
from transformers import PreTrainedTokenizerBase

from text2grad.models.loading import load_tokenizer
from text2grad.reward_model.critique_format import CritiqueFormat
from text2grad.reward_model.dataset import build_dataset, collate
from text2grad.reward_model.grammar import critique_grammar
from text2grad.reward_model.head import GOOD, IGNORE, NEUTRAL, POOR
from text2grad.reward_model.inputs import InputSettings
from text2grad.rollout.grammar import build_llguidance_tokenizer, compile_grammar
from text2grad.schema import Example, Feedback


@pytest.fixture(scope="module")
def tokenizer(tiny_model: Path) -> PreTrainedTokenizerBase:
    return load_tokenizer(tiny_model)


def test_a_row_is_model_input_critique_and_end_token(tokenizer: PreTrainedTokenizerBase) -> None:
    example = labelled("1", "a fox, a dog", {"fox": "good", "dog": "poor"})
    dataset = build_dataset([example], tokenizer, InputSettings(), CritiqueFormat())
    (row,) = dataset.rows
    written = [i for i, label in enumerate(row["lm_labels"]) if label != IGNORE]
    assert written == list(range(written[0], len(row["input_ids"])))
    assert [row["lm_labels"][i] for i in written] == row["input_ids"][written[0] :]
    assert tokenizer.decode(row["input_ids"][written[0] : -1]) == (
        'Critique: Too many dogs.\nGood: "fox"\nPoor: "dog"\nMissing: none'
    )
    assert row["input_ids"][-1] == tokenizer.eos_token_id
    scored = [i for i, label in enumerate(row["head_labels"]) if label != IGNORE]
    assert scored[-1] < written[0]
    assert tokenizer.decode([row["input_ids"][i] for i in scored]) == "a fox, a dog"
    for label, text in ((GOOD, " fox"), (POOR, " dog"), (NEUTRAL, "a, a")):
        assert tokenizer.decode([row["input_ids"][i] for i in scored if row["head_labels"][i] == label]) == text
    assert dataset.class_counts() == [row["head_labels"].count(label) for label in (GOOD, NEUTRAL, POOR)]


def test_the_name_of_the_end_token_in_a_critique_does_not_end_it(tokenizer: PreTrainedTokenizerBase) -> None:
    feedback = Feedback(critic="c", critique="It says <|im_end|> too early.")
    said = Feedback(critic="c", critique="It stops too early.")
    plain = build_dataset(
        [Example(id="1", prompt="p", completion="x", feedback=said)], tokenizer, InputSettings(), CritiqueFormat()
    )
    sly = build_dataset(
        [Example(id="1", prompt="p", completion="x", feedback=feedback)], tokenizer, InputSettings(), CritiqueFormat()
    )
    end = tokenizer.eos_token_id
    assert sly.rows[0]["input_ids"].count(end) == plain.rows[0]["input_ids"].count(end)


def test_the_grammar_accepts_every_target(tokenizer: PreTrainedTokenizerBase) -> None:
    vocabulary = build_llguidance_tokenizer(tokenizer, len(tokenizer))
    for order in ("critique_first", "spans_first", "spans_only"):
        critique_format = CritiqueFormat(order=order)
        examples = [labelled("1", "a fox, a cafe\u0301", {"fox": "good", "cafe\u0301": "poor"}), *about_animals(4)]
        for example, row in zip(
            examples, build_dataset(examples, tokenizer, InputSettings(), critique_format).rows, strict=True
        ):
            matcher = compile_grammar(vocabulary, critique_grammar(example.completion, critique_format))
            assert matcher.consume_tokens([label for label in row["lm_labels"] if label != IGNORE][:-1])
            assert matcher.is_stopped() or matcher.is_accepting()


def test_without_a_critique_only_the_head_is_trained(tokenizer: PreTrainedTokenizerBase) -> None:
    silent = Example(id="1", prompt="p", completion="x", feedback=Feedback(critic="c"))
    first, only = (
        build_dataset([silent], tokenizer, InputSettings(), CritiqueFormat(order=order))
        for order in ("critique_first", "spans_only")
    )
    assert set(first.rows[0]["lm_labels"]) == {IGNORE}
    assert set(first.rows[0]["head_labels"]) == {IGNORE, NEUTRAL}
    assert (first.num_with_critique, only.num_with_critique) == (0, 1)  # spans can be told without a critique


def test_skipped_examples_are_counted_by_reason(tokenizer: PreTrainedTokenizerBase) -> None:
    good = labelled("good", "a dog", {"dog": "poor"})
    examples = [
        good,
        Example(id="silent", prompt="p", completion="x"),
        Example(id="failed", prompt="p", completion="x", feedback=Feedback.failure("c", "timeout")),
        Example(id="empty", prompt="p", completion="", feedback=Feedback(critic="c")),
        Example(id="long", prompt="p", completion="y" * 300, feedback=Feedback(critic="c")),
        Example(id="source", prompt="Q" * 500, completion="x", feedback=Feedback(critic="c")),
    ]
    dataset = build_dataset(examples, tokenizer, InputSettings(max_length=256), CritiqueFormat())
    assert dataset.skipped == {"no feedback": 1, "failed feedback": 1, "completion empty or too long": 2}
    assert len(dataset.rows) == 2
    assert dataset.num_truncated_prompts == 1


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
