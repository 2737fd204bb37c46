"""The parts of a comment that say something of their own: sentences, and what contrast and coordination join."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

from text2grad.align.quotes.quotations import find_quotations
from text2grad.align.stance.stance_features import MASK, find_roles, split_tokens
from text2grad.align.stance.stance_model import StanceProbabilities
from text2grad.schema import Range
from text2grad.text.lexicon import word_set

_SENTENCE_END = re.compile(
    # what is cheap to look at comes first: it decides nearly everywhere
    r"(?=[\s;\"'”’)\]])(?<=[.!?…])(?<!\be\.g\.)(?<!\bi\.e\.)(?<!\bvs\.)(?<!\bcf\.)(?<!\bMr\.)(?<!\bMs\.)(?<!\bMrs\.)(?<!\bDr\.)(?<!\bSt\.)(?<!\bNo\.)"
    r"(?<!\betc\.)(?<!\bapprox\.)(?<!^\d\.)(?<!\n\d\.)[\"'”’)\]]*\s+|\s*[;\n]+\s*"
)
_BRACKETS = re.compile(r"\([^()]{0,200}\)|\[[^\[\]]{0,200}\]|\{[^{}]{0,200}\}")

_NOT = r"(?:n['’]t\b|\s+not\b)"
_ELLIPSIS = re.compile(
    rf"(?P<left>[^,;:]{{2,60}}?\b(?:is|are|was|were)(?P<first>{_NOT})?\s+(?!(?:what|as|how|where)\b)[^,;:]{{2,30}}?)"
    rf"(?:\s*[,;]\s*(?:(?:and|but|while|yet|though)\s+)?|\s+(?:and|but|while|whereas)\s+)"
    rf"(?P<right>(?!(?:it|this|that|they|there|he|she|you|as|so|i)\b)(?:[\w'’$%:.-]+\s+){{1,4}}?(?:is|are|was|were)(?P<second>{_NOT})?)[.!\s]*",
    re.IGNORECASE,
)
_ELLIPTIC = (" is", " are", " was", " were", "not", "n't", "n’t")
_GIVEN = re.compile(
    r"\b(?:in|there|here|given|mentioned|included|covered|listed|stated|named)$", re.IGNORECASE
)  # of lacks
_CONTRAST = re.compile(
    r"(?:\s*,\s*|\s+|\s*[-–—]+\s*)(?P<word>but|yet(?!\s+to\b)|however|although|though|even though|even if|whereas|while"
    r"|except that|only that|nevertheless|nonetheless)\b(?!\s+(?:also|rather|instead|for)\b),?\s+(?=\S)",
    re.IGNORECASE,
)
_LADEN = re.compile(
    r"(?:(?:so|just|also|sadly|completely)\s+)*(?:full\s+of|(?:riddled|littered|packed|peppered|crammed|rife)\s+with|plagued\s+by)\b",
    re.IGNORECASE,
)
_NO_CONTRAST = re.compile(r"\b(?:nothing|anything|all|everything|none|help|for a|in a|once in a|and)$", re.IGNORECASE)
_CORRECTS = re.compile(rf"\b(?:not|\w+n['’]t)\b(?:\s+[\w{MASK}'’\"-]+){{1,6}}$", re.IGNORECASE)
_CONCESSION = re.compile(
    r"(?P<word>although|though|even though|even if|while|whereas|despite|in spite of|granted)\b,?\s+", re.IGNORECASE
)
_START = re.compile(
    r"(?:[-*•–]+\s+|\d+[.)]\s+)?(?P<word>but|however|yet|still|though|although|and|also|plus|nevertheless|otherwise"
    r"|on the other hand|that said)\b[,:]?\s+(?=\S)",
    re.IGNORECASE,
)
_DEPENDS = r"(?!(?:but|yet|however|although|though|while|whereas|which|who|because|since|so|as|if|when|where|not|or)\b)"
_JOINT = re.compile(
    rf"\s*,\s+(?:and\s+|plus\s+)?{_DEPENDS}(?=\S)|\s+(?:and|plus)\s+{_DEPENDS}(?=\S)|\s+[-–—]+\s+{_DEPENDS}(?=\S)",
    re.IGNORECASE,
)
_NEGATIVE = re.compile(r"(?:no|nothing|nor|neither|nowhere|not an?)\b", re.IGNORECASE)
_LACK = re.compile(
    rf"\s*[,;]\s+(?:and\s+|or\s+|but\s+)?(?={_NEGATIVE.pattern})|\s+(?:and\s+|or\s+)?(?=(?:nor|neither)\b)"
    rf"|\s+(?:and|or)\s+(?={_NEGATIVE.pattern})",
    re.IGNORECASE,
)
EXCEPT = (
    r"(?:(?:apart|aside) from|other than|except(?: for| in| when| with)?|with the exception of|save for|but for|barring"
    r"|minus)"
)
_EXCEPT_FIRST = re.compile(
    rf"(?:except for|besides|{EXCEPT})\s+(?!that\b|this\b|these\b|those\b)(?P<what>[^,]+?)"
    r"(?:\s*,\s*|\s+(?=(?:i|it|it['’]s|this|that|they|you|we|everything|all|the rest|nothing|none|hardly|barely"
    r"|scarcely|overall|no)\b"
    r"|(?:the|my|your)\s\w+\s(?:is|are|was|were|works|reads|looks)\b))",
    re.IGNORECASE,
)
_EXCEPT_LAST = re.compile(
    rf"\s*,?\s+(?<!the )(?<!try )(?<!try-){EXCEPT}\s+(?!that\b|this\b)(?P<what>\S.*)$", re.IGNORECASE
)
_ALL = re.compile(r"\W*(?:everything|anything|all(?:\s+of\s+(?:it|this|that|them))?)\W*", re.IGNORECASE)
_HAS_PREDICATE = re.compile(r"\s(?:is|are|was|were|looks?|sounds?|seems?|reads?|needs?|has|have)\s", re.IGNORECASE)
_UNTIL = re.compile(
    r"[^\w\"“]*(?:(?:it|this|all|everything)\s+(?:was|is|went|goes|reads)\s+|i\s+was\s+|i['’]m\s+)?(?:(?:very|really|all|quite|so)\s+)*"
    r"(?:ok|okay|good|great|fine|lovely|nice|well|perfect|hooked|with\s+you|on\s+board|correct|right|brilliant|excellent|wonderful"
    r"|solid|clear|convinced|impressed|(?:well|nicely|neatly|beautifully)\s+(?:written|told|done|explained|put|built))(?P<until>\s+(?:right\s+)?(?:until|till|up\s+to|up\s+until)\s+)(?P<what>\S.*)",
    re.IGNORECASE,
)  # "Lovely until the last line"
_VERBS = (
    r"is|are|was|were|be|been|am|has|have|had|do|does|did|can|could|should|would|will|must|might|may|cannot"
    r"|\w+n['’]t|\w+['’](?:s|re|m|ve|ll|d)|needs?|works?|runs?|fails?|returns?|handles?|reads?|feels?|sounds?"
    r"|looks?|seems?|makes?|takes?|gets?|gives?|goes|comes?|says?|tells?|explains?|like[sd]?|love[sd]?"
    r"|hate[sd]?|miss(?:es|ed)?|want(?:ed)?|found|find|think|thought|got|gave|went|came|said|told|made|took"
    r"|lost|left|leaves?|ends?|starts?|adds?|lacks?|forg[eo]ts?|omits?|ignores?|repeats?|crash(?:es)?|breaks?"
    r"|loops?|covers?|mentions?|asked|answers?|captures?|flows?|drags?|helps?|keeps?|stops?|confus(?:es|ed)"
    r"|bor(?:es|ed)|know|understand|understood|enjoyed|appreciated?|agree|disagree|remove|cut|drop|fix|change"
    r"|shorten|add|keep|replace|delete|stands?|falls?|hits?|nails?|nailed|overdoes|contradicts?|matches|sticks"
    r"|stays|uses?|contains?|includes?|states?|claims?|shows?|checks?|swallows|raises"
)
_VERB = re.compile(rf"\b(?:{_VERBS})\b", re.IGNORECASE)
_SUBJECT = re.compile(
    rf"(?:[\"'“‘«`]*{MASK}|(?:the|this|that|these|those|it|its|they|there|you|your|i|my|we|our|he|she|his|her|their|no|nothing|both|all|some|every|everything|each|one|a|an|what|only"
    r"|line|step|part|paragraph|sentence)\b|it['’]s|that['’]s|i['’](?:m|d|ve)|\w+_\w+|\w+\(\))",
    re.IGNORECASE,
)
_DEGREE = re.compile(r"(?:a (?:bit|little|tad|touch)|all too)\b", re.IGNORECASE)
_MEASURES = word_set("long short formal casual late early old technical general much big small hard far simple basic")
_ADJECTIVES = frozenset("PBSm")
_POLAR = frozenset("PBFSNMCWTHLc?dk")
_MIN_LACK = 0.6  # probability that a part says that something is missing
_MIN_OPPOSED = 0.6  # probability of praise and of blame on the two sides of a contrast
_MIN_OWN = 0.55  # probability of a stance with which a part says something of its own

Judge = Callable[[int, int, str, str], StanceProbabilities]
_MAX_SENTENCE = 1000  # characters: nobody writes longer ones, and each part of one is looked at for each other


class Piece(NamedTuple):
    """A part of a comment; the conjunctions before and after it; whether it is excepted from what the rest says."""

    start: int
    end: int
    before: str = ""
    after: str = ""
    is_exception: bool = False


def mask_quotations(comment: str) -> str:
    """Return the comment with every character of its quotations, marks excluded, replaced by `MASK`."""
    for start, end in find_quotations(comment):
        comment = comment[:start] + MASK * (end - start) + comment[end:]
    return comment


def split_sentences(masked: str) -> list[Range]:
    """Return the ranges of the sentences, without white space around them; none ends inside brackets."""
    blank = _blank_brackets(masked)
    found, start = [], 0
    for match in _SENTENCE_END.finditer(blank):
        found.append((start, match.start()))
        start = match.end()
    found.append((start, len(masked)))
    return [strip_range(masked, *bounds) for bounds in found if masked[slice(*bounds)].strip()]


def strip_range(text: str, start: int, end: int) -> Range:
    """Return the range without white space at its ends."""
    piece = text[start:end]
    return start + len(piece) - len(piece.lstrip()), end - (len(piece) - len(piece.rstrip()))


def split_clauses(masked: str, judge: Judge) -> list[Piece]:
    """Return the parts of a comment in order.

    judge(start, end, before, after): the stance of a part. A sentence is split where both sides say something of their
    own: at a contrast ("fine, but slow"), at "and" or a comma if the stances differ or the right side has a subject and
    a verb, and around an exception ("apart from the ending").
    """
    blank = _blank_brackets(masked)
    pieces: list[Piece] = []
    for start, end in split_sentences(masked):
        first = _START.match(blank, start, end)
        word = _key(first["word"]) if first else ""
        pieces += _split(blank, Piece(first.end() if first else start, end, word), judge)
    return pieces


def _split(text: str, piece: Piece, judge: Judge) -> list[Piece]:
    if piece.end - piece.start > _MAX_SENTENCE:
        return [piece]
    for split in (_split_ellipsis, _split_exception, _split_concession, _split_contrast, _split_lacks, _split_joint):
        parts = split(text, piece, judge)
        if parts:
            return parts
    return [piece]


def _split_ellipsis(text: str, piece: Piece, judge: Judge) -> list[Piece]:
    """Split "Monday is right, Friday isn't": what has the verb alone says the opposite of the rest."""
    if not text[piece.start : piece.end].rstrip(" .!").endswith(_ELLIPTIC):  # most sentences; the pattern is slow
        return []
    match = _ELLIPSIS.fullmatch(text, piece.start, piece.end)
    if match is None or bool(match["first"]) == bool(match["second"]) or _GIVEN.search(match["left"]):
        return []
    left = Piece(piece.start, match.end("left"), piece.before)
    return [left, Piece(match.start("right"), piece.end, "", piece.after, is_exception=True)]


def _split_exception(text: str, piece: Piece, judge: Judge) -> list[Piece]:
    start, end, before, after, _ = piece
    match = _EXCEPT_FIRST.match(text, start, end)
    if match and match.end() < end:
        exception = Piece(*match.span("what"), before, "except", is_exception=True)
        return [exception, *_split(text, Piece(match.end(), end, "except", after), judge)]
    if until := _UNTIL.fullmatch(text, start, end):
        praise = Piece(start, until.start("until"), before, "except")
        return [praise, Piece(until.start("what"), end, "except", after, is_exception=True)]
    match = _EXCEPT_LAST.search(text, start, end)
    if match and _ALL.fullmatch(text, start, match.start()) and _HAS_PREDICATE.search(match["what"]):
        return []  # "Everything except the roof is wrong" does not praise everything
    if match and _has_words(text, start, match.start()):
        main = _split(text, Piece(start, match.start(), before, "except"), judge)
        return [*main, Piece(match.start("what"), end, "except", after, is_exception=True)]
    return []


def _split_concession(text: str, piece: Piece, judge: Judge) -> list[Piece]:
    start, end, before, after, _ = piece
    match = _CONCESSION.match(text, start, end)
    comma = text.find(",", match.end(), end) if match else -1
    if match is None or comma < 0 or not _has_words(text, comma, end):
        return []
    word = _key(match["word"])
    rest = strip_range(text, comma + 1, end)
    return [Piece(match.end(), comma, before or word, word), *_split(text, Piece(*rest, word, after), judge)]


def _split_contrast(text: str, piece: Piece, judge: Judge) -> list[Piece]:
    start, end, before, after, _ = piece
    for match in _CONTRAST.finditer(text, start, end):
        left, right = (start, match.start()), (match.end(), end)
        word = _key(match["word"])
        if not _has_words(text, *left) or _NO_CONTRAST.search(text, *left) or not _has_words(text, *right):
            continue
        if _CORRECTS.search(text, *left) and not _VERB.search(text, *right):
            continue  # "not on Friday but on Monday"
        if _is_predicate(text, *right) and not _is_laden(text, *right):
            continue  # "a good guess, but wrong"
        is_temporal = word == "while" and "," not in match[0]
        if _says_something(text, left, right, judge, before, word) or (
            not is_temporal and _opposes(judge(*left, before, word), judge(*right, word, after))
        ):
            first = _split(text, Piece(*left, before, word), judge)
            return [*first, *_split(text, Piece(*right, word, after), judge)]
    return []


def _is_predicate(text: str, start: int, end: int) -> bool:
    """Whether a part has neither a subject nor a verb, and ends with an adjective: it is about the part before it."""
    if _VERB.search(text, start, end) or (_SUBJECT.match(text, start, end) and not _DEGREE.match(text, start, end)):
        return False
    tokens = [token for token in split_tokens(text[start:end]) if token not in "?!"]
    return bool(tokens) and (tokens[-1] in _MEASURES or not _ADJECTIVES.isdisjoint(find_roles(tokens[-1:])[0]))


def _is_laden(text: str, start: int, end: int) -> bool:
    """Whether a part says that there is much to blame: "riddled with errors"."""
    return _LADEN.match(text, start, end) is not None and "B" in find_roles(split_tokens(text[start:end]))[0]


def _says_something(text: str, left: Range, right: Range, judge: Judge, before: str, word: str) -> bool:
    """Whether both sides of a contrast say something; "It says A but the source says B" does so only as a whole."""
    left_roles, right_roles = (find_roles(split_tokens(text[slice(*side)]))[0] for side in (left, right))
    if not _POLAR.isdisjoint(left_roles) and _is_own(judge(*left, before, word)):
        return not _POLAR.isdisjoint(right_roles) or _VERB.search(text, *right) is not None
    reports = "s" in left_roles or "s" in right_roles or "y" in left_roles
    return not reports and all(_VERB.search(text, *side) for side in (left, right))


def _opposes(first: StanceProbabilities, second: StanceProbabilities) -> bool:
    """Whether one part praises and the other blames."""
    return max(min(first.good, second.poor), min(first.poor, second.good)) >= _MIN_OPPOSED


def _split_lacks(text: str, piece: Piece, judge: Judge) -> list[Piece]:
    """Split "nothing on the price, and no address": each part names another thing that is missing."""
    pieces = [piece]
    while parts := _split_lack(text, pieces[-1], judge):
        pieces[-1:] = parts
    return pieces if len(pieces) > 1 else []


def _split_lack(text: str, piece: Piece, judge: Judge) -> tuple[Piece, Piece] | None:
    """Split off the first thing that is missing, if the rest says that another one is."""
    start, end, before, after, _ = piece
    for match in _LACK.finditer(text, start, end):
        left, right = Piece(start, match.start(), before, "and"), Piece(match.end(), end, "and", after)
        if _has_words(text, start, match.start()) and adds_lack(text, left, right, judge):
            return left, right
    return None


def adds_lack(text: str, left: Piece, right: Piece, judge: Judge) -> bool:
    """Whether both parts say that something is missing, the right one with a negation of its own."""
    return _NEGATIVE.match(text, right.start, right.end) is not None and all(
        judge(*part[:4]).missing >= _MIN_LACK for part in (left, right)
    )


def _split_joint(text: str, piece: Piece, judge: Judge) -> list[Piece]:
    start, end, before, after, _ = piece
    for match in _JOINT.finditer(text, start, end):
        left, right = (start, match.start()), (match.end(), end)
        if not all(_is_polar(text, *side) for side in (left, right)):
            continue
        first, second = judge(*left, before, "and"), judge(*right, "and", after)
        if not (_is_own(first) and _is_own(second)):
            continue
        if (first.good > first.poor) != (second.good > second.poor) or _stands_alone(text, left, right):
            parts = _split(text, Piece(*right, "and", after), judge)
            return [Piece(*left, before, "and"), *parts]
    return []


def _is_own(probabilities: StanceProbabilities) -> bool:
    return max(probabilities.good, probabilities.poor) >= _MIN_OWN


def _is_polar(text: str, start: int, end: int) -> bool:
    return not _POLAR.isdisjoint(find_roles(split_tokens(text[start:end]))[0])


def _stands_alone(text: str, left: Range, right: Range) -> bool:
    """Whether both sides are whole clauses: the left has a verb, the right a subject and a verb soon after it."""
    if not _VERB.search(text, *left) or not _SUBJECT.match(text, *right):
        return False
    verb = _VERB.search(text, *right)
    return verb is not None and len(text[right[0] : verb.start()].split()) <= 6


def _has_words(text: str, start: int, end: int) -> bool:
    return any(character.isalnum() or character == MASK for character in text[start:end])


def _blank_brackets(masked: str) -> str:
    if not any(bracket in masked for bracket in "([{"):
        return masked
    return _BRACKETS.sub(lambda match: match[0][0] + MASK * (len(match[0]) - 2) + match[0][-1], masked)


def _key(word: str) -> str:
    return " ".join(word.lower().split())


def main_parts(pieces: list[Piece]) -> Iterator[tuple[Piece, Piece | None]]:
    """Yield every part, and for an exception the part that it is excepted from: the one that it adjoins."""
    for i, piece in enumerate(pieces):
        if not piece.is_exception:
            yield piece, None
        elif piece.after == "except":
            yield piece, pieces[i + 1] if i + 1 < len(pieces) else None
        else:
            yield piece, pieces[i - 1] if i else None
