"""What each token adds to the decoded text, in bytes, as the tokenizer's own decoder has it.

Most tokens always add the same whole characters. Three things depend on the neighbours: a *loose* token holds only a
part of a character (a third of an emoji, a byte-fallback token) and may turn out to be invalid; the first token may be
written differently; and the text may be stripped at its start. Special tokens add nothing and part nobody: the bytes
on either side of one are neighbours.
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

Step = dict[str, Any]  # of a decoder, as in tokenizer.json
T = TypeVar("T")

REPLACEMENT = "\N{REPLACEMENT CHARACTER}".encode()
_BYTE_TOKEN = re.compile(r"<0x([0-9A-Fa-f]{2})>")
# Replace, Metaspace and WordPiece treat each token by itself, but for the first; ByteFallback joins runs of bytes;
# after Fuse the text is one string, of which Strip cuts the start.
_TOKEN_STEPS = ("Replace", "Metaspace", "WordPiece")
_TEXT_STEPS = re.compile(rf"(({'|'.join(_TOKEN_STEPS)}) )*(ByteFallback )?(Fuse (Strip )*)?")


def vocabulary(tokenizer: PreTrainedTokenizerBase) -> Vocabulary:
    """The tokenizer's Vocabulary, made on first use. A known token that turns special after that is not noticed."""
    known = _VOCABULARIES.get(tokenizer)
    if known is None:
        known = _VOCABULARIES[tokenizer] = _read(tokenizer)
    return known


class Vocabulary(ABC):
    """The bytes that token ids add to the text: their tiles, which put together are the text in UTF-8.

    Ids are learnt when `tiles` or `begun` is first asked for them; the other methods are for ids that have been.
    """

    def __init__(self, tokenizer: PreTrainedTokenizerBase) -> None:
        # Not the tokenizer itself: a reference to the key would keep its entry in `_VOCABULARIES` for ever.
        self._backend: Tokenizer = tokenizer.backend_tokenizer
        self._tiles: dict[int, bytes] = {}
        self._begun: dict[int, int] = {}
        self._special: set[int] = set()
        self._loose: set[int] = set()
        self._continuing: set[int] = set()

    @abstractmethod
    def _spell(self, token: str) -> str | bytes:
        """What the token adds anywhere but at the start: characters, or bytes where it is loose."""

    @abstractmethod
    def is_plain(self, ids: Sequence[int]) -> bool:
        """Whether no token depends on its neighbours: there are no `changes`, and none is `continuing`."""

    @abstractmethod
    def changes(self, ids: Sequence[int]) -> dict[int, bytes]:
        """Index -> tile of the tokens that add something else in this context than `tiles` has."""

    def tiles(self, ids: Sequence[int]) -> tuple[bytes, ...]:
        """What each token adds, but for `changes`."""
        return self._look_up(self._tiles, ids)

    def begun(self, ids: Sequence[int]) -> tuple[int, ...]:
        """How many characters begin in each of `tiles`."""
        return self._look_up(self._begun, ids)

    def continuing(self, ids: Sequence[int], changes: dict[int, bytes]) -> Iterable[int]:
        """Indices, in order, of the tokens that begin inside a character, `changes` being made."""
        usual = compress(count(), map(self._continuing.__contains__, ids))
        if not changes:
            return usual
        return sorted({*usual} - changes.keys() | {index for index, tile in changes.items() if continues(tile)})

    def _look_up(self, table: dict[int, T], ids: Sequence[int]) -> tuple[T, ...]:
        try:
            return _values(table, ids)
        except KeyError:
            for token_id in set(ids).difference(table):
                self._learn(token_id)
            return _values(table, ids)

    def _learn(self, token_id: int) -> None:
        token = self._token(token_id)
        shown, hidden = (self._backend.decode([token_id], skip_special_tokens=skip) for skip in (False, True))
        if token is None or shown != hidden:
            self._special.add(token_id)
            tile = b""
        else:
            piece = self._spell(token)
            if isinstance(piece, bytes):
                self._loose.add(token_id)
            tile = piece if isinstance(piece, bytes) else piece.encode()
        if continues(tile):
            self._continuing.add(token_id)
        # Last, because an id in the tables counts as learnt: another thread may look it up at once.
        self._tiles[token_id] = tile
        self._begun[token_id] = characters_begun(tile)

    def _token(self, token_id: int) -> str | None:
        """None for the ids that many models have on top of their tokenizer's, to fill their output layer up: whoever
        samples one has said nothing.
        """
        if not isinstance(token_id, Integral):
            raise TypeError(f"token ids are integers, not {type(token_id).__name__}: call tolist() first")
        try:
            token: str | None = self._backend.id_to_token(token_id)
        except OverflowError as error:
            raise UserError(f"{token_id} is no token id: it is negative, or beyond 32 bits") from error
        return token


