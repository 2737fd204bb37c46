"""Features of a clause that tell praise from blame: its words and idioms, and their order by role.

Every word has at most one role (`polar_words`): it praises, blames, negates, hedges, asks for a change, names the
source and so on. The roles in order, without the words in between, are the clause's signature: "no quarrel with", "not
a single mistake in" and "nothing wrong here" are all a negation followed by blame.
"""

from __future__ import annotations

import re
from functools import lru_cache
from itertools import pairwise

from text2grad.align.stance.polar_words import IDIOMS, ROLES
from text2grad.text.lexicon import word_set
from text2grad.text.stems import stem

MASK = "\ue000"  # stands for every character of a quotation, whose own words say nothing of the stance

_TOKEN = re.compile(
    rf"{MASK}+|\w*_\w+(?:\(\))?|[a-z]\w*\(\)|[^\W\d_]+(?:'[^\W\d_]+)?|\d[\d.,:/%]*|[?!]+|->|=>|[+]1|:[()]"
)
_LETTERS = {
    "praise": "P", "blame": "B", "favour": "F", "spoil": "S", "not": "N", "should": "M", "could": "C", "wish": "W",
    "if": "I", "but": "X", "too": "T", "very": "V", "mild": "v", "hedge": "H", "more": "m", "all": "A", "only": "o",
    "source": "s", "answer": "a", "say": "y", "cut": "c", "keep": "k", "add": "d", "lack": "L", "me": "i", "you": "u",
    "know": "K", "why": "?", "wh": "w",
}  # fmt: skip
_OPEN_CLASSES = (
    "praise",
    "blame",
    "cut",
    "lack",
    "favour",
    "spoil",
    "say",
    "add",
)  # known in their regular forms as well
_CORE = frozenset("PBFSNMCWIXTHLc?Q")
_POSITIVE, _NEGATIVE = frozenset("PF"), frozenset("BSL")
_OPPOSITES = ("un", "in", "im", "ir", "il", "dis", "non")
_FAULTY = ("mis", "over", "under")
_SCOPE = 4  # words after a negation that it may negate
_SIGN_SCOPE = 6  # the same for the sums of signs


def normalize_word(word: str) -> str:
    """Return a lower-case word without a possessive ending."""
    return word[:-2] if word.endswith("'s") and len(word) > 3 else word


def _split_compounds() -> dict[tuple[str, ...], str]:
    """Return the idioms, and the words with hyphens as idioms of their parts."""
    compounds = {tuple(word.split("-")): role for role, words in ROLES.items() for word in words if "-" in word}
    known = compounds | IDIOMS
    return {tuple(normalize_word(word) for word in phrase): _LETTERS[role] for phrase, role in known.items()}


_IDIOM_LETTERS = _split_compounds()
_IDIOM_LENGTHS: dict[str, list[int]] = {}  # by first word, the longest first
for _phrase in sorted(_IDIOM_LETTERS, key=len, reverse=True):
    if len(_phrase) not in _IDIOM_LENGTHS.setdefault(_phrase[0], []):
        _IDIOM_LENGTHS[_phrase[0]].append(len(_phrase))
_VOWELS = frozenset("aeiou")


def _inflect(word: str) -> set[str]:
    """Return the regular forms of a word as a verb, a noun, an adjective and an adverb, most of which do not exist."""
    if word in _INVARIABLE or len(word) < 3:
        return set()
    forms = {word + ending for ending in ("s", "es", "ed", "ing", "ly", "er", "est")}
    if word.endswith("e"):
        forms |= {word[:-1] + ending for ending in ("ed", "ing", "er", "est")}
    elif word.endswith("y"):
        forms |= {word[:-1] + ending for ending in ("ies", "ied", "ier", "iest", "ily")}
    elif word[-1] not in _VOWELS and word[-2] in _VOWELS and word[-3] not in _VOWELS:
        forms |= {word + word[-1] + ending for ending in ("ed", "ing", "er", "est")}
    if word.endswith("le"):
        forms.add(word[:-1] + "y")
    if word.endswith("ic"):
        forms.add(word + "ally")
    return forms - _NO_FORMS


_INVARIABLE = word_set("""
    sound fine well object back novel reader fact ad second kind fair right good bad order time date word wall
    pretty fun cool super even hit match sources context dead read dream mud so too not no will may might can hang gem
    """)
_LIKING = word_set(
    "i we they you really also quite not don't didn't do did dont would i'd to still kids much who people"
)
_NO_FORMS = word_set("likely hardly thing king lasting fining sober other over never ever under ding winged wing")


def _word_letters() -> dict[str, str]:
    """Return the letters of all words and their forms; a word as it is listed comes before forms of others."""
    known: dict[str, str] = {}
    for role in reversed(_OPEN_CLASSES):
        for word in ROLES[role]:
            known |= dict.fromkeys(_inflect(word), _LETTERS[role])
    listed = {word: _LETTERS[role] for role, words in reversed(ROLES.items()) for word in words}
    closed = {word: _LETTERS[role] for role, words in ROLES.items() if role not in _OPEN_CLASSES for word in words}
    return known | listed | closed


_WORD_LETTERS = _word_letters()


