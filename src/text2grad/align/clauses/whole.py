"""Whether a clause speaks of the whole answer: "Great answer!", "too long", "off topic"."""

# ruff: noqa: E501  one pattern per line

from __future__ import annotations

import re
from typing import Literal

from text2grad.align.answer.document import Document
from text2grad.align.clauses.clauses import Clause
from text2grad.align.clauses.scarcity import find_scarce, is_of_things
from text2grad.align.stance.stance_features import find_roles, split_tokens
from text2grad.schema import Label
from text2grad.text.lexicon import word_set
from text2grad.text.whitespace import is_function_part, key_set, part_key, split_parts

_ANSWER = (
    "answer response reply summary text output code program function solution script implementation letter email mail "
    "message note recipe instruction instructions explanation article essay story poem post draft version piece work job "
    "everything all overall whole entire result one attempt write-up writing tone style length reading read "
    "structure format layout wording language grammar spelling logic approach idea content information facts"
)
_OPINION = (
    "good great nice excellent perfect fine wonderful amazing awesome brilliant fantastic superb lovely sweet solid decent "
    "bad poor terrible awful weak wrong useless boring dull vague generic confusing unclear clear concise short long brief "
    "wordy verbose rambling dry polite rude formal informal casual friendly professional correct incorrect accurate "
    "inaccurate right true false helpful unhelpful useful complete incomplete thorough detailed shallow off-topic topic "
    "irrelevant relevant readable unreadable elegant messy clean neat works work working fails fail runs crash crashes "
    "like love hate enjoy enjoyed liked loved thanks thank well done bravo kudos spot point easy hard simple complicated "
    "complex too very so much really quite rather pretty extremely super absolutely far bit way more less could should "
    "would be better worse best worst ok okay impressive disappointing mess beautiful hallucinated nonsense garbage "
    "question answered ask asked needs need again rewrite redo scratch keep up exactly wanted looking for understand "
    "follow sense makes make written wrote reads sounds feels seems tight crisp balanced engaging"
)
_ANSWER_KEYS = {part_key(part) for part in split_parts(_ANSWER)}
_KEYS = _ANSWER_KEYS | {part_key(part) for part in split_parts(_OPINION)}
_WHOLE = re.compile(
    r"\b(?:overall|as a whole|in general|all in all|the (?:whole|entire|full) (?:thing|answer|text|response|summary|letter|code"
    r"|program|recipe|e?-?mail|function)|everything|throughout|too (?:long|short|wordy|verbose|vague|formal|informal|dry"
    r"|generic|brief|complicated)|off[ -]?topic|(?:great|good|nice|excellent|perfect|bad|terrible|poor|lovely|wonderful|sweet|clear"
    r"|concise|solid|decent|weak|awful) (?:answer|summary|response|reply|letter|e?-?mail|recipe|code|program|solution|job|work"
    r"|function|explanation|overview|message|note|text))\b",
    re.IGNORECASE,
)
# Verdicts without words: thumbs, ticks and crosses, faces. Skin tones and variation selectors may follow.
_AROUND = r"[\s.!,\u200d\ufe0e\ufe0f\U0001f3fb-\U0001f3ff]"
_MARKS: dict[Label, str] = {
    "good": r"[👍👌👏🙌🎉💯✅✓✔❤💚🥇😀😃😄😊🙂😍]|\+1\b|\blgtm\b",
    "poor": r"[👎❌✗✘✖🚫💩🙁☹😞😠😡🤦🤮]|-1\b",
}
_VERDICTS: dict[Label, re.Pattern[str]] = {
    label: re.compile(rf"{_AROUND}*(?:(?:{marks}){_AROUND}*)+", re.IGNORECASE) for label, marks in _MARKS.items()
}
_RATED = r"[^\w*★☆⭐]*(?:(?:my |overall )?(?:rating|score|verdict|overall)\b|(?:i['’]d|i would|i) (?:give|rate) (?:it|this)\b)?(?: an?\b)?"
_POINTS = r"(?P<points>\d{1,3}(?:[.,]\d)?)"
_RATINGS = tuple(
    re.compile(rf"{_RATED}[^\w*★☆⭐]*{points}\W*", re.IGNORECASE)
    for points in (
        rf"{_POINTS}\s?/\s?(?P<most>5|10|20|100)(?:\s(?:stars?|points?))?",
        rf"{_POINTS}\s(?:out )?of\s(?P<most>5|10|20|100)(?:\s(?:stars?|points?))?",
        rf"{_POINTS}[\s-]stars?(?:\s(?:out )?of\s(?P<most>5|10))?",
        r"(?P<stars>[★⭐][★⭐\s\ufe0f]*)(?P<empty>[☆\s\ufe0f]*)",
        r"(?P<stars>\*{2,5})(?P<empty>)",  # a single asterisk is a footnote
    )
)
_FRACTION = re.compile(r"\d\s?/\s?\d")
_MAX_STARS = 5
_MAX_POOR, _MIN_GOOD = 0.4, 0.7  # of the points that there are
_NO_COMMENT = re.compile(
    r"[\W_]*(?:n[/.]?a\.?|none|null|nan|nil|undefined|tbd|(?:no|without) (?:comments?|remarks?|feedback)|blank|empty"
    r"|#(?:ref|name|value|num|div/0|n/a))?[\W_]*|=\s?(?:[\w.]+\(|\$?[a-z]{1,3}\$?\d).*",
    re.IGNORECASE | re.DOTALL,
)  # the cell of a table that is empty, or a formula
_THROUGHOUT = re.compile(
    r"\bfrom (?:start|beginning|top|begin) to (?:finish|end|bottom)\b|\b(?:start|beginning) to (?:finish|end)\b",
    re.IGNORECASE,
)
_DEGREE = re.compile(
    r"\W*(?:please\W+)?(?:be |make it |make this )?(?:(?:an? (?:bit|little|tad|lot)|much|far|even|way)\s+)?(?:less|more) (?P<what>[\w-]+)"
    r"(?:,?\s*(?:please|pls|next time))?\W*",
    re.IGNORECASE,
)
_IT = r"(?:it|this|that|the (?:whole |entire )?(?:thing|answer|response|summary|text|letter|e?-?mail|story|post|article|piece|description))"
_FULL = re.compile(
    rf"\W*(?:(?:{_IT}(?:\s(?:is|was)|['’]s)|(?!(?:the|an?|this|that|its|your|my|his|her)\b)(?:[\w'’-]+\s+){{0,3}}[\w'’-]+(?=,?\s+but\b))[,\s]*)?"
    r"(?:(?:but|and|also|just|simply|completely|absolutely|sadly)\b\s*)*"
    r"(?:(?:full|chock-full) of|riddled with|littered with|packed with|peppered with|crammed with|plagued by|rife with|brimming with|nothing but|a (?:string|pile|bunch|heap) of)"
    r"\s(?P<what>[\w'’-]+(?:\s[\w'’-]+){0,2})\W*",
    re.IGNORECASE,
)
_SHARE = re.compile(
    rf"\W*(?:(?:but|and|sadly|also)\s+)*(?:(?:at least|more than|almost|nearly|about|over)\s+)?(?:half|most|much|a lot|all|a third|two thirds|large parts|big parts|every bit|the majority)"
    rf"\s+(?:of\s+)?{_IT}\s+(?:is|was|are|seems?|sounds?|feels?|reads?)\s+(?:(?:just|simply|completely|pure|quite|really|plain)\s+)*(?P<what>[\w'’-]+(?:\s[\w'’-]+)?)\W*",
    re.IGNORECASE,
)
_WRONG = r"(?:wrong|incorrect|false|inaccurate|invented|made up|off|untrue)"
_MANY = re.compile(
    rf"\W*(?:(?:but|and|also|yet|sadly|there are|there['’]re|{_IT} (?:has|had|contains?|makes?|made|gets?|got))\s+)*(?:(?:(?:far |way )?too many|so many|lots of|a lot of"
    r"|many|several|countless|numerous)\s(?P<faults>(?:[\w'’-]+\s)?(?:errors|mistakes|typos|inaccuracies|clichés|cliches|flaws|contradictions|repetitions|slips|falsehoods"
    r"|inventions|buzzwords|platitudes))|(?:many|several|countless|numerous|a lot of|some|a few|two|three|four|five)\s"
    rf"(?P<facts>facts|details|things|points|claims|statements)\s(?:(?:are|were)\s)?{_WRONG})\W*",
    re.IGNORECASE,
)
_SO = re.compile(
    rf"\W*(?:(?:but|and|also|yet|sadly|honestly)\s+)*{_IT}(?:['’]s|\s(?:is|was|sounds|feels|reads|seems|looks))\s+(?:(?:so|very|too|really|rather|quite|just|all|a bit|a little)\s+)*"
    r"(?P<what>[\w-]+)\W*",
    re.IGNORECASE,
)
_COULD = re.compile(
    rf"\W*(?:{_IT} )?(?:could|should|might) (?:have been|be) (?:(?:an? (?:bit|little|lot|tad|touch)|much|even|slightly|somewhat) )?(?:(?:more|less) )?(?P<what>[\w-]+)\W*",
    re.IGNORECASE,
)
_MANNER = word_set("""
    attempt choice content craft delivery details effort errors execution fact-checking flow form formatting grammar
    inaccuracies language layout logic mistakes organisation organization pacing phrasing presentation prose punctuation
    reasoning research result spelling structure style tone typos vocabulary wording work workmanship writing
    """)
