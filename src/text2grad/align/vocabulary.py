"""The bytes that each token id adds to the decoded text, according to the tokenizer's own decoder.

Most tokens always add the same whole characters. Three things depend on the context: a *partial* token holds only some
bytes of a character (a third of an emoji, a byte-fallback token), and they may be invalid next to its neighbours; the
first token may decode differently; and the text may be stripped at its start. Special tokens add nothing, and the bytes
before and after one are adjacent.
"""

from __future__ import annotations

import json
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from itertools import accumulate, compress, count, groupby, pairwise
from numbers import Integral
from operator import itemgetter
from typing import TYPE_CHECKING, Any, TypeVar
from weakref import WeakKeyDictionary

from tokenizers import Tokenizer

from text2grad.errors import UserError

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

Step = dict[str, Any]  # a step of a decoder, as in tokenizer.json
T = TypeVar("T")

REPLACEMENT = "\N{REPLACEMENT CHARACTER}".encode()
_BYTE_TOKEN = re.compile(r"<0x([0-9A-Fa-f]{2})>")
# Replace, Metaspace and WordPiece decode each token by itself, except the first; ByteFallback joins runs of bytes;
# after Fuse the text is one string, and Strip strips its start.
_TOKEN_STEPS = ("Replace", "Metaspace", "WordPiece")
_TEXT_STEPS = re.compile(rf"(({'|'.join(_TOKEN_STEPS)}) )*(ByteFallback )?(Fuse (Strip )*)?")


def get_vocabulary(tokenizer: PreTrainedTokenizerBase) -> Vocabulary:
    """Return the tokenizer's Vocabulary, built on first use; a used token that becomes special later is not noticed."""
    cached = _VOCABULARIES.get(tokenizer)
    if cached is None:
        cached = _VOCABULARIES[tokenizer] = _build(tokenizer)
    return cached


class Vocabulary(ABC):
    """The bytes that token ids add to the text; concatenated, they are the text in UTF-8.

    `token_bytes` and `char_counts` fill the tables for new ids; the other methods expect ids that are in the tables.
    """

    def __init__(self, tokenizer: PreTrainedTokenizerBase) -> None:
        # Not the tokenizer itself: a reference to the weak key would keep its entry in `_VOCABULARIES` alive.
        self._backend: Tokenizer = tokenizer.backend_tokenizer
        self._token_bytes: dict[int, bytes] = {}
        self._char_counts: dict[int, int] = {}
        self._special: set[int] = set()
        self._partial: set[int] = set()
        self._starting_inside: set[int] = set()

    @abstractmethod
    def _decode_token(self, token: str) -> tuple[bytes, bool]:
        """Return what the token adds anywhere but at the start, and whether it is partial."""

    @abstractmethod
    def overrides(self, ids: Sequence[int]) -> dict[int, bytes]:
        """Map the indices of tokens that add other bytes in this context than `token_bytes` to those bytes."""

    def is_context_free(self, ids: Sequence[int]) -> bool:
        """Whether no token depends on its context: `overrides` and `starting_inside_char` are empty."""
        return self._partial.isdisjoint(ids)

    def token_bytes(self, ids: Sequence[int]) -> tuple[bytes, ...]:
        """Return what each token adds, `overrides` aside."""
        return self._look_up(self._token_bytes, ids)

    def char_counts(self, ids: Sequence[int]) -> tuple[int, ...]:
        """Return how many characters start in the bytes of each token, `overrides` aside."""
        return self._look_up(self._char_counts, ids)

    def starting_inside_char(self, ids: Sequence[int], overrides: dict[int, bytes]) -> Iterable[int]:
        """Return the indices, in order, of the tokens whose bytes start inside a character, given `overrides`."""
        indices = compress(count(), map(self._starting_inside.__contains__, ids))
        if not overrides:
            return indices
        return sorted({*indices} - overrides.keys() | {i for i, data in overrides.items() if starts_inside_char(data)})

    def _look_up(self, table: dict[int, T], ids: Sequence[int]) -> tuple[T, ...]:
        try:
            return _values(table, ids)
        except KeyError:
            for token_id in set(ids).difference(table):
                self._add(token_id)
            return _values(table, ids)

    def _add(self, token_id: int) -> None:
        token = self._token(token_id)
        shown, hidden = (self._backend.decode([token_id], skip_special_tokens=skip) for skip in (False, True))
        if token is None or shown != hidden:
            self._special.add(token_id)
            data = b""
        else:
            data, is_partial = self._decode_token(token)
            if is_partial:
                self._partial.add(token_id)
        if starts_inside_char(data):
            self._starting_inside.add(token_id)
        # The tables last: as soon as they have the id, another thread may use it.
        self._token_bytes[token_id] = data
        self._char_counts[token_id] = count_chars(data)

    def _token(self, token_id: int) -> str | None:
        """Return the token; None for ids beyond the vocabulary, with which many models pad their output layer."""
        if not isinstance(token_id, Integral):
            raise TypeError(f"token ids are integers, not {type(token_id).__name__}: call tolist() first")
        try:
            token: str | None = self._backend.id_to_token(token_id)
        except OverflowError as error:
            raise UserError(f"{token_id} is not a token id: it is negative or exceeds 32 bits") from error
        return token


