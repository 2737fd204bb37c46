"""What a comment says about each of its own words: that it is wrong, that it is wanted, or neither.

A sentence is read from left to right; cues turn the role of what follows. "The summary says *A*, but the source says
*B*", "Replace *A* with *B*", "*A* instead of *B*". What stands before the first cue shares its role, because people
also write "*A* is not mentioned". The rules are rough on purpose: a learned model weighs what they find.
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
    """A word of the comment. `is_content` leaves out function words and words that speak of text, not its subject."""

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
_WISHING = _keys("add include insert mention should actually really rather")
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
_REPLACING_VERB_WITHIN = 4  # words: "Please replace ..." begins with its verb


def mentions(comment: str) -> list[Mention]:
    """The words of the comment, compounds taken apart, with their roles."""
    found: list[Mention] = []
    for number, sentence in enumerate(_SENTENCE.findall(comment)):
        words = split_parts(sentence)
        quoted = {part for quotation in _QUOTED.findall(sentence) for part in split_parts(quotation)}
        found += [
            Mention(
                part_key(word),
                role,
                number,
                word in quoted,
                not is_function_part(word) and part_key(word) not in _ABOUT_TEXT,
            )
            for word, role in zip(words, _roles(words), strict=True)
        ]
    return found


def _roles(words: Sequence[str]) -> list[Role]:
    turns = _turns(words)
    first = next((role for role in turns if role is not None), Role.NEUTRAL)
    roles: list[Role] = []
    role = first
    for turn in turns:
        role = role if turn is None else turn
        roles.append(role)
    return roles


def _turns(words: Sequence[str]) -> list[Role | None]:
    """For each word the role that it gives to itself and what follows, None where it changes nothing."""
    turns: list[Role | None] = []
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
        replacing = replacing or (this in _REPLACING and i < _REPLACING_VERB_WITHIN)
        turn = _turn(word, following, role, speaker, replacing)
        role = role if turn is None else turn
        turns.append(turn)
    return turns


def _turn(word: str, following: str, role: Role, speaker: str, replacing: bool) -> Role | None:
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
    if this in _WISHING:
        return Role.WANTED
    if this in _SAYING and speaker:
        return Role.WANTED if speaker == "source" else Role.BLAMED
    return None
