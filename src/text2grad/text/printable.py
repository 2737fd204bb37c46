"""Text that is safe to print: no character of it is a command to the terminal."""

from __future__ import annotations

import re

# All control characters but line break and tab (escape sequences start with one), what reorders or hides the text that
# follows (bidirectional marks, line separators, invisible characters), and surrogates, which cannot be encoded.
_COMMANDS = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\ud800-\udfff\U000e0000-\U000e007f]"
)


def printable(text: str) -> str:
    """Replace each such character by a visible one, so that offsets stay valid: ESC becomes ␛."""
    return _COMMANDS.sub(_picture, text)


def _picture(match: re.Match[str]) -> str:
    code = ord(match[0])
    if code < 32:
        return chr(0x2400 + code)
    return "\N{SYMBOL FOR DELETE}" if code == 127 else "\N{REPLACEMENT CHARACTER}"