class ByteLevelVocabulary(Vocabulary):
    """Every token is a string of bytes (GPT-2, Llama 3, Qwen, SmolLM2)."""

    def _decode_token(self, token: str) -> tuple[bytes, bool]:
        try:
            data = bytes(_BYTE_OF[character] for character in token)
        except KeyError:  # a token that was added as plain text
            data = token.encode()
        return data, not _is_valid(data)

    def overrides(self, ids: Sequence[int]) -> dict[int, bytes]:
        """Replace the bytes of partial tokens that are not valid next to their neighbours."""
        token_bytes = self.token_bytes(ids)
        data = b"".join(token_bytes)
        if _is_valid(data):
            return {}
        replaced = replace_invalid(data)
        spans = enumerate(pairwise(accumulate(map(len, token_bytes), initial=0)))
        return {index: b"".join(replaced[start:end]) for index, (start, end) in spans if ids[index] in self._partial}


class PieceVocabulary(Vocabulary):
    """Every token is a string of characters, or one byte (SentencePiece with byte fallback, WordPiece)."""

    def __init__(
        self,
        tokenizer: PreTrainedTokenizerBase,
        join: Callable[[list[str]], str],
        byte_fallback: bool = False,
        strips: Sequence[tuple[str, int]] = (),
    ) -> None:
        """join: decodes all but byte tokens; strips: (character, maximum count) to strip from the start of the text."""
        super().__init__(tokenizer)
        self._join, self._byte_fallback, self._strips = join, byte_fallback, strips

    def _decode_token(self, token: str) -> tuple[bytes, bool]:
        text = self._join(["", token])
        byte = _BYTE_TOKEN.fullmatch(text) if self._byte_fallback else None
        return (bytes.fromhex(byte[1]), True) if byte else (text.encode(), False)

    def is_context_free(self, ids: Sequence[int]) -> bool:
        """Whether there is no first token, which may decode differently or be stripped."""
        return len(ids) == 0

    def overrides(self, ids: Sequence[int]) -> dict[int, bytes]:
        """Decode the first token as the first, strip the start of the text, and replace invalid runs of bytes."""
        visible = [index for index, token_id in enumerate(ids) if token_id not in self._special]
        overrides = {} if self._partial.isdisjoint(ids) else self._replace_invalid_runs(ids, visible)
        if visible and ids[visible[0]] not in self._partial:
            overrides[visible[0]] = self._join([self._token(ids[visible[0]]) or ""]).encode()
        for character, max_count in self._strips:
            self._strip_start(ids, visible, overrides, character.encode(), max_count)
        return overrides

    def _replace_invalid_runs(self, ids: Sequence[int], visible: list[int]) -> dict[int, bytes]:
        """Byte fallback is strict: if a run of byte tokens is not valid UTF-8, each of its bytes is replaced."""
        replaced: dict[int, bytes] = {}
        for is_partial, run in groupby(visible, key=lambda index: ids[index] in self._partial):
            members = list(run)
            if is_partial and not _is_valid(b"".join(self._token_bytes[ids[index]] for index in members)):
                replaced |= dict.fromkeys(members, REPLACEMENT)
        return replaced

    def _strip_start(
        self, ids: Sequence[int], visible: list[int], overrides: dict[int, bytes], character: bytes, max_count: int
    ) -> None:
        for index in visible:
            data = overrides.get(index, self._token_bytes[ids[index]])
            stripped = min(max_count, len(data) - len(data.lstrip(character)))
            overrides[index] = data[stripped:]
            max_count -= stripped
            if overrides[index] or not max_count:
                break


