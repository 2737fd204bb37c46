"""The role of each word of a comment: blamed, wanted instead, or neutral.

Sentences are scanned from left to right; a cue sets the role of the words after it: "The summary says *A*, but the
source says *B*", "Replace *A* with *B*", "*A* instead of *B*". Words before the first cue share its role, as in "*A* is
not mentioned". The rules are rough on purpose: the trained model weights their results.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from enum import IntEnum
from typing import NamedTuple

from text2grad.text.whitespace import is_function_part, part_key, split_parts


class Role(IntEnum):
    NEUTRAL = 0
    BLAMED = 1
    WANTED = 2


class Mention(NamedTuple):
    """A word of the comment; `is_content` excludes function words and words about text in general, such as "says"."""

    key: str
    role: Role
    sentence: int
    is_quoted: bool
    is_content: bool


def _keys(words: str) -> frozenset[str]:
    return frozenset(part_key(word) for word in words.split())


_NEGATIONS = frozenset(("not", "no", "never", "cannot", "none", "neither", "nor", "nothing", "without"))
_CONTRASTS = frozenset(("but", "however", "whereas", "while", "although", "though", "instead"))
_REPLACING = _keys("replace change modify correct fix substitute swap switch update edit rewrite amend rephrase")
_BLAMING = _keys(
    """
    remove delete drop omit erase cut eliminate replace change modify correct fix substitute swap switch incorrect wrong
    false inaccurate untrue error mistake hallucinate fabricate invent unsupported misrepresent mislead misinterpret
    contradict confuse exaggerate assume unverified unfounded irrelevant unnecessary fail lack mistaken
    """
)
_SUGGESTING = _keys("add include insert mention should actually really rather")
_SAYING = _keys(
    """
    say state mention indicate report support specify describe show claim contain include read tell list give refer
    suggest imply use confirm discuss note make add
    """
)
_SOURCE = _keys("source article text document passage original context prompt story report")
_ANSWER = _keys("summary answer response output candidate")
_ABOUT_TEXT = (
    _SOURCE
    | _ANSWER
    | _SAYING
    | _BLAMING
    | _REPLACING
    | _keys(
        """
        information info statement fact detail explicit explicitly specifically correctly incorrectly regarding
        reference word sentence part only just because therefore instead evidence given know known provide verify accord
        code function program line bug handle input should must
        """
    )
)
_SENTENCE = re.compile(r"(?:[^.!?;\n]|[.](?=\S))+[.!?;\n]*")
_QUOTED = re.compile(r"\"[^\"]+\"|“[^”]+”|`[^`]+`|(?<!\w)'[^']+'(?!\w)")
_MAX_VERB_POSITION = 4  # words before which a replacing verb is an instruction: "Please replace ..."


def parse_mentions(comment: str) -> list[Mention]:
    """Return the words of the comment, compounds split, with their roles."""
    found: list[Mention] = []
    for number, sentence in enumerate(_SENTENCE.findall(comment)):
        words = split_parts(sentence)
        quoted = {part for quotation in _QUOTED.findall(sentence) for part in split_parts(quotation)}
        for word, role in zip(words, _assign_roles(words), strict=True):
            is_content = not is_function_part(word) and part_key(word) not in _ABOUT_TEXT
            found.append(Mention(part_key(word), role, number, word in quoted, is_content))
    return found


def _assign_roles(words: Sequence[str]) -> list[Role]:
    changes = _role_changes(words)
    roles: list[Role] = []
    role = next((change for change in changes if change is not None), Role.NEUTRAL)
    for change in changes:
        role = role if change is None else change
        roles.append(role)
    return roles


def _role_changes(words: Sequence[str]) -> list[Role | None]:
    """Return, per word, the role that starts with it, or None where the role does not change."""
    changes: list[Role | None] = []
    role, speaker, replacing = Role.NEUTRAL, "", False
    for i, word in enumerate(words):
        following = words[i + 1] if i + 1 < len(words) else ""
        this = part_key(word)
        if word in _CONTRASTS:
            speaker = ""
        elif this in _SOURCE:
            speaker = "source"
        elif this in _ANSWER:
            speaker = "answer"
        replacing = replacing or (this in _REPLACING and i < _MAX_VERB_POSITION)
        change = _role_change(word, following, role, speaker, replacing)
        role = role if change is None else change
        changes.append(change)
    return changes


def _role_change(word: str, following: str, role: Role, speaker: str, replacing: bool) -> Role | None:
    this = part_key(word)
    if word in _NEGATIONS or word.endswith("n't"):
        return Role.BLAMED
    if (word, following) in (("instead", "of"), ("rather", "than")):
        return Role.WANTED if role is Role.BLAMED else Role.BLAMED
    if word in _CONTRASTS:
        return Role.WANTED if word == "instead" else Role.NEUTRAL
    if word in ("with", "to", "into") and replacing and role is Role.BLAMED:
        return Role.WANTED
    if this in _BLAMING or (word in ("makes", "made", "making") and following == "up"):
        return Role.BLAMED
    if role is Role.BLAMED:
        return None
    if this in _SUGGESTING:
        return Role.WANTED
    if this in _SAYING and speaker:
        return Role.WANTED if speaker == "source" else Role.BLAMED
    return None
