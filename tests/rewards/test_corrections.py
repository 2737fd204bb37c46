"""Targets of corrections: by hand, then for any ids of any tokenizer that a branch decodes to the corrected text."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from tokenizers_support import SENTENCES, TOKENIZERS, wrap
from transformers import PreTrainedTokenizerBase, PreTrainedTokenizerFast

from text2grad.align.tokens import decode, offsets, overlapping
from text2grad.rewards.corrections import (
    MAX_BETWEEN,
    Completion,
    CorrectedBranch,
    Correction,
    Edit,
    Prefix,
    correct,
    edits,
    find_corrections,
)
from text2grad.schema import Feedback, Omission, Span

TEXT = "We meet on Friday at noon."


def encoder(tokenizer: PreTrainedTokenizerBase) -> Callable[[str], list[int]]:
    def encode(text: str) -> list[int]:
        ids: list[int] = tokenizer(text, add_special_tokens=False, split_special_tokens=True)["input_ids"]
        return ids

    return encode


def completion(ids: list[int], tokenizer: PreTrainedTokenizerBase, ended: bool = False) -> Completion:
    return Completion(ids, decode(ids, tokenizer), offsets(ids, tokenizer), ended)


def written(text: str, tokenizer: PreTrainedTokenizerBase, ended: bool = True) -> Completion:
    end = [int(tokenizer.eos_token_id)] if ended else []
    return completion([*encoder(tokenizer)(text), *end], tokenizer, ended)


def corrected(
    text: str, edit: tuple[int, int, str], tokenizer: PreTrainedTokenizerBase, more: int = 0, ended: bool = True
) -> str:
    """The sampled text before the branch, "|", and the texts of its tokens, with "|" between them; "-" if refused."""
    answer = written(text, tokenizer, ended)
    found = correct([Edit(*edit, 1.0)], answer, tokenizer, encoder(tokenizer), more)
    if found is None:
        return "-"
    tokens = [tokenizer.decode([token]) for token in found.ids]
    return "|".join([decode(answer.ids[: found.start], tokenizer), *tokens])


@pytest.mark.model
@pytest.mark.parametrize(
    ("edit", "more", "expected"),
    [
        ((11, 17, "Monday"), 0, "We meet on| Monday"),
        ((11, 17, "Monday"), 2, "We meet on| Monday| at| noon"),
        ((11, 14, "Mon"), 0, "We meet on| Monday"),  # the rest of the token goes with it
        ((10, 17, ""), 0, "We meet on| at| noon"),  # a deletion teaches what follows
        ((17, 25, ""), 0, "We meet on Friday|.|<|im_end|>"),
        ((25, 26, "!"), 1, "We meet on Friday at noon|!|<|im_end|>"),
        ((25, 26, "!"), 9, "We meet on Friday at noon|!|<|im_end|>"),
        ((0, 2, "They"), 0, "|They"),
        ((3, 3, "all "), 0, "We| all| meet"),
        ((2, 2, " all"), 0, "We| all"),
        ((26, 26, " Bring cake."), 0, "We meet on Friday at noon.| Bring| cake|.|<|im_end|>"),
        ((11, 17, "Friday"), 0, "-"),
        ((0, 26, " "), 0, "-"),
    ],
)
def test_by_hand_for_the_default_tokenizer(
    smollm2_tokenizer: PreTrainedTokenizerFast, edit: tuple[int, int, str], more: int, expected: str
) -> None:
    assert corrected(TEXT, edit, smollm2_tokenizer, more) == expected


@pytest.mark.model
def test_new_words_take_along_a_space_that_was_a_token_of_its_own(smollm2_tokenizer: PreTrainedTokenizerFast) -> None:
    text = "Tickets cost 17 euros."  # Tickets| cost| |1|7| euros|.
    assert corrected(text, (13, 15, "twenty"), smollm2_tokenizer) == "Tickets cost| twenty"
    assert corrected(text, (13, 13, "about "), smollm2_tokenizer).startswith("Tickets cost| about")
    assert corrected(text, (13, 15, "28"), smollm2_tokenizer) == "Tickets cost |2|8"
    assert corrected(text, (14, 15, "8"), smollm2_tokenizer) == "Tickets cost 1|8"


@pytest.mark.model
def test_nothing_follows_a_deletion_at_the_end_of_a_truncated_completion(
    smollm2_tokenizer: PreTrainedTokenizerFast,
) -> None:
    assert corrected(TEXT, (17, 26, ""), smollm2_tokenizer, ended=False) == "-"
    assert corrected(TEXT, (17, 26, ""), smollm2_tokenizer) == "We meet on Friday|<|im_end|>"


@pytest.mark.model
def test_a_branch_reaches_the_first_difference(smollm2_tokenizer: PreTrainedTokenizerFast) -> None:
    assert corrected("a very very very good day", (1, 6, ""), smollm2_tokenizer) == "a| very| very| good"
    assert corrected("a very good day", (1, 1, " very"), smollm2_tokenizer) == "a| very| very"


@pytest.mark.model
def test_the_tokens_that_are_replaced(smollm2_tokenizer: PreTrainedTokenizerFast) -> None:
    answer = written(TEXT, smollm2_tokenizer)  # We| meet| on| Friday| at| noon|.|end
    encode = encoder(smollm2_tokenizer)

    def replaced(start: int, end: int, text: str) -> tuple[int, int]:
        found = correct([Edit(start, end, text, 1.0)], answer, smollm2_tokenizer, encode)
        assert found is not None
        (correction,) = found.corrections
        return correction.start, correction.end

    assert replaced(11, 17, "Monday") == (3, 4)
    assert replaced(8, 17, "soon") == (2, 4)
    assert replaced(2, 2, " all") == (1, 2), "an insertion stands against the token that came instead"
    assert replaced(26, 26, " Bye.") == (7, 8)
    truncated = written(TEXT, smollm2_tokenizer, ended=False)
    more = correct([Edit(26, 26, " Bye.", 1.0)], truncated, smollm2_tokenizer, encode)
    assert more is None, "what was cut off is not to be broken off"


def spell(tokenizer: PreTrainedTokenizerBase, *tokens: str) -> list[int]:
    ids: list[int] = tokenizer.convert_tokens_to_ids(list(tokens))
    return ids


def test_the_bytes_of_an_emoji_are_replaced_together() -> None:
    tokenizer = TOKENIZERS["llama"]
    emoji = [f"<0x{byte:02X}>" for byte in "👍".encode()]
    answer = completion(spell(tokenizer, "▁the", "▁", *emoji, "e"), tokenizer)
    assert answer.text == "the 👍e"
    found = correct([Edit(4, 5, "n", 0.5)], answer, tokenizer, encoder(tokenizer))
    assert found == CorrectedBranch(2, spell(tokenizer, "n"), [Correction(start=2, end=6, first=0, last=1, weight=0.5)])
    split = correct([Edit(5, 6, "n", 0.5)], answer, tokenizer, encoder(tokenizer))
    assert split == CorrectedBranch(6, spell(tokenizer, "n"), [Correction(start=6, end=7, first=0, last=1, weight=0.5)])
    into = correct([Edit(5, 5, "😎", 0.5)], answer, tokenizer, encoder(tokenizer))
    assert into is not None
    assert into.ids == spell(tokenizer, *[f"<0x{byte:02X}>" for byte in "😎".encode()])


def test_a_character_of_several_tokens_is_not_cut() -> None:
    """The first token of the space begins within the emoji, so the branch starts before the emoji."""
    backend = Tokenizer(models.BPE(vocab={"Ã": 0, "©Ġ": 1, "a": 2, "b": 3, "©": 4, "Ġ": 5}, merges=[]))  # é and a space
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = decoders.ByteLevel()
    tokenizer = wrap(backend)
    answer = completion([3, 0, 1, 2], tokenizer)
    assert (answer.text, answer.ranges) == ("bé a", [(0, 1), (1, 2), (1, 3), (3, 4)])
    found = correct([Edit(2, 3, "b", 1.0)], answer, tokenizer, encoder(tokenizer))
    assert found == CorrectedBranch(1, [0, 4, 3], [Correction(start=1, end=3, first=0, last=3, weight=1.0)])


def test_a_tokenizer_that_begins_texts_with_a_space_continues_inside_a_word() -> None:
    tokenizer = TOKENIZERS["unigram"]
    answer = completion(encoder(tokenizer)("The meeting is on Friday"), tokenizer)
    found = correct([Edit(18, 24, "Monday", 1.0)], answer, tokenizer, encoder(tokenizer))
    assert found is not None
    assert decode([*answer.ids[: found.start], *found.ids], tokenizer) == "The meeting is on Monday"


def test_words_that_the_tokenizer_cannot_spell_are_refused_and_counted() -> None:
    tokenizer = TOKENIZERS["no decoder"]
    answer = completion(spell(tokenizer, "the", "the", "."), tokenizer)
    assert answer.text == "the the ."
    spans = [Span(start=4, end=7, label="poor", replacement=text) for text in ("zebra", ".", "the")]
    found, refused = find_corrections(Feedback(spans=spans, critic="c"), answer, tokenizer, encoder(tokenizer))
    assert found == [CorrectedBranch(1, spell(tokenizer, "."), [Correction(1, 2, 0, 1, 1.0)])]
    assert refused == 2


def test_feedback_to_edits() -> None:
    spans = [
        Span(start=11, end=17, label="poor", replacement="Monday", severity=0.5, confidence=0.5),
        Span(start=0, end=2, label="poor"),
        Span(start=18, end=25, label="poor", replacement="", severity=0.25),
        Span(start=3, end=7, label="poor", replacement="met", confidence=0),
    ]
    omissions = [
        Omission(text="cake"),
        Omission(text="cake", insert_at=26, insertion=" Cake!", severity=0.5),
        Omission(text="tea", insert_at=26, insertion=" Tea!", severity=0.75),
    ]
    feedback = Feedback(spans=spans, omissions=omissions, critic="c")
    assert list(edits(feedback, TEXT)) == [
        Edit(11, 17, "Monday", 0.25),
        Edit(17, 25, "", 0.25),
        Edit(26, 26, " Cake! Tea!", 0.75),
    ]
    assert list(edits(Feedback.failure("c", "no"), TEXT)) == []


@pytest.mark.parametrize(
    ("text", "deleted", "taken"),
    [
        ("a b c", (2, 3), (1, 3)),
        ("a b", (2, 3), (1, 3)),
        ("a b, c", (2, 3), (1, 3)),
        ("a b c", (0, 1), (0, 2)),
        ("a b", (0, 3), (0, 3)),
        ("a bcd", (2, 3), (2, 3)),
        ("a\nb c", (2, 3), (2, 3)),
    ],
)
def test_a_deletion_leaves_no_double_space(text: str, deleted: tuple[int, int], taken: tuple[int, int]) -> None:
    span = Span(start=deleted[0], end=deleted[1], label="poor", replacement="")
    assert list(edits(Feedback(spans=[span], critic="c"), text)) == [Edit(*taken, "", 1.0)]


def clean(token: int, answer: Completion) -> int:
    """The token, or the first of those before it that share a character one by one."""
    while token and set(range(*answer.ranges[token - 1])) & set(range(*answer.ranges[token])):
        token -= 1
    return token


def assert_exact(
    answer: Completion, edit: Edit, more: int, tokenizer: PreTrainedTokenizerBase
) -> CorrectedBranch | None:
    """The properties of a branch that is not refused."""
    found = correct([edit], answer, tokenizer, encoder(tokenizer), more)
    if found is None:
        return None
    whole = answer.text[: edit.start] + edit.replacement + answer.text[edit.end :]
    text = decode([*answer.ids[: found.start], *found.ids], tokenizer)
    assert whole.startswith(text)
    assert len(text) >= edit.start + len(edit.replacement)
    overlapped = overlapping(edit.start, edit.end, answer.ranges)
    (correction,) = found.corrections
    assert (correction.start, correction.first, correction.last) == (found.start, 0, len(found.ids))
    if overlapped:
        start = clean(overlapped[0], answer)
        if edit.replacement and found.start < start:  # the new words take along a space that was a token of its own
            start -= 1
            assert answer.text[slice(*answer.ranges[start])] == " "
            assert found.ids[0] != answer.ids[start]
        assert (found.start, correction.end) == (start, overlapped[-1] + 1)
    else:
        assert all(start < edit.start for start, _ in answer.ranges[: found.start])
        assert all(end <= edit.start for _, end in answer.ranges[: found.start])
        assert all(end >= edit.start for _, end in answer.ranges[max(correction.end - 1, found.start) :])
    assert found.ids
    return found


@st.composite
def edits_of(draw: st.DrawFn, text: str) -> Edit:
    start = draw(st.integers(0, len(text)))
    end = draw(st.integers(start, len(text)))
    replacement = draw(st.sampled_from(["", "Monday", " e", "the ", "😀", "日本", "n e"]) | st.text(max_size=6))
    return Edit(start, end, replacement, 1.0)


@pytest.mark.parametrize("kind", TOKENIZERS)
@given(data=st.data())
@settings(max_examples=100, deadline=None)
def test_a_branch_of_any_ids_decodes_to_the_corrected_text(kind: str, data: st.DataObject) -> None:
    tokenizer = TOKENIZERS[kind]
    ids = data.draw(st.lists(st.sampled_from(sorted(tokenizer.get_vocab().values())), max_size=16))
    answer = completion(ids, tokenizer)
    assert_exact(answer, data.draw(edits_of(answer.text)), data.draw(st.integers(0, 3)), tokenizer)


@given(data=st.data())
@settings(max_examples=150, deadline=None)
def test_no_edit_of_running_text_is_refused(data: st.DataObject) -> None:
    """A byte-level tokenizer spells everything. Refused are edits that change nothing or leave nothing."""
    tokenizer = TOKENIZERS["byte-level"]
    answer = written(data.draw(st.sampled_from(SENTENCES[:4])), tokenizer)
    edit = data.draw(edits_of(answer.text))
    whole = answer.text[: edit.start] + edit.replacement + answer.text[edit.end :]
    assume(whole != answer.text and whole.strip())
    found = assert_exact(answer, edit, data.draw(st.integers(0, 3)), tokenizer)
    assert found is not None or not edit.replacement.strip()


@pytest.mark.model
@given(data=st.data())
@settings(max_examples=200, deadline=None)
def test_branches_of_the_default_tokenizer(smollm2_tokenizer: PreTrainedTokenizerFast, data: st.DataObject) -> None:
    ids = data.draw(
        st.lists(st.integers(0, len(smollm2_tokenizer) - 1), max_size=12)
        | st.sampled_from(SENTENCES[:4]).map(encoder(smollm2_tokenizer))
    )
    answer = completion(ids, smollm2_tokenizer)
    assert_exact(answer, data.draw(edits_of(answer.text)), data.draw(st.integers(0, 3)), smollm2_tokenizer)


def learned(branch: CorrectedBranch, tokenizer: PreTrainedTokenizerBase) -> list[str]:
    """The texts of the corrections of a branch."""
    return [tokenizer.decode(branch.ids[c.first : c.last]) for c in branch.corrections]


@pytest.mark.model
def test_a_correction_follows_the_corrected_text(smollm2_tokenizer: PreTrainedTokenizerFast) -> None:
    answer = written(TEXT, smollm2_tokenizer)  # We| meet| on| Friday| at| noon|.|end
    spans = [
        Span(start=11, end=17, label="poor", replacement="Monday", severity=0.5),
        Span(start=21, end=25, label="poor", replacement="two"),
    ]
    omissions = [Omission(text="Bye", insert_at=26, insertion=" Bye.")]
    feedback = Feedback(spans=spans[::-1], omissions=omissions, critic="c")
    encode = encoder(smollm2_tokenizer)
    (branch,), refused = find_corrections(feedback, answer, smollm2_tokenizer, encode)
    assert (branch.start, refused) == (3, 0)
    assert smollm2_tokenizer.decode(branch.ids) == " Monday at two. Bye.<|im_end|>"
    assert branch.corrections == [
        Correction(start=3, end=4, first=0, last=1, weight=0.5),
        Correction(start=5, end=6, first=2, last=3, weight=1.0),
        Correction(start=7, end=8, first=4, last=8, weight=1.0),
    ]
    apart, _ = find_corrections(feedback, answer, smollm2_tokenizer, encode, prefix="sampled")
    assert [(each.start, learned(each, smollm2_tokenizer)) for each in apart] == [
        (3, [" Monday"]),
        (5, [" two"]),
        (7, [" Bye.<|im_end|>"]),
    ]


@pytest.mark.model
def test_a_deletion_in_a_corrected_text_teaches_what_follows(smollm2_tokenizer: PreTrainedTokenizerFast) -> None:
    answer = written(TEXT, smollm2_tokenizer)
    changes = [Edit(0, 2, "They", 1.0), Edit(10, 17, "", 1.0)]
    branch = correct(changes, answer, smollm2_tokenizer, encoder(smollm2_tokenizer))
    assert branch is not None
    assert smollm2_tokenizer.decode(branch.ids) == "They meet on at noon"
    assert learned(branch, smollm2_tokenizer) == ["They", " at noon"]


@pytest.mark.model
def test_corrections_far_from_each_other_have_branches_of_their_own(
    smollm2_tokenizer: PreTrainedTokenizerFast,
) -> None:
    between = " a" * MAX_BETWEEN
    for text, count in ((f"We{between} meet.", 1), (f"We{between} a meet.", 2)):
        answer, place = written(text, smollm2_tokenizer), text.index("meet")
        spans = [
            Span(start=0, end=2, label="poor", replacement="They"),
            Span(start=place, end=place + 4, label="poor", replacement="met"),
        ]
        found, refused = find_corrections(
            Feedback(spans=spans, critic="c"), answer, smollm2_tokenizer, encoder(smollm2_tokenizer)
        )
        assert (len(found), refused) == (count, 0)
        assert [each for branch in found for each in learned(branch, smollm2_tokenizer)] == ["They", " met"]


@pytest.mark.model
@pytest.mark.parametrize("prefix", ["corrected", "sampled"])
def test_neighbouring_deletions_are_one(smollm2_tokenizer: PreTrainedTokenizerFast, prefix: Prefix) -> None:
    answer = written(TEXT, smollm2_tokenizer)
    spans = [Span(start=s, end=e, label="poor", replacement="", severity=w) for s, e, w in ((8, 10, 0.5), (11, 17, 1))]
    (branch,), refused = find_corrections(
        Feedback(spans=spans, critic="c"),
        answer,
        smollm2_tokenizer,
        encoder(smollm2_tokenizer),
        prefix=prefix,
    )
    assert learned(branch, smollm2_tokenizer) == [" at noon"]
    assert branch.corrections == [Correction(start=2, end=4, first=0, last=2, weight=1.0)]
    assert refused == 0


@pytest.mark.model
def test_overlapping_corrections_follow_the_sampled_text(smollm2_tokenizer: PreTrainedTokenizerFast) -> None:
    answer = written(TEXT, smollm2_tokenizer)
    spans = [
        Span(start=0, end=2, label="poor", replacement="They"),
        Span(start=11, end=17, label="poor", replacement="Monday"),
        Span(start=11, end=25, label="poor", replacement="Sunday"),
    ]
    found, refused = find_corrections(
        Feedback(spans=spans, critic="c"), answer, smollm2_tokenizer, encoder(smollm2_tokenizer)
    )
    assert [learned(branch, smollm2_tokenizer) for branch in found] == [["They", " Monday"], [" Sunday"]]
    assert refused == 0


@pytest.mark.model
@pytest.mark.parametrize(
    ("text", "changes"),
    [
        ("We saw three dogs on Friday at noon.", [("three", "two"), ("Friday", "12 May"), ("noon", "9:30")]),
        ("We saw the cats and dogs.", [("We", "They"), ("s and", " and")]),
        ("We saw a very very very good day.", [("We", "They"), (" very very very", " very very")]),
        ("We had a very good day.", [("We", "They"), (" very", " very very")]),
        ("We had a good day", [("We", "They"), (" day", "")]),
        ("We meet 😀 on 10 May", [("We", "They"), ("😀", "😎"), ("10", "12")]),
    ],
)
def test_together_corrections_teach_the_tokens_that_they_teach_alone(
    smollm2_tokenizer: PreTrainedTokenizerFast, text: str, changes: list[tuple[str, str]]
) -> None:
    answer, encode = written(text, smollm2_tokenizer), encoder(smollm2_tokenizer)
    made = [Edit(text.index(old), text.index(old) + len(old), new, 1.0) for old, new in changes]
    together = correct(made, answer, smollm2_tokenizer, encode)
    alone = [correct([edit], answer, smollm2_tokenizer, encode) for edit in made]
    assert together is not None
    assert learned(together, smollm2_tokenizer) == [
        text for branch in alone if branch is not None for text in learned(branch, smollm2_tokenizer)
    ]
    assert [c[:2] for c in together.corrections] == [c[:2] for b in alone if b is not None for c in b.corrections]


def test_corrections_that_cannot_be_spelled_together_are_made_apart() -> None:
    tokenizer = TOKENIZERS["no decoder"]
    answer = completion(spell(tokenizer, "the", "the", "."), tokenizer)
    spans = [
        Span(start=0, end=3, label="poor", replacement="."),
        Span(start=4, end=7, label="poor", replacement="zebra"),
    ]
    found, refused = find_corrections(Feedback(spans=spans, critic="c"), answer, tokenizer, encoder(tokenizer))
    assert [branch.ids for branch in found] == [spell(tokenizer, ".")]
    assert refused == 1


@given(data=st.data())
@settings(max_examples=150, deadline=None)
def test_several_edits_of_running_text(data: st.DataObject) -> None:
    """The branch decodes to the text with all edits, and the tokens of each spell its replacement."""
    tokenizer = TOKENIZERS["byte-level"]
    answer = written(data.draw(st.sampled_from(SENTENCES[:4])), tokenizer)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(answer.text)), min_size=2, max_size=6)))
    words = st.sampled_from(["Monday", " e", "the ", "😀", "日本", ""])
    changes = [Edit(s, e, data.draw(words), 1.0) for s, e in zip(cuts[::2], cuts[1::2], strict=False)]
    changes = [edit for edit in changes if answer.text[edit.start : edit.end] != edit.replacement]
    assume(changes)
    branch = correct(changes, answer, tokenizer, encoder(tokenizer))
    assume(branch is not None)
    assert branch is not None
    whole, places, at = "", [], 0
    for edit in changes:
        whole += answer.text[at : edit.start]
        places.append((len(whole), len(whole) + len(edit.replacement)))
        whole, at = whole + edit.replacement, edit.end
    ids = [*answer.ids[: branch.start], *branch.ids]
    assert (whole + answer.text[at:]).startswith(decode(ids, tokenizer))
    ranges = offsets(ids, tokenizer)
    covered = set()
    for correction in branch.corrections:
        new, old = branch.ids[correction.first : correction.last], answer.ids[correction.start :]
        assert new != list(old[: len(new)]), "it differs from what was sampled"
        covered |= {branch.start + i for i in range(correction.first, correction.last)}
    if len(branch.corrections) == len(changes):
        assert {token for place in places for token in overlapping(*place, ranges)} <= covered


def test_a_correction_below_the_floor_of_confidence_is_left_out() -> None:
    spans = [
        Span(start=3, end=7, label="poor", replacement="dine", confidence=0.1),
        Span(start=11, end=17, label="poor", replacement="Monday", confidence=0.3),
    ]
    feedback = Feedback(critic="c", spans=spans)
    assert [edit.replacement for edit in edits(feedback, TEXT, min_confidence=0.25)] == ["Monday"]
    assert [edit.replacement for edit in edits(feedback, TEXT)] == ["dine", "Monday"]


def test_an_insertion_weighs_as_much_as_it_is_certain() -> None:
    unsure = Omission(text="x", insert_at=2, insertion=" all", confidence=0.1)
    sure = Omission(text="y", severity=0.5, insert_at=17, insertion=" in Rome", confidence=0.8)
    feedback = Feedback(critic="c", omissions=[unsure, sure])
    assert list(edits(feedback, TEXT, min_confidence=0.25)) == [Edit(17, 17, " in Rome", 0.4)]


@pytest.mark.model
@pytest.mark.parametrize("place", [8, 14])
def test_what_is_inserted_where_words_are_deleted_replaces_them(
    smollm2_tokenizer: PreTrainedTokenizerFast, place: int
) -> None:
    answer = written("I saw a purple cat today.", smollm2_tokenizer)
    feedback = Feedback(
        critic="c",
        spans=[Span(start=8, end=14, label="poor", replacement="", severity=0.5)],
        omissions=[Omission(text="size", insert_at=place, insertion="small ")],
    )
    assert list(edits(feedback, answer.text)) == [Edit(8, 14, "small", 1.0)]