_HOW_MADE = re.compile(
    r"\W*(?:(?:but|and|also|very|really|so|such|an?|the)\s+)*(?P<how>[\w-]+)\s+(?P<what>[\w-]+)(?:\s+(?:overall|throughout|though))?\W*",
    re.IGNORECASE,
)
_MAX_OTHER_WORDS = 1  # content words beyond those about answers and opinions, if the answer is named


def read_marks(comment: str, completion: str = "") -> Label | Literal["unsure"] | None:
    """Return the verdict of a comment that has none but marks or points; None for all others.

    Marks are a raised thumb, a cross, "+1". Points are "8/10", unless the answer has such numbers too, "4 out of 5",
    "two stars" in digits or signs; neither few nor many are "unsure".
    """
    for label, pattern in _VERDICTS.items():
        if pattern.fullmatch(comment):
            return label
    share = _read_points(comment, completion)
    if share is None:
        return None
    return "poor" if share <= _MAX_POOR else "good" if share >= _MIN_GOOD else "unsure"


def _read_points(comment: str, completion: str) -> float | None:
    """Return the share of points that a comment gives, if it does nothing else."""
    rating = next((found for pattern in _RATINGS if (found := pattern.fullmatch(comment))), None)
    if rating is None or ("/" in rating[0] and _FRACTION.search(completion)):
        return None
    groups = rating.groupdict()
    if groups.get("stars"):
        stars, empty = (sum(char in "★⭐☆*" for char in groups[name]) for name in ("stars", "empty"))
        points, most = float(stars), max(_MAX_STARS, stars + empty)
    else:
        points, most = float(groups["points"].replace(",", ".")), int(groups["most"] or _MAX_STARS)
    return points / most if points <= most else None


