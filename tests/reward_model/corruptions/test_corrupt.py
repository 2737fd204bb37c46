"""Corrupted examples: their corrections restore the text, and the seed decides."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from text2grad.data.faithful import from_summaries
from text2grad.errors import UserError
from text2grad.reward_model.corruptions.corrupt import CorruptionSettings, corrupt, with_completion
from text2grad.schema import Example

FAITHFUL = list(from_summaries("train"))[:120]


def restore(example: Example) -> str:
    """The text with every correction made."""
    assert example.feedback is not None
    places = [(span.start, span.end, span.replacement or "") for span in example.feedback.spans]
    places += [(o.insert_at or 0, o.insert_at or 0, o.insertion or "") for o in example.feedback.omissions]
    text = example.completion
    for start, end, words in sorted(places, reverse=True):
        text = text[:start] + words + text[end:]
    return " ".join(text.split()).replace(" .", ".").replace(" ,", ",").replace(" ;", ";")


def test_every_correction_restores_the_faithful_text() -> None:
    corrupted = list(corrupt(FAITHFUL, CorruptionSettings(per_text=3)))
    assert len(corrupted) > 2.5 * len(FAITHFUL)
    changed = [example for example in corrupted if example.completion != example.meta["faithful"]]
    assert 0.6 < len(changed) / len(corrupted) < 0.9
    for example in corrupted:
        assert restore(example) == " ".join(str(example.meta["faithful"]).split())


def test_feedback_says_what_is_wrong_and_why() -> None:
    kinds = set()
    for example in corrupt(FAITHFUL, CorruptionSettings(per_text=3)):
        feedback = example.feedback
        assert feedback is not None
        assert feedback.critique
        for span in feedback.spans:
            assert span.label == "poor"
            assert span.phrase is not None
            assert feedback.critique[slice(*span.phrase)] == span.reason
            assert example.completion[span.start : span.end].strip() == example.completion[span.start : span.end]
            kinds.add(span.critic.partition(":")[2])
        kinds |= {"omission"} if feedback.omissions else set()
    assert {"name", "new name", "number", "date", "word", "relation", "not", "omission"} <= kinds
    assert {"added phrase", "added clause", "added sentence", "repetition"} <= kinds


def test_the_seed_decides_and_nothing_else() -> None:
    once = list(corrupt(FAITHFUL, CorruptionSettings(seed=1)))
    assert once == list(corrupt(FAITHFUL, CorruptionSettings(seed=1)))
    assert once != list(corrupt(FAITHFUL, CorruptionSettings(seed=2)))


def test_clean_share_and_faults_are_limits() -> None:
    clean = list(corrupt(FAITHFUL, CorruptionSettings(clean_share=1.0)))
    assert all(e.completion == e.meta["faithful"] and e.feedback and not e.feedback.spans for e in clean)
    for example in corrupt(FAITHFUL, CorruptionSettings(clean_share=0.0, max_faults=1)):
        assert example.feedback is not None
        assert len(example.feedback.spans) + len(example.feedback.omissions) == 1


def test_without_a_source_no_word_is_exchanged() -> None:
    texts = [e.model_copy(update={"meta": {"document": ""}, "prompt": "What happened?"}) for e in FAITHFUL]
    for example in corrupt(texts, CorruptionSettings(clean_share=0.0)):
        assert example.feedback is not None
        assert all(span.replacement == "" for span in example.feedback.spans)


PARTS = [
    *("Anna Lind", "on Friday", "is", "not", "has been", "12", "$4,000", "2,70", "more", ", which was", "million"),
    *("because of", ".", "!", "\n", "  ", "東京", "e\u0301", "\u2028", "'s", "(", '"', "\\", "{written}", "{0}"),
]


@given(st.lists(st.sampled_from(PARTS), min_size=1, max_size=25).map(" ".join) | st.text(min_size=1), st.integers(0, 9))
def test_any_text_can_be_corrupted(text: str, seed: int) -> None:
    example = Example(id="1", prompt="p", completion=text, meta={"document": text, "question": "Who?"})
    for one in corrupt([example] if text.strip() else [], CorruptionSettings(clean_share=0.0, seed=seed)):
        assert one.feedback is not None
        assert one.completion != text
        pieces = [one.completion[span.start : span.end] for span in one.feedback.spans]
        assert all(piece.strip() == piece for piece in pieces)


def test_a_text_is_needed() -> None:
    with pytest.raises(UserError, match='example "7" has no completion to corrupt'):
        list(corrupt([Example(id="7", prompt="p")]))


def test_a_reference_stands_in_for_a_missing_completion() -> None:
    assert with_completion(Example(id="1", prompt="p", reference=["a", "b"])).completion == "a"
    assert with_completion(Example(id="1", prompt="p", completion="c", reference="a")).completion == "c"