def split_tokens(text: str) -> list[str]:
    """Return the words, numbers and marks of a text in lower case; identifiers and quotations become one token each."""
    return list(_split_tokens(text))


@lru_cache(maxsize=256)  # of a comment, the same parts are looked at again and again
def _split_tokens(text: str) -> tuple[str, ...]:
    return tuple([_token(word) for word in _TOKEN.findall(text.lower().replace("’", "'"))])


@lru_cache(maxsize=1 << 15)
def _token(word: str) -> str:
    if word[0] == MASK:
        return "QUOTE"
    if "_" in word or word.endswith("()"):
        return "CODE"
    if word[0].isdigit() or word[0] in "?!":
        return "0" if word[0].isdigit() else word[0]
    return normalize_word(word)


@lru_cache(maxsize=1 << 15)
def _letter(word: str) -> str:
    """Return the letter of a word's role; the empty string if it has none."""
    letter = _WORD_LETTERS.get(word)
    if letter is not None:
        return letter
    if word.endswith("n't"):
        return "N"
    if word in ("?", "QUOTE", "CODE"):
        return {"?": "Q", "QUOTE": "q", "CODE": "a"}[word]
    for prefix in _OPPOSITES:
        if word.startswith(prefix) and len(word) > len(prefix) + 3:
            return "B" if _WORD_LETTERS.get(word[len(prefix) :]) in ("P", "F") else ""
    return "B" if len(word) > 6 and word.startswith(_FAULTY) else ""


def find_roles(tokens: list[str]) -> tuple[list[str], list[str]]:
    """Return the letter of each token's role ("" without one), an idiom's at its first word, and the idioms found."""
    letters, idioms = _find_roles(tuple(tokens))
    return list(letters), list(idioms)


@lru_cache(maxsize=256)
def _find_roles(tokens: tuple[str, ...]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    letters: list[str] = []
    idioms: list[str] = []
    i = 0
    while i < len(tokens):
        for length in _IDIOM_LENGTHS.get(tokens[i], ()):
            phrase = tokens[i : i + length]
            if phrase in _IDIOM_LETTERS:
                letters += [_IDIOM_LETTERS[phrase]] + [""] * (len(phrase) - 1)
                idioms.append(" ".join(phrase))
                i += len(phrase)
                break
        else:
            is_comparison = tokens[i] == "like" and (i == 0 or tokens[i - 1] not in _LIKING)  # "reads like a manual"
            letters.append("" if is_comparison else _letter(tokens[i]))
            i += 1
    return tuple(letters), tuple(idioms)


@lru_cache(maxsize=256)
def extract_features(clause: str, before: str = "", after: str = "") -> tuple[str, ...]:
    """Return the names of a clause's features, some more than once.

    clause: its text, quotations replaced by `MASK`. before, after: the conjunctions that join it to its neighbours.
    """
    tokens = split_tokens(clause)
    letters, idioms = find_roles(tokens)
    features = [f"i:{idiom}" for idiom in idioms]
    features += _order_features(letters)
    features += _polarity_features(letters)
    features += _word_features(tokens, letters)
    features.append(f"words:{min(len(tokens), 30).bit_length()}")
    features += [f"before:{before}", f"after:{after}"]
    return tuple(features)


def _order_features(letters: list[str]) -> list[str]:
    signature = "^" + "".join(letters) + "$"
    features = [f"s:{signature[i : i + n]}" for n in (1, 2, 3) for i in range(len(signature) - n + 1)]
    core = "".join([letter for letter in letters if letter in _CORE])
    features += [f"c:{core[i : i + n]}" for n in (2, 3) for i in range(len(core) - n + 1)]
    features.append(f"core:{core[:6]}")
    return features


def _polarity_features(letters: list[str]) -> list[str]:
    """Return the signs of the polar words after negation: the first, the last, their sum."""
    signs: list[int] = []
    negated = -_SIGN_SCOPE - 1
    for i, letter in enumerate(letters):
        if letter == "N":
            negated = i
        elif letter == "X":
            negated = -_SIGN_SCOPE - 1
        elif letter in _POSITIVE or letter in _NEGATIVE:
            sign = 1 if letter in _POSITIVE else -1
            if i - negated <= _SIGN_SCOPE:
                sign, negated = -sign, -_SIGN_SCOPE - 1
            signs.append(sign)
    if not signs:
        return ["sign:none"]
    total = sum(signs)
    return [f"sign:{max(-2, min(2, total))}", f"first:{signs[0]}", f"last:{signs[-1]}"]


def _word_features(tokens: list[str], letters: list[str]) -> list[str]:
    features: list[str] = []
    negated = -_SCOPE - 1
    for i, (token, letter) in enumerate(zip(tokens, letters, strict=True)):
        key = _stem_token(token)
        features.append(f"w:{key}")
        if i - negated <= _SCOPE:
            features.append(f"n:{key}")
        if letter == "N":
            negated = i
    padded = ["<", *tokens, ">"]
    features += [f"b:{first} {second}" for first, second in pairwise(padded)]
    return features


@lru_cache(maxsize=1 << 15)
def _stem_token(token: str) -> str:
    return stem(token) if token.isalpha() else token
