"""The words of a clause that name what is missing: what remains without the words that say that it is.

In "It never gets round to *the price*", "*The price* goes unmentioned" and "Where is *the price*?" all other words are
the frame. That a clause says that something is missing is for the stance model to tell.
"""

from __future__ import annotations

import re

from text2grad.align.stance.stance_features import MASK
from text2grad.schema import Range
from text2grad.text.lexicon import word_set

_WORD = re.compile(rf"[\w'’-]+(?:[.,]\d+)*(?:\(\))?|{MASK}+|[?,;:.!]")
_FRAME = word_set("""
    a about absent add added adding address after again all also altogether am an and answer answered any anything
    anywhere apparently appear appears appreciate appreciated are aren't as at attempt attention avoids bad be been
    before being benefit better bit bother bring brings but calls came can can't cannot check checks clear client code
    come comes complete completely consider contain contains could could've couldn't cover covered covers credit
    credited credits cries customer cut describe deserve deserved deserves desired desperately detail details did
    didn't discuss discussed do does doesn't doesnt don't dont draft drops e-mail edit else email ends enough entirely
    even ever exactly expect expected expecting explain explained explaining explains explanation explicitly fail
    failed fails feel feels find first for forget forgets forgetting forgot forgotten found from function further get
    gets give given gives gloss glossed glosses go goes gone good got great guess guessing guests had handle handled
    handles handling happen happened has hasn't have haven't having he hear hears help helped helpful helps here hint
    hoped hoping how hurt i i'd i'm i've if ignore ignored ignores imagination imo in include included includes
    including incomplete indicate info inform information insert instead interested into is isn't it it's its itself
    just keep keeps know knows lack lacked lacking lacks learn learns least leave leaves leaving left let letter light
    like liked line list listed lists little look looked looking lost love loved made make makes many may maybe me
    mention mentioned mentioning mentions might mind miss missed misses missing more much must name named need needed
    needs neglect neglected neglects neither never nice no nobody non-existent none nonexistent nor not note nothing now
    nowhere occur of off oh ok omit omits omitted omitting on one oneself only open or original ought out output over
    overlook overlooked overlooks paragraph passed passes people perfect perhaps pity please pls point pointed
    probably profit program provide provided provides put question quiet quite raise rather read reader readers
    reading really reason recipe recommend refer reference refers regarding remain remains remember remind reply
    required response round sadly said say saying says searched see seem seems seen sentence shame she short should
    should've shouldn't show shows sign silence silent simply since skip skipped skips so some somehow something
    somewhere sorry space speaks specifically specified specifies specify spend spent state stated states stay stays
    still stop stops such suggest summary syllable tad talk talks tell telling tells test text than thank thanks that
    that's the them then there there's they thing think this though thought till to told too touch touches trace two u
    unclear unexplained unfortunately unmentioned unsaid until up us use useful user vain version very waiting want
    wanted wants was wasn't we weak welcome well were what what's whatever whatsoever when where where's wheres
    whether which who why will wish with without wonder wonderful wondering word words would would've wouldn't write
    writer yet you you've your zero
    """)  # fmt: skip
_NOUNS = word_set("""
    address check credit detail details explanation guests handling information line list lists name names note
    paragraph point question reason reference result sentence sign space state test tests use word words
    """)  # of the frame, and part of what is missing after an article or another word: "the reason", "a closing line"
_DETERMINERS = word_set("the a an any some my your his her its their our this that these those more enough both all")
_DEFINITE = word_set("the my his her its their our")
_QUESTION_WORDS = word_set("how when where who whom whose why what which whether if that")
_TELLING = word_set("""
    also clarify clear describe describes explain explained explaining explains find guess guessing hear idea indicate
    informed know knows learn learns me mention mentioned mentions on out people reader readers said say saying says
    see show shows specifies specify state states tell telling tells them told understand us wonder wondering you
    """)
_NOT_A_THING = word_set("it this that these those them him her so one much many anything everything nothing all else")
_MAX_WORDS = 14
_STATED_LACK = re.compile(
    r"\W*(?:(?:but|and|also|however|it|this|that|still|completely|even|the\s+(?:answer|summary|text|response|letter|article))\s+)*"
    r"(?:misses|lacks|omits|skips|leaves\s+out|overlooks)\s+"
    r"(?!the\s+(?:point|mark|target|boat|beat|goal|nuances?|tone|spirit|essence|first|last|whole|rest)\b)"
    r"(?P<what>(?:the|any|all|both|an?|his|her|its|their|our|my)\s+[\w'’-]+(?:[.,]\d+)*(?:\s+[\w'’-]+(?:[.,]\d+)*){0,8})[\s.!]*",
    re.IGNORECASE,
)


def find_stated_lack(comment: str, start: int, end: int) -> Range | None:
    """Return the range of what is missing in a clause that says nothing else: "Skips the detour"."""
    match = _STATED_LACK.fullmatch(comment, start, end)
    return match.span("what") if match else None


def find_missing(masked: str, start: int, end: int) -> Range | None:
    """Return the range of the words that name what is missing, in a clause that says that something is missing.

    masked: the comment, the characters of its quotations replaced. None if the frame is all there is.
    """
    words = [(match[0].lower().replace("’", "'"), *match.span()) for match in _WORD.finditer(masked, start, end)]
    tokens = [word for word, _, _ in words]
    first, last = _skip_frame(tokens), len(tokens)
    is_question = first < last and tokens[first] in _QUESTION_WORDS
    while last > first and _is_frame(tokens, last - 1) and not (is_question and tokens[last - 1][0].isalnum()):
        last -= 1
    while first and tokens[first - 1] in _DETERMINERS and not is_question:
        first -= 1
    last = _cut(tokens, first, last)
    if first >= last or last - first > _MAX_WORDS or all(token in _NOT_A_THING for token in tokens[first:last]):
        return None
    return words[first][1], words[last - 1][2]


def _is_frame(tokens: list[str], i: int) -> bool:
    """Whether a word or a mark says that something is missing, rather than what."""
    token = tokens[i]
    if not (token[0].isalnum() or token[0] == MASK):
        return True
    if token in _NOUNS and i and (tokens[i - 1] in _DEFINITE or not _is_frame(tokens, i - 1)):
        return False
    if token in _NOUNS and i and tokens[i - 1] == "no" and not any(word.isalnum() for word in tokens[i + 1 :]):
        return False
    return token in _FRAME or (token == "single" and tokens[i + 1 : i + 2] in (["mention"], ["word"]))


def _skip_frame(tokens: list[str]) -> int:
    """Return the index of the first word after the frame; an indirect question starts with its question word."""
    for i, token in enumerate(tokens):
        if i and token in _QUESTION_WORDS and tokens[i - 1] in _TELLING and i + 2 < len(tokens):
            return i
        if not _is_frame(tokens, i):
            return i
    return len(tokens)


def _cut(tokens: list[str], first: int, last: int) -> int:
    """Return the end of what is missing: before a reason, a relative clause, or the next part of the sentence."""
    for i in range(first + 1, last):
        if tokens[i] in ("because", "since", "although") or (
            tokens[i] == "," and tokens[i + 1] not in _DETERMINERS | {"and", "or"}
        ):
            return i
    return last
