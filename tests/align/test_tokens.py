"""Offsets against a brute force that knows each kind of tokenizer only by its vocabulary, byte by byte."""

import gc
import re
import weakref
from collections.abc import Callable

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers
from tokenizers_support import BYTE_TOKENS, SENTENCES, TOKENIZERS, byte_level, sentencepiece, wrap
from transformers import PreTrainedTokenizerFast

from text2grad.align.tokens import decode, offsets, overlapping
from text2grad.align.vocabulary import get_vocabulary, replace_invalid
from text2grad.errors import UserError

Ranges = list[tuple[int, int]]


# --- the brute force: bytes of each token in context, then characters byte by byte ------------------------------------


# Well-formed UTF-8 (the Unicode standard, table 3-7), each sequence also cut short: one match is one decoded character.
CHARACTER = re.compile(
    rb"[\x00-\x7f]|[\xc2-\xdf][\x80-\xbf]?"
    rb"|\xe0(?:[\xa0-\xbf][\x80-\xbf]?)?|\xed(?:[\x80-\x9f][\x80-\xbf]?)?|[\xe1-\xec\xee\xef][\x80-\xbf]{0,2}"
    rb"|\xf0(?:[\x90-\xbf][\x80-\xbf]{0,2})?|\xf4(?:[\x80-\x8f][\x80-\xbf]{0,2})?|[\xf1-\xf3][\x80-\xbf]{0,3}"
    rb"|[\x80-\xff]"
)


def owners(data: bytes) -> tuple[str, list[int]]:
    """The text, and for each byte the index of the character that it belongs to."""
    found = CHARACTER.findall(data)
    text = "".join(character.decode(errors="replace") for character in found)
    assert text == data.decode(errors="replace")
    return text, [index for index, character in enumerate(found) for _ in character]


def byte_level_bytes() -> dict[str, bytes]:
    """How the library's own encoder writes each byte of UTF-8. The bytes that no text has stand for themselves."""
    encoder = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    table = {chr(byte): bytes([byte]) for byte in (0xC0, 0xC1, *range(0xF5, 0x100))}
    points = [*range(0x800), *range(0x800, 0xD800, 64), *range(0xE000, 0x110000, 0x800)]
    for character in map(chr, points):
        ((written, _),) = encoder.pre_tokenize_str(character)
        table |= dict(zip(written, [bytes([byte]) for byte in character.encode()], strict=True))
    assert len(table) == 256
    return table


BYTE_LEVEL_BYTES = byte_level_bytes()


def byte_level_pieces(tokens: list[str]) -> list[bytes]:
    known = BYTE_LEVEL_BYTES.get
    return [b"".join(map(known, token)) if all(map(known, token)) else token.encode() for token in tokens]


def fallback_pieces(tokens: list[str]) -> list[bytes]:
    """A run of byte tokens stands for its bytes where these are valid UTF-8, else each for U+FFFD."""
    result: list[bytes] = []
    for index, token in enumerate(tokens):
        if token not in BYTE_TOKENS:
            result.append(token.replace("▁", " ").encode())
            continue
        start, end = index, index + 1
        while start and tokens[start - 1] in BYTE_TOKENS:
            start -= 1
        while end < len(tokens) and tokens[end] in BYTE_TOKENS:
            end += 1
        run = bytes(BYTE_TOKENS.index(token) for token in tokens[start:end])
        valid = run.decode(errors="ignore").encode() == run
        result.append(bytes([BYTE_TOKENS.index(token)]) if valid else "\ufffd".encode())
    return result


def llama_pieces(tokens: list[str]) -> list[bytes]:
    pieces = fallback_pieces(tokens)
    for index, piece in enumerate(pieces):
        if piece:
            pieces[index] = piece.removeprefix(b" ")
            break
    return pieces


def metaspace_pieces(tokens: list[str]) -> list[bytes]:
    return [token.replace("▁", " " if index else "").encode() for index, token in enumerate(tokens)]


def metaspace_fallback_pieces(tokens: list[str]) -> list[bytes]:
    return fallback_pieces([tokens[0].replace("▁", ""), *tokens[1:]]) if tokens else []


def wordpiece_pieces(tokens: list[str]) -> list[bytes]:
    spelt = [t if not i else t[2:] if t.startswith("##") else f" {t}" for i, t in enumerate(tokens)]
    return [token.encode() for token in spelt]


