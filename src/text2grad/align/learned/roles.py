"""The role of each word of a comment: blamed, wanted instead, or neutral.

Sentences are scanned from left to right; a cue sets the role of the words after it: "The summary says *A*, but the
source says *B*", "Replace *A* with *B*", "*A* instead of *B*". Words before the first cue share its role, as in "*A* is
not mentioned". The rules are rough on purpose: the trained model weights their results.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from enum import IntEnum
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

from text2grad.text.whitespace import is_function_part, part_key, split_parts


class Role(IntEnum):
    """What a comment says of a word that it mentions."""

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
_BLAMING = _keys("""
    remove delete drop omit erase cut eliminate replace change modify correct fix substitute swap switch incorrect wrong
    false inaccurate untrue error mistake hallucinate fabricate invent unsupported misrepresent mislead misinterpret
    contradict confuse exaggerate assume unverified unfounded irrelevant unnecessary fail lack mistaken
    """)
_SUGGESTING = _keys("add include insert mention should actually really rather")
_SAYING = _keys("""
    say state mention indicate report support specify describe show claim contain include read tell list give refer
    suggest imply use confirm discuss note make add
    """)
_SOURCE = _keys("source article text document passage original context prompt story report")
_ANSWER = _keys("summary answer response output candidate")
_ABOUT_TEXT = (
    _SOURCE
    | _ANSWER
    | _SAYING
    | _BLAMING
    | _REPLACING
    | _keys("""
        information info statement fact detail explicit explicitly specifically correctly incorrectly regarding
        reference word sentence part only just because therefore instead evidence given know known provide verify accord
        code function program line bug handle input should must
        """)
)
_CUES = _NEGATIONS | _CONTRASTS | {"rather", "with", "to", "into", "makes", "made", "making"}
_KEYS_OF_CUES = _SOURCE | _ANSWER | _REPLACING | _BLAMING | _SUGGESTING | _SAYING
_SENTENCE = re.compile(r"(?:[^.!?;\n]|[.](?=\S))+[.!?;\n]*")
_QUOTED = re.compile(r"\"[^\"]+\"|“[^”]+”|`[^`]+`|(?<!\w)'[^']+'(?!\w)")
_MAX_VERB_POSITION = 4  # words before which a replacing verb is an instruction: "Please replace ..."


def parse_mentions(comment: str) -> list[Mention]:
    """Return the words of the comment, compounds split, with their roles."""
    return list(_parse_mentions(comment))


@lru_cache(maxsize=64)
def _parse_mentions(comment: str) -> tuple[Mention, ...]:
    found: list[Mention] = []
    for number, sentence in enumerate(_SENTENCE.findall(comment)):
        words = split_parts(sentence)
        quoted = {part for quotation in _QUOTED.findall(sentence) for part in split_parts(quotation)}
        for word, role in zip(words, _assign_roles(words), strict=True):
            key, is_content = _describe(word)
            found.append(Mention(key, role, number, word in quoted, is_content))
    return tuple(found)


@lru_cache(maxsize=1 << 14)
def _describe(word: str) -> tuple[str, bool]:
    """Return a word's key, and whether it is more than a function word or a word about text in general."""
    key = part_key(word)
    return key, not is_function_part(word) and key not in _ABOUT_TEXT


def content_keys(mentions: Sequence[Mention], role: Role | None = None) -> set[str]:
    """Return the keys of the content words, or of those in one role."""
    return {mention.key for mention in mentions if mention.is_content and role in (None, mention.role)}


def _assign_roles(words: Sequence[str]) -> list[Role]:
    roles: list[Role | None] = []
    role: Role | None = None  # before the first cue
    said: Role | None = None  # the role of what the last named text says: the source is right, the answer is not
    replacing = False
    for i, (word, following) in enumerate(pairwise([*words, ""])):
        if not _is_cue(word):
            roles.append(role)
            continue
        key = part_key(word)
        if word in _CONTRASTS:
            said = None
        elif key in _SOURCE:
            said = Role.WANTED
        elif key in _ANSWER:
            said = Role.BLAMED
        replacing = replacing or (key in _REPLACING and i < _MAX_VERB_POSITION)
        change = _role_change(word, following, role, said, replacing)
        role = role if change is None else change
        roles.append(role)
    first = next((role for role in roles if role is not None), Role.NEUTRAL)
    return [first if role is None else role for role in roles]


@lru_cache(maxsize=1 << 14)
def _is_cue(word: str) -> bool:
    """Whether a word may start a role, or say which text is spoken of."""
    return word in _CUES or part_key(word) in _KEYS_OF_CUES or word.endswith("n't")


def _role_change(word: str, following: str, role: Role | None, said: Role | None, replacing: bool) -> Role | None:
    """Return the role that starts with a word; None if the role does not change."""
    key = part_key(word)
    if word in _NEGATIONS or word.endswith("n't"):
        return Role.BLAMED
    if (word, following) in (("instead", "of"), ("rather", "than")):
        return Role.WANTED if role is Role.BLAMED else Role.BLAMED
    if word in _CONTRASTS:
        return Role.WANTED if word == "instead" else Role.NEUTRAL
    if word in ("with", "to", "into") and replacing and role is Role.BLAMED:
        return Role.WANTED
    if key in _BLAMING or (word in ("makes", "made", "making") and following == "up"):
        return Role.BLAMED
    if role is Role.BLAMED:
        return None
    if key in _SUGGESTING:
        return Role.WANTED
    return said if key in _SAYING else None
