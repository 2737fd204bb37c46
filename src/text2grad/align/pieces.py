"""What each token id adds to the decoded text, read from the tokenizer's own decoder, once per id.

A piece is a `str` when the token adds whole characters wherever it stands, and `bytes` when its bytes can only be read
together with its neighbours' (a third of an emoji, a byte-fallback token). A special token is `b""`: it adds nothing,
and the bytes on either side of it are still neighbours.
"""

from __future__ import annotations

import json
import operator
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from tokenizers import Tokenizer

from text2grad.errors import UserError

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

Piece = str | bytes
Step = dict[str, Any]

SKIPPED = b""
_BYTE_TOKEN = re.compile(r"<0x([0-9A-Fa-f]{2})>")
_BYTE_LEVEL = re.compile("ByteLevel ")
# Replace, Metaspace and WordPiece treat each token by itself, or the first one unlike the others;
# ByteFallback joins runs of byte tokens; after Fuse the text is one string, of which Strip cuts the start.
_TOKEN_STEPS = ("Replace", "Metaspace", "WordPiece")
_TEXT = re.compile(rf"(({'|'.join(_TOKEN_STEPS)}) )*(ByteFallback )?(Fuse (Strip )*)?")


class Pieces(dict[int, Piece]):
    """Token id -> piece, spelt out when it is first asked for."""

    def __init__(self, tokenizer: PreTrainedTokenizerBase, spell: Callable[[str], Piece]) -> None:
        super().__init__()
        # Only the backend is kept: a reference to the tokenizer itself would keep its entry in `_READINGS` alive.
        self._backend: Tokenizer = tokenizer.backend_tokenizer
        self._owner: str = _name(tokenizer)
        self._spell = spell

    def __missing__(self, token_id: int) -> Piece:
        if type(token_id) is not int:  # integers of torch hash by identity: look them up by value
            return self[operator.index(token_id)]
        token = self._token(token_id)
        piece = SKIPPED if self._is_special(token_id) else self._spell(token)
        self[token_id] = piece
        return piece

    def _token(self, token_id: int) -> str:
        try:
            token: str | None = self._backend.id_to_token(token_id)
        except OverflowError:  # negative, or beyond 32 bits
            token = None
        if token is None:
            raise UserError(
                f"token id {token_id} is not in the vocabulary of {self._owner}; "
                "use the tokenizer of the model that sampled it"
            )
        return token

    def _is_special(self, token_id: int) -> bool:
        shown, hidden = (self._backend.decode([token_id], skip_special_tokens=skip) for skip in (False, True))
        return bool(shown != hidden)


@dataclass(frozen=True)
class Reading:
    """How the ids of one tokenizer become text."""

    first: Pieces  # for the first token that is not skipped
    later: Pieces  # for all others
    characters: Callable[[bytes], list[tuple[str, int]]]  # neighbouring bytes -> (character, how many bytes it takes)
    strips: tuple[tuple[str, int], ...] = ()  # (character, how many of it at most) to cut off the start of the text

    def pieces(self, ids: Sequence[int]) -> list[Piece]:
        """One piece per id."""
        pieces = list(map(self.later.__getitem__, ids))
        if self.first is not self.later:
            start = next((index for index, piece in enumerate(pieces) if piece != SKIPPED), None)
            if start is not None:
                pieces[start] = self.first[ids[start]]
        return pieces


_READINGS: WeakKeyDictionary[PreTrainedTokenizerBase, Reading] = WeakKeyDictionary()


def reading(tokenizer: PreTrainedTokenizerBase) -> Reading:
    """The tokenizer's Reading, made on first use: a token that turns special after that is not noticed."""
    known = _READINGS.get(tokenizer)
    if known is None:
        known = _READINGS[tokenizer] = _make_reading(tokenizer)
    return known