def cleaned_wordpiece_pieces(tokens: list[str]) -> list[bytes]:
    """The clean-up drops the space before these; every other piece of the vocabulary is as without clean-up."""
    spelt = [piece.decode() for piece in wordpiece_pieces(tokens)]
    return [(piece[1:] if piece in (" .", " ,", " !", " ?") else piece).encode() for piece in spelt]


def spaced_pieces(tokens: list[str]) -> list[bytes]:
    return [f"{' ' if index else ''}{token}".encode() for index, token in enumerate(tokens)]


KINDS: dict[str, tuple[PreTrainedTokenizerFast, Callable[[list[str]], list[bytes]]]] = {
    "byte-level": (TOKENIZERS["byte-level"], byte_level_pieces),
    "llama": (TOKENIZERS["llama"], llama_pieces),
    "gemma": (TOKENIZERS["gemma"], fallback_pieces),
    "metaspace with bytes": (TOKENIZERS["metaspace with bytes"], metaspace_fallback_pieces),
    "unigram": (TOKENIZERS["unigram"], metaspace_pieces),
    "wordpiece": (TOKENIZERS["wordpiece"], wordpiece_pieces),
    "wordpiece, cleaned": (TOKENIZERS["wordpiece, cleaned"], cleaned_wordpiece_pieces),
    "no decoder": (TOKENIZERS["no decoder"], spaced_pieces),
}


def brute_force(
    ids: list[int], tokenizer: PreTrainedTokenizerFast, spell: Callable[[list[str]], list[bytes]]
) -> tuple[str, Ranges]:
    special = {i for i, token in tokenizer.added_tokens_decoder.items() if token.special}
    spelt = iter(spell([tokenizer.convert_ids_to_tokens(i) for i in ids if i not in special]))
    in_context = [b"" if i in special else next(spelt) for i in ids]
    text, owner = owners(b"".join(in_context))
    owner.append(len(text))
    ranges, byte = [], 0
    for piece in in_context:
        touched = owner[byte : byte + len(piece)]
        ranges.append((min(touched), max(touched) + 1) if touched else (owner[byte], owner[byte]))
        byte += len(piece)
    return text, ranges


def vocabulary_ids(tokenizer: PreTrainedTokenizerFast) -> st.SearchStrategy[list[int]]:
    return st.lists(st.sampled_from(sorted(tokenizer.get_vocab().values())), max_size=24)


def assert_exact(ids: list[int], tokenizer: PreTrainedTokenizerFast, spell: Callable[[list[str]], list[bytes]]) -> None:
    text, ranges = brute_force(ids, tokenizer, spell)
    assert decode(ids, tokenizer) == text
    assert offsets(ids, tokenizer) == ranges
    assert tokenizer.decode(ids, skip_special_tokens=True, clean_up_tokenization_spaces=False) == text


@pytest.mark.parametrize("kind", KINDS)
@given(data=st.data())
@settings(max_examples=150, deadline=None)
def test_random_ids_agree_with_the_brute_force_and_with_the_tokenizer(kind, data):
    tokenizer, spell = KINDS[kind]
    assert_exact(data.draw(vocabulary_ids(tokenizer)), tokenizer, spell)


BROKEN = st.lists(st.sampled_from(b"\x20\x41\x80\x9f\xa0\xbf\xc2\xe0\xe4\xed\xef\xf0\xf4\xff"), max_size=4).map(bytes)
VALID = st.sampled_from(["😀", "日", "é", "a\u0301", "\ufffd", " ", "▁"]).map(str.encode)


@st.composite
def byte_by_byte(draw: st.DrawFn, kind: str) -> list[int]:
    """Dense in what random ids seldom hit: valid and broken UTF-8 cut into single bytes, with any tokens in between."""
    vocab = KINDS[kind][0].get_vocab()
    written = {data[0]: token for token, data in BYTE_LEVEL_BYTES.items()} if kind == "byte-level" else BYTE_TOKENS
    others = st.sampled_from(sorted(set(vocab.values()) - {vocab[written[byte]] for byte in range(256)}))
    chunks = draw(st.lists(BROKEN | VALID | others, max_size=8))
    return [i for chunk in chunks for i in ([chunk] if isinstance(chunk, int) else [vocab[written[b]] for b in chunk])]


