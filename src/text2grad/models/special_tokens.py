"""Untrusted text to token ids: a special token that a text spells out, such as "<|im_end|>", stays plain text.

Prompts, completions and comments are data. If "<|im_end|>" in them became the id that ends a turn, whoever wrote them
could end the turn and speak for somebody else. Only the chat template's own special tokens become special ids. The ids
of texts that spell none are those of the tokenizer and of `apply_chat_template`.

Special are the tokens that the tokenizer declares special. Other added tokens (Qwen's "<think>") are ordinary text.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Sequence
from copy import copy
from functools import cached_property
from typing import Any
from weakref import WeakKeyDictionary

from tokenizers import AddedToken, Tokenizer
from transformers import PreTrainedTokenizerBase

from text2grad.errors import UserError
from text2grad.schema import Range

Conversation = list[dict[str, Any]]  # messages with role and content


def encode_texts(
    texts: Sequence[str], tokenizer: PreTrainedTokenizerBase, add_special_tokens: bool = False
) -> list[list[int]]:
    """Return the ids of plain texts. add_special_tokens: with the tokenizer's own begin and end tokens."""
    encoded: Any = tokenizer(
        list(texts),
        add_special_tokens=add_special_tokens,
        split_special_tokens=True,
        return_special_tokens_mask=add_special_tokens,
    )
    special_tokens = _get_special_tokens(tokenizer)
    if not special_tokens.spelled:
        return list(encoded["input_ids"])
    masks = encoded["special_tokens_mask"] if add_special_tokens else [[0] * len(ids) for ids in encoded["input_ids"]]
    return [
        [
            piece
            for token_id, is_added in zip(ids, mask, strict=True)
            for piece in ([token_id] if is_added else special_tokens.respell(token_id))
        ]
        for ids, mask in zip(encoded["input_ids"], masks, strict=True)
    ]


