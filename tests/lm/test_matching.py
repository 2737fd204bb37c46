from pathlib import Path

import numpy as np
import pytest

from text2grad.lm.matching import compiled, only_the_end, tokens_to_match
from text2grad.models import load_tokenizer


def test_a_text_that_is_over_can_only_end(tiny_model: Path) -> None:
    tokenizer = load_tokenizer(tiny_model)
    vocabulary = tokens_to_match(tokenizer, len(tokenizer))
    mask = only_the_end(vocabulary)
    assert len(mask) * 32 >= len(tokenizer)
    bits = np.unpackbits(mask.view(np.uint8), bitorder="little")
    assert np.flatnonzero(bits).tolist() == [tokenizer.eos_token_id]


def test_a_broken_grammar_is_an_error_and_a_whole_one_matches(tiny_model: Path) -> None:
    tokenizer = load_tokenizer(tiny_model)
    vocabulary = tokens_to_match(tokenizer, len(tokenizer))
    (token,) = tokenizer("a")["input_ids"]
    assert compiled(vocabulary, 'start: "a"\n').consume_token(token)
    with pytest.raises(RuntimeError, match="a grammar is broken"):
        compiled(vocabulary, "start: missing\n")