@pytest.mark.parametrize("kind", ["byte-level", "llama", "gemma", "metaspace with bytes"])
@given(data=st.data())
@settings(max_examples=150, deadline=None)
def test_bytes_one_by_one_between_other_tokens(kind, data):
    assert_exact(data.draw(byte_by_byte(kind)), *KINDS[kind])


@given(st.binary(max_size=12) | st.lists(st.sampled_from(b"\x41\x80\xa0\xbf\xc2\xe0\xed\xf0\xf4\xff")).map(bytes))
def test_replace_invalid_is_the_policy_of_python(data):
    shares = replace_invalid(data)
    assert b"".join(shares).decode() == data.decode(errors="replace")
    assert all(shares)
    assert len(shares) == len(data)


@pytest.mark.parametrize("kind", KINDS)
@given(data=st.data())
@settings(max_examples=50, deadline=None)
def test_starts_never_decrease_and_every_character_is_covered(kind, data):
    tokenizer, _ = KINDS[kind]
    ids = data.draw(vocabulary_ids(tokenizer))
    text, ranges = decode(ids, tokenizer), offsets(ids, tokenizer)
    assert [start for start, _ in ranges] == sorted(start for start, _ in ranges)
    assert {character for start, end in ranges for character in range(start, end)} == set(range(len(text)))


@pytest.mark.parametrize("text", SENTENCES[:4])
def test_own_encodings_agree_with_the_offsets_of_the_library(text):
    tokenizer, _ = KINDS["byte-level"]
    encoding = tokenizer(text, return_offsets_mapping=True)
    assert decode(encoding["input_ids"], tokenizer) == text
    assert offsets(encoding["input_ids"], tokenizer) == encoding["offset_mapping"]


# --- by hand --------------------------------------------------------------------------------------------------------


def byte_ids(tokenizer: PreTrainedTokenizerFast, *tokens: bytes | str) -> list[int]:
    """Ids of single-byte tokens for bytes, of the token itself for strings."""
    written = {data: token for token, data in BYTE_LEVEL_BYTES.items()}
    return [tokenizer.convert_tokens_to_ids(t if isinstance(t, str) else written[t]) for t in tokens]


def test_the_tokens_of_an_emoji_share_its_character():
    tokenizer, _ = KINDS["byte-level"]
    ids = byte_ids(tokenizer, b"a", b"\xf0", b"\x9f", b"\x98", b"\x80", b"b")
    assert decode(ids, tokenizer) == "a😀b"
    assert offsets(ids, tokenizer) == [(0, 1), (1, 2), (1, 2), (1, 2), (1, 2), (2, 3)]


def test_a_combining_mark_is_a_character_of_its_own():
    tokenizer, _ = KINDS["byte-level"]
    ids = byte_ids(tokenizer, b"e", b"\xcc", b"\x81")
    assert decode(ids, tokenizer) == "e\u0301"
    assert offsets(ids, tokenizer) == [(0, 1), (1, 2), (1, 2)]


def test_a_special_token_inside_a_character_has_zero_width_and_does_not_break_it():
    tokenizer, _ = KINDS["byte-level"]
    ids = byte_ids(tokenizer, "<s>", b"a", b"\xc3", "</s>", b"\xa9", "</s>")
    assert decode(ids, tokenizer) == "aé"
    assert offsets(ids, tokenizer) == [(0, 0), (0, 1), (1, 2), (1, 1), (1, 2), (2, 2)]


def test_an_unfinished_character_is_one_replacement_and_an_impossible_byte_another():
    tokenizer, _ = KINDS["byte-level"]
    ids = byte_ids(tokenizer, b"\xe6", b"\x97", b"\xff", b"a", b"\xf0")
    assert decode(ids, tokenizer) == "\ufffd\ufffda\ufffd"
    assert offsets(ids, tokenizer) == [(0, 1), (0, 1), (1, 2), (2, 3), (3, 4)]


