from pathlib import Path

import numpy as np
import pytest
from conftest import byte_level_tokenizer
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers
from transformers import PreTrainedTokenizerFast

from text2grad.models.loading import load_tokenizer
from text2grad.rollout.grammar import build_llguidance_tokenizer, compile_grammar, encode_exactly, end_token_mask


def with_spaces_first(scheme: str) -> PreTrainedTokenizerFast:
    """As SentencePiece has it: a space before every text, bytes for what is not in the vocabulary."""
    pieces = ["<unk>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256)), "▁", *map(chr, range(33, 127))]
    vocabulary = {piece: i for i, piece in enumerate([*pieces, "Go", "▁Go"])}
    backend = Tokenizer(
        models.BPE(vocabulary, [("G", "o"), ("▁", "Go")], unk_token="<unk>", byte_fallback=True, fuse_unk=True)
    )
    if scheme == "prepended":
        backend.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    else:
        backend.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme=scheme, split=False)
    backend.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()])
    return PreTrainedTokenizerFast(tokenizer_object=backend, eos_token="</s>", unk_token="<unk>")


def composing() -> PreTrainedTokenizerFast:
    tokenizer = byte_level_tokenizer()
    tokenizer.backend_tokenizer.normalizer = normalizers.NFC()
    return tokenizer


@pytest.mark.parametrize("text", ["Good: none", 'Go "cafe\u0301"\n', "</s> ends <|im_end|> nothing", "", " x", "\nx"])
@pytest.mark.parametrize("kind", ["plain", "composing", "prepended", "first", "always"])
def test_the_ids_have_exactly_the_bytes_of_the_text_and_none_is_special(kind: str, text: str) -> None:
    others = {"plain": byte_level_tokenizer, "composing": composing}
    tokenizer = others[kind]() if kind in others else with_spaces_first(kind)
    vocabulary = build_llguidance_tokenizer(tokenizer, len(tokenizer))
    ids = encode_exactly(text, tokenizer, vocabulary)
    assert vocabulary.decode_bytes(ids) == text.encode()
    assert not any(map(vocabulary.is_special_token, ids))


def test_a_text_is_encoded_as_in_the_middle_of_another() -> None:
    for scheme in ("prepended", "first", "always"):
        tokenizer = with_spaces_first(scheme)
        ids = encode_exactly("Good", tokenizer, build_llguidance_tokenizer(tokenizer, len(tokenizer)))
        assert tokenizer.convert_ids_to_tokens(ids) == ["Go", "o", "d"]


def test_the_end_token_mask_allows_the_end_token_only(tiny_model: Path) -> None:
    tokenizer = load_tokenizer(tiny_model)
    vocabulary = build_llguidance_tokenizer(tokenizer, len(tokenizer))
    mask = end_token_mask(vocabulary)
    assert len(mask) * 32 >= len(tokenizer)
    bits = np.unpackbits(mask.view(np.uint8), bitorder="little")
    assert np.flatnonzero(bits).tolist() == [tokenizer.eos_token_id]


def test_an_invalid_grammar_is_an_error_and_a_valid_one_matches(tiny_model: Path) -> None:
    tokenizer = load_tokenizer(tiny_model)
    vocabulary = build_llguidance_tokenizer(tokenizer, len(tokenizer))
    (token,) = tokenizer("a")["input_ids"]
    assert compile_grammar(vocabulary, 'start: "a"\n').consume_token(token)
    with pytest.raises(RuntimeError, match="invalid grammar"):
        compile_grammar(vocabulary, "start: missing\n")