def _make_reading(tokenizer: PreTrainedTokenizerBase) -> Reading:
    if not hasattr(tokenizer, "backend_tokenizer"):
        raise UserError(
            f"{_name(tokenizer)} is not backed by the `tokenizers` library; load it from a tokenizer.json instead"
        )
    decoder = tokenizer.backend_tokenizer.decoder
    if decoder is None:  # tokens are joined by spaces
        return Reading(Pieces(tokenizer, str), Pieces(tokenizer, " {}".format), replace_invalid)
    steps = _flatten(json.loads(decoder.__getstate__()))
    names = "".join(f"{step['type']} " for step in steps)
    if _BYTE_LEVEL.fullmatch(names):
        pieces = Pieces(tokenizer, _spell_byte_level)
        return Reading(pieces, pieces, replace_invalid)
    if _TEXT.fullmatch(names) and not any(step.get("stop") for step in steps):
        return _text_reading(tokenizer, steps)
    raise UserError(
        f"{_name(tokenizer)} decodes by [{names.replace(' ', ', ').rstrip(', ')}], which cannot be followed token by "
        "token; use a byte-level, SentencePiece or WordPiece tokenizer"
    )


def _flatten(step: Step) -> list[Step]:
    if step["type"] != "Sequence":
        return [step]
    return [inner for outer in step["decoders"] for inner in _flatten(outer)]


def _text_reading(tokenizer: PreTrainedTokenizerBase, steps: list[Step]) -> Reading:
    spell = _decoder([step for step in steps if step["type"] in _TOKEN_STEPS]).decode
    names = {step["type"] for step in steps}
    finish = _byte_or_text if "ByteFallback" in names else str
    later = Pieces(tokenizer, lambda token: finish(spell(["", token])))
    differs = names & {"Metaspace", "WordPiece"}
    first = Pieces(tokenizer, lambda token: finish(spell([token]))) if differs else later
    strips = tuple((step["content"], step["start"]) for step in steps if step["type"] == "Strip")
    return Reading(first, later, replace_invalid_runs, strips)


def _decoder(steps: list[Step]) -> Any:
    """A decoder of these steps alone. `tokenizers` makes one from its JSON only as a part of a whole tokenizer."""
    model = {"type": "WordLevel", "vocab": {}, "unk_token": ""}
    whole = {"version": "1.0", "added_tokens": [], "model": model, "decoder": {"type": "Sequence", "decoders": steps}}
    return Tokenizer.from_str(json.dumps(whole)).decoder


def _byte_or_text(text: str) -> Piece:
    match = _BYTE_TOKEN.fullmatch(text)
    return bytes.fromhex(match[1]) if match else text


def _byte_alphabet() -> dict[str, int]:
    """The characters by which byte-level vocabularies write bytes: visible ones as themselves, the rest from U+0100."""
    visible = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    hidden = sorted(set(range(0x100)) - set(visible))
    return {chr(byte): byte for byte in visible} | {chr(0x100 + n): byte for n, byte in enumerate(hidden)}


_BYTE_OF = _byte_alphabet()


def _spell_byte_level(token: str) -> Piece:
    if all(character in _BYTE_OF for character in token):
        data = bytes(_BYTE_OF[character] for character in token)
    else:  # a token that was added as plain text
        data = token.encode()
    try:
        return data.decode() or SKIPPED
    except UnicodeDecodeError:
        return data


def replace_invalid(data: bytes) -> list[tuple[str, int]]:
    """Characters of `data.decode("utf-8", "replace")`, each with the number of bytes that it takes.

    A U+FFFD takes the bytes of one maximal subpart: the longest start of some valid character, or a single byte.
    """
    characters: list[tuple[str, int]] = []
    while True:
        try:
            return characters + _with_widths(data.decode())
        except UnicodeDecodeError as error:
            characters += _with_widths(data[: error.start].decode())
            characters.append(("\ufffd", error.end - error.start))
            data = data[error.end :]


def replace_invalid_runs(data: bytes) -> list[tuple[str, int]]:
    """The rule of byte-fallback tokens: a run that is not valid as a whole becomes one U+FFFD per byte."""
    try:
        return _with_widths(data.decode())
    except UnicodeDecodeError:
        return [("\ufffd", 1)] * len(data)


def _with_widths(text: str) -> list[tuple[str, int]]:
    return [(character, len(character.encode())) for character in text]


def _name(tokenizer: PreTrainedTokenizerBase) -> str:
    return str(getattr(tokenizer, "name_or_path", "") or type(tokenizer).__name__)