def test_a_token_that_ends_one_character_and_begins_another_covers_both():
    backend = Tokenizer(models.BPE(vocab={"Ã": 0, "©Ã": 1, "¨": 2}, merges=[]))  # é and è, cut as c3 | a9 c3 | a8
    backend.decoder = decoders.ByteLevel()
    assert decode([0, 1, 2], wrap(backend)) == "éè"
    assert offsets([0, 1, 2], wrap(backend)) == [(0, 1), (0, 2), (1, 2)]


def test_llama_strips_one_space_of_the_whole_text():
    tokenizer, _ = KINDS["llama"]
    ids = tokenizer.convert_tokens_to_ids(["<s>", "▁", "▁the", "<0x0A>", "▁the"])
    assert decode(ids, tokenizer) == " the\n the"
    assert offsets(ids, tokenizer) == [(0, 0), (0, 0), (0, 4), (4, 5), (5, 9)]


def test_no_more_is_stripped_than_the_decoder_says():
    llama_tokenizer, _ = KINDS["llama"]
    double = llama_tokenizer.convert_tokens_to_ids(["▁▁", "▁the"])
    assert decode(double, llama_tokenizer) == "  the"
    assert offsets(double, llama_tokenizer) == [(0, 1), (1, 5)]
    two = sentencepiece(decoders.Sequence([decoders.Replace("▁", " "), decoders.Fuse(), decoders.Strip(" ", 2, 0)]))
    single = two.convert_tokens_to_ids(["▁", "▁", "▁", "▁the"])
    assert decode(single, two) == "  the"
    assert offsets(single, two) == [(0, 0), (0, 0), (0, 1), (1, 5)]


def test_byte_tokens_that_are_not_valid_together_are_replaced_one_by_one():
    tokenizer, _ = KINDS["gemma"]
    ids = tokenizer.convert_tokens_to_ids(["<0xC3>", "<0xA9>", "e", "<0xC3>", "<0xA9>", "<0x41>", "<0xFF>"])
    assert decode(ids, tokenizer) == "ée\ufffd\ufffd\ufffd\ufffd"
    assert offsets(ids, tokenizer) == [(0, 1), (0, 1), (1, 2), (2, 3), (3, 4), (4, 5), (5, 6)]


def test_wordpiece_adds_a_space_before_a_word_but_not_before_its_rest():
    backend = Tokenizer(models.WordPiece({"[UNK]": 0, "play": 1, "##ing": 2, "the": 3}, unk_token="[UNK]"))
    backend.decoder = decoders.WordPiece()
    assert decode([3, 1, 2], wrap(backend)) == "the playing"
    assert offsets([3, 1, 2], wrap(backend)) == [(0, 3), (3, 8), (8, 11)]


def test_no_ids_no_text():
    assert all((decode([], tokenizer), offsets([], tokenizer)) == ("", []) for tokenizer, _ in KINDS.values())


@pytest.mark.parametrize("kind", KINDS)
def test_ids_may_be_an_array_of_numpy(kind):
    tokenizer, _ = KINDS[kind]
    ids = list(tokenizer.get_vocab().values())
    assert offsets(np.array(ids), tokenizer) == offsets(ids, tokenizer)
    assert decode(np.array(ids), tokenizer) == decode(ids, tokenizer)


def test_ids_may_not_be_tensors():
    tokenizer = byte_level()
    ids = byte_ids(tokenizer, b"a", b"b")
    with pytest.raises(TypeError, match="call tolist"):
        offsets(torch.tensor(ids), tokenizer)


def test_special_tokens_added_after_the_first_use_are_skipped():
    tokenizer = byte_level()
    ids = byte_ids(tokenizer, b"a")
    assert decode(ids, tokenizer) == "a"
    tokenizer.add_special_tokens({"pad_token": "<pad>"})
    assert decode([*ids, tokenizer.pad_token_id], tokenizer) == "a"


def test_the_vocabulary_is_freed_with_its_tokenizer():
    tokenizer = byte_level()
    decode(byte_ids(tokenizer, b"a"), tokenizer)
    gone = weakref.ref(get_vocabulary(tokenizer))
    del tokenizer
    gc.collect()
    assert gone() is None


@pytest.mark.parametrize("wrong", [-100, 2**40])
def test_an_invalid_id_is_named(wrong):
    with pytest.raises(UserError, match=f"{wrong} is not a token id"):
        offsets([5, wrong], KINDS["byte-level"][0])