class ByteLevel(Vocabulary):
    """Every token is a string of bytes (GPT-2, Llama 3, Qwen, SmolLM2)."""

    def _spell(self, token: str) -> str | bytes:
        if all(character in _BYTE_OF for character in token):
            data = bytes(_BYTE_OF[character] for character in token)
        else:  # a token that was added as plain text
            data = token.encode()
        try:
            return data.decode()
        except UnicodeDecodeError:
            return data

    def is_plain(self, ids: Sequence[int]) -> bool:
        return self._loose.isdisjoint(ids)

    def changes(self, ids: Sequence[int]) -> dict[int, bytes]:
        tiles = self.tiles(ids)
        data = b"".join(tiles)
        if _is_valid(data):
            return {}
        mended = replace_invalid(data)
        starts = accumulate(map(len, tiles), initial=0)
        spans = enumerate(pairwise(starts))
        return {index: b"".join(mended[start:end]) for index, (start, end) in spans if ids[index] in self._loose}


class Pieces(Vocabulary):
    """Every token is a string of characters, or stands for one byte (SentencePiece with byte fallback, WordPiece)."""

    def __init__(
        self,
        tokenizer: PreTrainedTokenizerBase,
        join: Callable[[list[str]], str],
        byte_fallback: bool = False,
        strips: Sequence[tuple[str, int]] = (),
    ) -> None:
        """`join` decodes all but byte tokens; `strips`: (character, how many of it at most) to cut off the start."""
        super().__init__(tokenizer)
        self._join, self._byte_fallback, self._strips = join, byte_fallback, strips

    def _spell(self, token: str) -> str | bytes:
        text = self._join(["", token])
        byte = _BYTE_TOKEN.fullmatch(text) if self._byte_fallback else None
        return bytes.fromhex(byte[1]) if byte else text

    def is_plain(self, ids: Sequence[int]) -> bool:
        return len(ids) == 0  # the first token may be written differently, or be stripped

    def changes(self, ids: Sequence[int]) -> dict[int, bytes]:
        visible = [index for index, token_id in enumerate(ids) if token_id not in self._special]
        changed = {} if self._loose.isdisjoint(ids) else self._mended(ids, visible)
        if visible and ids[visible[0]] not in self._loose:
            changed[visible[0]] = self._join([self._token(ids[visible[0]]) or ""]).encode()
        for character, at_most in self._strips:
            changed |= self._stripped(ids, visible, changed, character.encode(), at_most)
        return changed

    def _mended(self, ids: Sequence[int], visible: list[int]) -> dict[int, bytes]:
        """Byte fallback is strict: bytes that are not valid together are replaced one by one, all of them."""
        mended: dict[int, bytes] = {}
        for loose, run in groupby(visible, key=lambda index: ids[index] in self._loose):
            members = list(run)
            if loose and not _is_valid(b"".join(self._tiles[ids[index]] for index in members)):
                mended |= dict.fromkeys(members, REPLACEMENT)
        return mended

    def _stripped(
        self, ids: Sequence[int], visible: list[int], changed: dict[int, bytes], character: bytes, at_most: int
    ) -> dict[int, bytes]:
        stripped: dict[int, bytes] = {}
        for index in visible:
            tile = changed.get(index, self._tiles[ids[index]])
            while at_most and tile.startswith(character):
                tile, at_most = tile.removeprefix(character), at_most - 1
            stripped[index] = tile
            if tile or not at_most:
                break
        return stripped