def is_no_comment(comment: str) -> bool:
    """Whether there is no prose: marks that say nothing, what a table has in place of a text ("n/a"), a formula."""
    return _NO_COMMENT.fullmatch(comment) is not None


def speaks_of_whole(comment: str, clause: Clause, document: Document) -> bool:
    """Whether the clause has no content but opinion and names for the answer."""
    text = comment[clause.start : clause.end]
    parts = [part for part in split_parts(text) if not is_function_part(part)]
    if document.program is not None and document.names.intersection(re.findall(r"\w+", text)):
        return False
    others = [part for part in parts if part_key(part) not in _KEYS]
    if not others:
        return bool(parts)
    answer = key_set(document.text)
    if any(part_key(part) in answer for part in others):
        return False
    named = any(part_key(part) in _ANSWER_KEYS for part in parts)
    return (named and len(others) <= _MAX_OTHER_WORDS) or _WHOLE.search(text) is not None


def is_general(text: str, document: Document) -> bool:
    """Whether a clause that fits no part of the answer speaks of all of it: "Sloppy.", "Less pushy, please."."""
    if _THROUGHOUT.search(text) or is_verdict(text, document):
        return True
    if degree := _DEGREE.fullmatch(text):
        return key_set(degree["what"]).isdisjoint(key_set(document.text))
    so = _SO.fullmatch(text) or _COULD.fullmatch(text)
    tokens = [token for token in split_tokens(so["what"] if so else text) if token.isalpha()]
    return len(tokens) == 1 and find_roles(tokens)[0][0] in ("P", "B") and "?" not in text


def is_verdict(text: str, document: Document) -> bool:
    """Whether a clause judges all of the answer in a frame of its own, in words that the answer has not.

    "Full of mistakes", "half of it is invented", "poor execution", "hardly anything is right".
    """
    if find_scarce(text) is not None:
        return not is_of_things(text)
    if many := _MANY.fullmatch(text):
        return key_set(many["faults"] or many["facts"]).isdisjoint(key_set(document.text))
    match = _FULL.fullmatch(text) or _SHARE.fullmatch(text)
    if match and {"P", "B", "S"}.isdisjoint(find_roles(split_tokens(match["what"]))[0]):
        return False  # full of what is neither good nor bad
    if match is None:
        match = _HOW_MADE.fullmatch(text)
        if (
            match is None
            or match["what"].lower() not in _MANNER
            or find_roles([match["how"].lower()])[0][0] not in ("P", "B")
        ):
            return False
    return key_set(match["what"]).isdisjoint(key_set(document.text))


def whole_words(text: str) -> tuple[int, int]:
    """Return how many content words of a text are opinions or names for the answer, and how many are others."""
    parts = [part for part in split_parts(text) if not is_function_part(part)]
    known = sum(part_key(part) in _KEYS for part in parts)
    return known, len(parts) - known