@pytest.mark.parametrize("kind", KINDS)
def test_an_id_beyond_the_vocabulary_decodes_to_nothing(kind):
    tokenizer = KINDS[kind][0]
    ids = tokenizer("a b", add_special_tokens=False)["input_ids"]
    spare = [len(tokenizer) + 7, *ids[:1], len(tokenizer), *ids[1:]]
    assert decode(spare, tokenizer) == decode(ids, tokenizer) == tokenizer.decode(spare)
    places = offsets(spare, tokenizer)
    assert [place for i, place in enumerate(places) if i not in (0, 2)] == offsets(ids, tokenizer)
    assert all(start == end for start, end in (places[0], places[2]))


@pytest.mark.parametrize(
    ("decoder", "named"),
    [
        (decoders.CTC(), "CTC"),
        (decoders.Sequence([decoders.Replace("▁", " "), decoders.Strip(" ", 1, 0)]), "Replace, Strip"),
        (decoders.Sequence([decoders.Fuse(), decoders.Strip(" ", 0, 1)]), "Fuse, Strip"),
    ],
)
def test_an_unsupported_decoder_is_named(decoder, named):
    backend = Tokenizer(models.WordLevel({"a": 0}, unk_token="a"))
    backend.decoder = decoder
    with pytest.raises(UserError, match=rf"decodes by \[{named}\]"):
        offsets([0], wrap(backend))


def test_a_tokenizer_of_another_library_is_rejected():
    with pytest.raises(UserError, match="not backed by the `tokenizers` library"):
        offsets([0], type("SlowTokenizer", (), {})())


def test_a_pattern_can_be_replaced():
    backend = Tokenizer(models.WordLevel({"a__b": 0, "__": 1}, unk_token="__"))
    backend.decoder = decoders.Replace(Regex("_+"), " ")
    assert decode([0, 1, 0], wrap(backend)) == "a b a b"
    assert offsets([0, 1, 0], wrap(backend)) == [(0, 3), (3, 4), (4, 7)]


# --- spans ----------------------------------------------------------------------------------------------------------


def test_overlapping_takes_every_token_that_shares_a_character():
    ranges = [(0, 3), (3, 4), (3, 4), (4, 8), (8, 8)]  # "one😀four", the emoji in two tokens, the end token
    assert overlapping(0, 3, ranges) == [0]
    assert overlapping(2, 5, ranges) == [0, 1, 2, 3]
    assert overlapping(3, 4, ranges) == [1, 2]
    assert overlapping(5, 6, ranges) == [3]
    assert overlapping(7, 20, ranges) == [3]
    assert overlapping(8, 9, ranges) == []
    assert overlapping(5, 5, ranges) == []


@given(data=st.data())
@settings(max_examples=300, deadline=None)
def test_overlapping_agrees_with_sets_of_characters(data):
    tokenizer, _ = KINDS["byte-level"]
    ids = data.draw(byte_by_byte("byte-level"))
    text, ranges = decode(ids, tokenizer), offsets(ids, tokenizer)
    start, end = data.draw(st.tuples(st.integers(0, len(text)), st.integers(0, len(text) + 1)))
    span = set(range(start, end))
    assert overlapping(start, end, ranges) == [i for i, token in enumerate(ranges) if span & set(range(*token))]


# --- the default model's tokenizer ----------------------------------------------------------------------------------


@pytest.mark.model
def test_random_ids_of_the_default_tokenizer(smollm2_tokenizer):
    strategy = vocabulary_ids(smollm2_tokenizer) | st.lists(
        st.integers(0, 300), max_size=24
    )  # most bytes are below 300

    @given(strategy)
    @settings(max_examples=300, deadline=None)
    def check(ids):
        assert_exact(ids, smollm2_tokenizer, byte_level_pieces)

    check()


@pytest.mark.model
def test_the_whole_vocabulary_of_the_default_tokenizer(smollm2_tokenizer):
    assert_exact(list(range(len(smollm2_tokenizer))), smollm2_tokenizer, byte_level_pieces)


@pytest.mark.model
def test_the_default_tokenizer_gives_back_what_it_encoded(smollm2_tokenizer):
    text = "\n".join(SENTENCES)
    assert decode(smollm2_tokenizer(text)["input_ids"], smollm2_tokenizer) == text