def _values(table: dict[int, T], ids: Sequence[int]) -> tuple[T, ...]:
    if len(ids) < 2:
        return tuple(table[token_id] for token_id in ids)
    values: tuple[T, ...] = itemgetter(*ids)(table)  # the fastest way through a dictionary
    return values


_VOCABULARIES: WeakKeyDictionary[PreTrainedTokenizerBase, Vocabulary] = WeakKeyDictionary()


def _read(tokenizer: PreTrainedTokenizerBase) -> Vocabulary:
    if not hasattr(tokenizer, "backend_tokenizer"):
        raise UserError(
            f"{_name(tokenizer)} is not backed by the `tokenizers` library; load it from a tokenizer.json instead"
        )
    decoder = tokenizer.backend_tokenizer.decoder
    if decoder is None:
        return Pieces(tokenizer, " ".join)
    steps = _flatten(json.loads(decoder.__getstate__()))
    names = [step["type"] for step in steps]
    if names == ["ByteLevel"]:
        return ByteLevel(tokenizer)
    strips = [step for step in steps if step["type"] == "Strip"]
    if not _TEXT_STEPS.fullmatch("".join(f"{name} " for name in names)) or not all(map(_strips_start, strips)):
        raise UserError(
            f"{_name(tokenizer)} decodes by [{', '.join(names)}], which cannot be followed token by token; "
            "use a byte-level, SentencePiece or WordPiece tokenizer"
        )
    join = _decoder([step for step in steps if step["type"] in _TOKEN_STEPS]).decode
    return Pieces(tokenizer, join, "ByteFallback" in names, [(step["content"], step["start"]) for step in strips])


def _flatten(step: Step) -> list[Step]:
    if step["type"] != "Sequence":
        return [step]
    return [inner for outer in step["decoders"] for inner in _flatten(outer)]


def _strips_start(strip: Step) -> bool:
    """Whether it cuts the start of the text only, by characters that no two tokens can share."""
    return bool(strip["stop"] == 0 and strip["content"].isascii())


def _decoder(steps: list[Step]) -> Any:
    """A decoder of these steps alone; `tokenizers` reads one from JSON only as a part of a whole tokenizer."""
    model = {"type": "WordLevel", "vocab": {}, "unk_token": ""}
    whole = {"version": "1.0", "added_tokens": [], "model": model, "decoder": {"type": "Sequence", "decoders": steps}}
    return Tokenizer.from_str(json.dumps(whole)).decoder


def _byte_alphabet() -> dict[str, int]:
    """The characters by which byte-level vocabularies write bytes: visible ones as themselves, the rest from U+0100."""
    visible = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    hidden = sorted(set(range(0x100)) - set(visible))
    return {chr(byte): byte for byte in visible} | {chr(0x100 + n): byte for n, byte in enumerate(hidden)}


_BYTE_OF = _byte_alphabet()


def characters_begun(tile: bytes) -> int:
    return sum(byte & 0xC0 != 0x80 for byte in tile)


def continues(tile: bytes) -> bool:
    """Whether it begins inside a character."""
    return bool(tile) and tile[0] & 0xC0 == 0x80


def replace_invalid(data: bytes) -> list[bytes]:
    """For each byte, its share of `data.decode("utf-8", "replace").encode()`.

    That policy puts one U+FFFD, of three bytes, for each maximal subpart: the longest start of some valid character, of
    one to three bytes, or else a single byte. The last byte of a subpart takes what the others leave.
    """
    shares: list[bytes] = []
    while True:
        try:
            data.decode()
        except UnicodeDecodeError as error:
            width = error.end - error.start
            shares += [*_bytes(data[: error.start]), *_bytes(REPLACEMENT[: width - 1]), REPLACEMENT[width - 1 :]]
            data = data[error.end :]
        else:
            return shares + _bytes(data)


def _bytes(data: bytes) -> list[bytes]:
    return [data[index : index + 1] for index in range(len(data))]


def _is_valid(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def _name(tokenizer: PreTrainedTokenizerBase) -> str:
    return str(getattr(tokenizer, "name_or_path", "") or type(tokenizer).__name__)
