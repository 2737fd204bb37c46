from __future__ import annotations

from pathlib import Path

import pytest
from transformers import PreTrainedTokenizerBase

from text2grad.errors import UserError
from text2grad.models.loading import load_tokenizer
from text2grad.models.prompts import encode_prompt, encode_prompts
from text2grad.schema import Example, Message

LIMITS = {"context": 64, "max_completion_length": 4}


@pytest.fixture
def tokenizer(tiny_model: Path) -> PreTrainedTokenizerBase:
    return load_tokenizer(tiny_model)


def test_a_string_is_one_user_message_and_the_answer_begins_where_it_ends(tokenizer: PreTrainedTokenizerBase) -> None:
    said = Example(id="a", prompt="Hello")
    spelled = Example(id="b", prompt=[Message(role="user", content="Hello")])
    ids = encode_prompt(said, tokenizer)
    assert tokenizer.decode(ids) == "<|im_start|>user\nHello<|im_end|>\n<|im_start|>assistant\n"
    assert encode_prompt(spelled, tokenizer) == ids
    assert tokenizer.decode(encode_prompt(said, tokenizer, plain=True)) == "Hello"


def test_many_prompts_are_encoded_as_each_alone(tokenizer: PreTrainedTokenizerBase) -> None:
    examples = [Example(id=str(i), prompt=text) for i, text in enumerate(["Hello", "a longer one, é", "<|im_end|>"])]
    for plain in (False, True):
        assert encode_prompts(examples, tokenizer, plain, **LIMITS) == [
            encode_prompt(e, tokenizer, plain) for e in examples
        ]


@pytest.mark.parametrize(
    ("prompt", "said"),
    [
        (" ", 'prompt of example "x" is empty'),
        ("long " * 60, 'prompt of example "x" has .* tokens, but at most 60 fit'),
    ],
)
def test_a_prompt_that_does_not_fit_is_refused_by_name(
    tokenizer: PreTrainedTokenizerBase, prompt: str, said: str
) -> None:
    with pytest.raises(UserError, match=said):
        encode_prompts([Example(id="x", prompt=prompt)], tokenizer, plain=False, **LIMITS)


def test_without_a_chat_template_the_remedy_is_named(tokenizer: PreTrainedTokenizerBase) -> None:
    tokenizer.chat_template = None
    with pytest.raises(UserError, match=r"set model\.plain_prompts to true"):
        encode_prompt(Example(id="x", prompt="Hello"), tokenizer)