def _values(table: dict[int, T], ids: Sequence[int]) -> tuple[T, ...]:
    if len(ids) < 2:
        return tuple(table[token_id] for token_id in ids)
    values: tuple[T, ...] = itemgetter(*ids)(table)  # the fastest way to look up many keys
    return values


_VOCABULARIES: WeakKeyDictionary[PreTrainedTokenizerBase, Vocabulary] = WeakKeyDictionary()


def _build(tokenizer: PreTrainedTokenizerBase) -> Vocabulary:
    name = getattr(tokenizer, "name_or_path", "") or type(tokenizer).__name__
    if not hasattr(tokenizer, "backend_tokenizer"):
        raise UserError(f"{name} is not backed by the `tokenizers` library; load it from a tokenizer.json instead")
    decoder = tokenizer.backend_tokenizer.decoder
    if decoder is None:
        return PieceVocabulary(tokenizer, " ".join)
    steps = _flatten(json.loads(decoder.__getstate__()))
    types = [step["type"] for step in steps]
    if types == ["ByteLevel"]:
        return ByteLevelVocabulary(tokenizer)
    strips = [step for step in steps if step["type"] == "Strip"]
    # a Strip may strip only the start of the text, and only ASCII, which no two tokens share
    strips_start = all(strip["stop"] == 0 and strip["content"].isascii() for strip in strips)
    if not strips_start or not _TEXT_STEPS.fullmatch("".join(f"{each} " for each in types)):
        raise UserError(
            f"{name} decodes by [{', '.join(types)}], which cannot be followed token by token; "
            "use a byte-level, SentencePiece or WordPiece tokenizer"
        )
    join = _decoder([step for step in steps if step["type"] in _TOKEN_STEPS]).decode
    return PieceVocabulary(
        tokenizer, join, "ByteFallback" in types, [(step["content"], step["start"]) for step in strips]
    )


def _flatten(step: Step) -> list[Step]:
    if step["type"] != "Sequence":
        return [step]
    return [inner for outer in step["decoders"] for inner in _flatten(outer)]


def _decoder(steps: list[Step]) -> Any:
    """Build a decoder of these steps alone; `tokenizers` parses one only as a part of a whole tokenizer."""
    model = {"type": "WordLevel", "vocab": {}, "unk_token": ""}
    whole = {"version": "1.0", "added_tokens": [], "model": model, "decoder": {"type": "Sequence", "decoders": steps}}
    return Tokenizer.from_str(json.dumps(whole)).decoder


def _byte_alphabet() -> dict[str, int]:
    """Map the characters of byte-level vocabularies to bytes: visible ones to themselves, the rest from U+0100."""
    visible = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    hidden = sorted(set(range(0x100)) - set(visible))
    return {chr(byte): byte for byte in visible} | {chr(0x100 + n): byte for n, byte in enumerate(hidden)}


_BYTE_OF = _byte_alphabet()


def count_chars(data: bytes) -> int:
    """Count the characters that start in some bytes of UTF-8."""
    return sum(byte & 0xC0 != 0x80 for byte in data)


def starts_inside_char(data: bytes) -> bool:
    """Whether the first byte continues a character of UTF-8."""
    return bool(data) and data[0] & 0xC0 == 0x80


def replace_invalid(data: bytes) -> list[bytes]:
    """Return, per byte of `data`, its part of `data.decode("utf-8", "replace").encode()`.

    Decoding replaces each maximal subpart (the longest start of a valid character, of one to three bytes, or else a
    single byte) by one U+FFFD of three bytes. The last byte of a subpart gets the bytes that the others leave.
    """
    parts: list[bytes] = []
    while True:
        try:
            data.decode()
        except UnicodeDecodeError as error:
            width = error.end - error.start
            parts += [*_bytes(data[: error.start]), *_bytes(REPLACEMENT[: width - 1]), REPLACEMENT[width - 1 :]]
            data = data[error.end :]
        else:
            return parts + _bytes(data)


def _bytes(data: bytes) -> list[bytes]:
    return [data[index : index + 1] for index in range(len(data))]


def _is_valid(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True