def encode_with_offsets(
    texts: Sequence[str], tokenizer: PreTrainedTokenizerBase
) -> list[tuple[list[int], list[Range]]]:
    """Return the ids of plain texts, and the characters that each id covers."""
    encoded: Any = tokenizer(
        list(texts), add_special_tokens=False, split_special_tokens=True, return_offsets_mapping=True
    )
    special_tokens = _get_special_tokens(tokenizer)
    rows = []
    for ids, offsets in zip(encoded["input_ids"], encoded["offset_mapping"], strict=True):
        if special_tokens.spelled.keys().isdisjoint(ids):
            rows.append((list(ids), [(start, end) for start, end in offsets]))
            continue
        respelled = [
            (piece, (start + (end - start) * i // len(pieces), start + (end - start) * (i + 1) // len(pieces)))
            for token_id, (start, end) in zip(ids, offsets, strict=True)
            for pieces in [special_tokens.respell(token_id)]
            for i, piece in enumerate(pieces)
        ]
        rows.append(([piece for piece, _ in respelled], [place for _, place in respelled]))
    return rows


def encode_chats(conversations: Sequence[Conversation], tokenizer: PreTrainedTokenizerBase) -> list[list[int]]:
    """Return the ids of conversations up to where the next answer begins, through the tokenizer's chat template."""
    special_tokens = _get_special_tokens(tokenizer)
    ordinary = [i for i, messages in enumerate(conversations) if not special_tokens.may_be_in(messages)]
    ids: dict[int, list[int]] = {}
    if ordinary:
        # All at once: the tokenizer parallelises over them.
        encoded: Any = tokenizer.apply_chat_template(
            [conversations[i] for i in ordinary], add_generation_prompt=True, tokenize=True, return_dict=False
        )
        ids = dict(zip(ordinary, encoded, strict=True))
    return [
        ids[i] if i in ids else special_tokens.encode_chat(messages, tokenizer)
        for i, messages in enumerate(conversations)
    ]


class SpecialTokens:
    """The special tokens of one tokenizer, and how to encode texts that spell them.

    spelled: those that the tokenizer's model finds in plain text; Unigram models do that with their end token.
    """

    def __init__(self, tokenizer: PreTrainedTokenizerBase) -> None:
        if not hasattr(tokenizer, "backend_tokenizer"):
            raise UserError(
                f'the tokenizer of model "{tokenizer.name_or_path}" is not backed by the `tokenizers` library; load it '
                f"from a tokenizer.json instead"
            )
        self._backend: Tokenizer = tokenizer.backend_tokenizer
        added: dict[int, AddedToken] = tokenizer.added_tokens_decoder
        self._tokens = {token.content: (token_id, token) for token_id, token in added.items() if token.special}
        longest_first = sorted(self._tokens, key=len, reverse=True)
        self._pattern = re.compile("|".join(map(re.escape, longest_first)) or r"(?!)")
        model = self._backend.model
        self.spelled = {
            token_id: content
            for content, (token_id, _) in self._tokens.items()
            # Characters that the tokenizer does not know become the unknown token as well: that one is no control.
            if token_id != tokenizer.unk_token_id and [token.id for token in model.tokenize(content)] == [token_id]
        }
        # A special token may also match what the normaliser makes of the text, "<S>" for instance.
        self._always = bool(self.spelled) or any(token.normalized for _, token in self._tokens.values())
        self._nonce = secrets.token_hex(8)

    def may_be_in(self, messages: Conversation) -> bool:
        """Return whether the tokenizer might read a special token in a message."""
        return self._always or any(self._pattern.search(message["content"]) for message in messages)

    def respell(self, token_id: int) -> list[int]:
        """Return the ids of a spelled token's characters; any other id alone."""
        if token_id not in self.spelled:
            return [token_id]
        model = self._backend.model
        return [token.id for char in self.spelled[token_id] for token in model.tokenize(char)]

    def encode_chat(self, messages: Conversation, tokenizer: PreTrainedTokenizerBase) -> list[int]:
        """Render the chat template while stand-ins hide the special tokens of the messages, then encode the whole."""
        spelled_out: list[str] = []

        def hide(match: re.Match[str]) -> str:
            spelled_out.append(match[0])
            return f"\ue002{self._nonce}:{len(spelled_out) - 1}\ue003"

        hidden = [message | {"content": self._pattern.sub(hide, message["content"])} for message in messages]
        rendered: Any = tokenizer.apply_chat_template(hidden, add_generation_prompt=True, tokenize=False)
        marked = self._pattern.sub(lambda match: self._marker(match[0]), rendered)
        text = re.sub(f"\ue002{self._nonce}:(\\d+)\ue003", lambda match: spelled_out[int(match[1])], marked)
        ids = self._marker_backend.encode(text, add_special_tokens=False).ids
        return [
            piece
            for token_id in ids
            for piece in ([self._marked[token_id]] if token_id in self._marked else self.respell(token_id))
        ]

    def _marker(self, content: str) -> str:
        return f"\ue000{self._nonce}:{self._tokens[content][0]}\ue001"

    @cached_property
    def _marker_backend(self) -> Tokenizer:
        """A copy of the tokenizer in which special tokens are text, and markers that nobody can guess are tokens."""
        backend = copy(self._backend)
        backend.no_padding()
        backend.no_truncation()
        backend.encode_special_tokens = True
        backend.add_tokens(
            [
                AddedToken(
                    self._marker(content),
                    single_word=token.single_word,
                    lstrip=token.lstrip,
                    rstrip=token.rstrip,
                    normalized=False,
                    special=False,
                )
                for content, (_, token) in self._tokens.items()
            ]
        )
        return backend

    @cached_property
    def _marked(self) -> dict[int, int]:
        """From the ids of the markers to those of the special tokens."""
        return {
            int(self._marker_backend.token_to_id(self._marker(content)) or 0): token_id
            for content, (token_id, _) in self._tokens.items()
        }


_SPECIAL_TOKENS: WeakKeyDictionary[PreTrainedTokenizerBase, SpecialTokens] = WeakKeyDictionary()


def _get_special_tokens(tokenizer: PreTrainedTokenizerBase) -> SpecialTokens:
    """Return the tokenizer's SpecialTokens, built on first use; a token that is added later is not noticed."""
    cached = _SPECIAL_TOKENS.get(tokenizer)
    if cached is None:
        cached = _SPECIAL_TOKENS[tokenizer] = SpecialTokens(tokenizer)
    return cached
