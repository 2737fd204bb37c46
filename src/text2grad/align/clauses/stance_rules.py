"""Wordings whose stance is certain, whatever their single words suggest: "Too cold a welcome", "Oh great, a dream".

The stance models know words and their order; a word that the answer itself has ("science fiction") says nothing of the
stance, and a few frames say all of it. These rules come after the models.
"""

# ruff: noqa: E501  one pattern per line

from __future__ import annotations

import re
from dataclasses import replace

from text2grad.align.answer.document import Document
from text2grad.align.answer.kinds import find_kinds
from text2grad.align.clauses.clauses import MIN_MISSING, Clause
from text2grad.align.omissions import is_present, omission_text
from text2grad.align.stance.stance_features import find_roles, split_tokens
from text2grad.schema import Label, Range
from text2grad.text.lexicon import word_set
from text2grad.text.whitespace import key_set, split_words

_LEAD = r"[^\w\"“‘«`]*(?:(?:but|and|though|still|also|just|it['’]s|it is|this is|that['’]s|that is)\s+)*"
_EXCESS = re.compile(
    rf"{_LEAD}(?:(?:far|way|much|a (?:bit|little|tad|touch)|slightly|somewhat|rather|simply|all)\s+)*too\s+"
    r"(?!bad\b|good\b|much (?:to ask|fun)\b|(?:many|few) (?:people|writers?|answers?)\b|right\b|true\b)\w+",
    re.IGNORECASE,
)
_MOCKING = re.compile(
    r"\W*(?:oh|ah|wow)\W+(?:how\s+|that['’]s\s+|just\s+|so\s+)?(?:great|wonderful|brilliant|lovely|perfect|fantastic|super"
    r"|nice|marvellous|good|joy)\s*[,.!…:–—-]+\s*(?=\w+\s+\w)",
    re.IGNORECASE,
)  # "Oh, that's nice" alone is praise
_NOW = re.compile(
    r"\W*(?:great|wonderful|brilliant|lovely|perfect|fantastic|super|nice|congratulations|well done|bravo)\s*[,:–—-]+\s*(?:so\s+)?now\s+\w",
    re.IGNORECASE,
)
_ALL_BUT = re.compile(
    rf"{_LEAD}(?:everything|all(?:\s+of\s+(?:it|this|that|them))?|anything)\s+(?:but|except(?:\s+for)?|besides|other\s+than|apart\s+from)\s+[^,;]{{2,60}}?\s"
    r"(?:is|are|was|were|looks?|sounds?|seems?|reads?|needs?|has|have)\b",
    re.IGNORECASE,
)  # blames or praises what it does not name
_PLAIN_PRAISE = re.compile(
    r"\W*(?P<subject>(?:the|your|its|this|that|his|her|their|all|both)\s[^,;:?!]{2,70}?)\s+(?:is|are|was|were|looks?|sounds?"
    r"|seems?|reads?)\s+(?:(?:very|really|quite|just|perfectly|absolutely|also|all|totally|pretty|completely)\s+)*"
    r"(?:fair(?: enough)?|fine|right|correct|good|great|clear|perfect|excellent|accurate|true|lovely|helpful|useful|ok(?:ay)?"
    r"|spot[\s-]on)[.\s]*",
    re.IGNORECASE,
)
_NO_PLAIN_PRAISE = re.compile(
    r"\b(?:not|no|never|nothing|none|nobody|neither|nor|hardly|only|if|would|should|could|who|whether|doubt|almost|too"
    r"|until|unless|when|think|thought|less|more|what|why|how|other|opposite|reverse|contrary|false|wrong|lie|claims?\s+that)\b|n['’]t\b",
    re.IGNORECASE,
)
_NO_EXCESS = re.compile(
    rf"{_LEAD}(?:(?:[\w'’-]+\s+){{1,6}}?(?:is|are|was|were|feels?|sounds?|reads?)\s*)?(?:n['’]t|\bnot)\s+too\s+(?P<adjective>[a-z]+)[.!\s]*",
    re.IGNORECASE,
)
_VOTE = re.compile(r"\W*\+1\s+(?:for|on|to)\b", re.IGNORECASE)
_EXCLAIMED = re.compile(
    r"\W*how\s+(?:very\s+|really\s+|absolutely\s+|truly\s+)?(?P<adjective>[a-z]+)\s*!+\W*", re.IGNORECASE
)  # with a full stop it may be mockery
_PROHIBITION = re.compile(
    rf"{_LEAD}(?:please\s+)?(?:do\s+not|don['’]t|dont|avoid|stop(?=\s+\w+ing\b)|never(?!\s+(?:\w+(?:s|ed)|said|told|gave|got|made|went|came|found|saw|read|did)\b))\s+(?!(?:know|think|mind|care|worry|change|touch|get|"
    r"understand|see|like|believe|even|agree|have|need|want|be|forget|hesitate|remove|delete|cut|drop|lose|you|really|quite|recall|"
    r"remember|leave\s+(?:\w+\s+){0,4}?out|omit|skip|miss|ignore|neglect|overlook|hide|ask|seen|heard|knew|thought|before|would|did|at|again|mine)\b)[a-z]+\s+\w",
    re.IGNORECASE,
)
_NEITHER = re.compile(
    rf"{_LEAD}neither\s+[^,;:?]{{2,80}}?\s+nor\s+[^,;:?]{{2,60}}?\s+(?:is|are|was|were|seems?|looks?|sounds?|feels?)\s+(?P<said>[a-z-]+)[.!\s]*",
    re.IGNORECASE,
)
_REQUEST = re.compile(
    r"\W*(?:(?:please|also|and|but|better|just|maybe|perhaps|then|next\s+time)\b,?\s+)*(?:mention|include|state|describe|explain|name|specify|cite|quote|show|give|provide"
    r"|offer|say|tell\s+(?:us|me|them|the\s+reader))\s+(?P<what>(?:about\s+)?(?:an?|some|one|more|another|the|your|any|how|why|what|who|where|when|which)\s[^,;:?!\"“”]{2,60}?)"
    r"(?:,?\s+(?:too|as\s+well|please|instead|at\s+least|next\s+time))*[.!\s]*",
    re.IGNORECASE,
)  # of what is to be said; "mentions" says what is there
_COULD_BE = re.compile(
    rf"{_LEAD}(?:(?:it|this|that|(?:the|your|its)\s+[\w'’-]+(?:\s[\w'’-]+)?)\s+)?(?:could|should|might|ought\s+to)\s+(?:have\s+been|be)\s+(?:(?:an?\s+(?:bit|little|lot|tad|touch)|much|even"
    r"|slightly|somewhat)\s+)?(?:(?:more|less)\s+[\w-]+|(?!(?:other|over|under|either|after|later|earlier|better|together|rather|another)\b)\w{3,}er)[.!\s]*",
    re.IGNORECASE,
)
_DOUBT = re.compile(
    rf"{_LEAD}(?:i(?:['’]m| am)?\s+(?:(?:really|very|seriously|strongly|rather|highly|also)\s+)*(?:doubt(?:ful)?(?!\s+(?:anyone|anybody|there|i|we|you|it\s+(?:can|could)|this\s+(?:can|could)))"
    r"|question(?=\s+(?:the|whether|that)\b))\b|(?:(?:i|we|you)\s+)?(?:could|can)(?:n['’]t|not|\s+not)\s+(?:verify|confirm|substantiate|find\s+(?:any\s+)?(?:evidence|support)\s+for)\b)",
    re.IGNORECASE,
)
_NO_DOUBT = re.compile(r"\b(?:better|improve\w*|more|else|fault|wrong|mistakes?|errors?)\b", re.IGNORECASE)
_MOVE = re.compile(
    rf"{_LEAD}(?:(?:please|better|maybe|perhaps)\s+)*(?:put|move|place|bring|shift)\s+(?P<what>(?:the|your|this|that|its)\s[^,;:?!\"“”]{{2,50}}?)\s+(?:first|last|earlier|later|up|down|forward"
    r"|further\s+(?:up|down)|(?:at|to|near)\s+the\s+(?:very\s+)?(?:top|end|start|beginning|bottom|front)|(?:before|after|above|below)\s+[^,;:?!]{2,40})[.!\s]*",
    re.IGNORECASE,
)
_MEASURES = word_set(
    "long short formal casual technical general much big small hard simple complicated wordy fancy sweet"
)
_MAX_SUBJECT = 9  # words
_NEGATIVE = frozenset("BSL")
_EXCESS_PROBABILITY, _MOCKING_PROBABILITY, _PLAIN_PROBABILITY = 0.93, 0.85, 0.85
_PROHIBITION_PROBABILITY, _EXCLAIMED_PROBABILITY, _REQUEST_PROBABILITY = 0.8, 0.8, 0.85
_DOUBT_PROBABILITY = 0.75


def correct_stance(comment: str, clause: Clause, document: Document) -> Clause:
    """Return the clause with the stance that its wording settles; unchanged if that settles none."""
    bounds = (clause.start, clause.end)
    asks = "?" in comment[slice(*bounds)]
    if _ALL_BUT.match(comment, *bounds):
        return replace(clause, stance="unsure", probability=_EXCESS_PROBABILITY, missing=None, lacks=0.0)
    if _EXCESS.match(comment, *bounds) and not asks:
        return _with_stance(clause, "poor", _EXCESS_PROBABILITY)
    if _MOCKING.match(comment, *bounds) or _NOW.match(comment, *bounds):
        return _with_stance(clause, "poor", _MOCKING_PROBABILITY)
    if _exclaims_praise(comment, bounds):
        return _with_stance(clause, "good", _EXCLAIMED_PROBABILITY)
    if (neither := _NEITHER.fullmatch(comment, *bounds)) and (stance := opposite_stance(neither["said"])):
        return _with_stance(clause, stance, _PLAIN_PROBABILITY)
    if clause.lacks < MIN_MISSING and (request := _REQUEST.fullmatch(comment, *bounds)):
        return _read_request(comment, clause, request.span("what"), document)
    if (move := _MOVE.fullmatch(comment, *bounds)) and _answer_has(comment, move.span("what"), document):
        return replace(_with_stance(clause, "poor", _REQUEST_PROBABILITY), missing=None, lacks=0.0)
    if clause.stance == "unsure" and _COULD_BE.fullmatch(comment, *bounds):
        return _with_stance(clause, "poor", _DOUBT_PROBABILITY)
    is_doubt = clause.stance == "unsure" and _DOUBT.match(comment, *bounds)
    if is_doubt and not _NO_DOUBT.search(comment, *bounds):
        return _with_stance(clause, "poor", _DOUBT_PROBABILITY)
    if clause.stance != "good" and not asks and _PROHIBITION.match(comment, *bounds):
        return replace(_with_stance(clause, "poor", _PROHIBITION_PROBABILITY), missing=None, lacks=0.0)
    if clause.stance != "good" and _praises_plainly(comment[slice(*bounds)], document):
        return _with_stance(replace(clause, missing=None, lacks=0.0), "good", _PLAIN_PROBABILITY)
    return clause


def _exclaims_praise(comment: str, bounds: Range) -> bool:
    """Whether a clause is nothing but "How lovely!", "Not too long" or "+1 for the title"."""
    if exclaimed := _EXCLAIMED.fullmatch(comment, *bounds):
        return find_roles([exclaimed["adjective"].lower()])[0] == ["P"]
    if excess := _NO_EXCESS.fullmatch(comment, *bounds):
        adjective = excess["adjective"].lower()
        return adjective in _MEASURES or find_roles([adjective])[0] == ["B"]
    return _VOTE.match(comment, *bounds) is not None


def opposite_stance(word: str) -> Label | None:
    """Return the stance of who says that something is not as this word of praise or blame says."""
    letter = find_roles([word.lower()])[0][0]
    return "poor" if letter == "P" else "good" if letter == "B" else None


def _read_request(comment: str, clause: Clause, what: Range, document: Document) -> Clause:
    """Return a clause that asks to say something as blame: of what the answer says of it, else for its lack."""
    blame = _with_stance(clause, "poor", _REQUEST_PROBABILITY)
    is_there = _answer_has(comment, what, document) or any(True for _ in find_kinds(comment, *what, document))
    if document.program is not None or is_there:
        return replace(blame, missing=None, lacks=0.0)
    return replace(blame, missing=what, lacks=_REQUEST_PROBABILITY)


def _answer_has(comment: str, what: Range, document: Document) -> bool:
    """Whether the answer has what these words of a comment name."""
    return is_present(omission_text(comment, what), document.text)


def _with_stance(clause: Clause, stance: Label, probability: float) -> Clause:
    """Return the clause with this stance, if it is not as certain of it."""
    if clause.stance == stance and clause.probability >= probability:
        return clause
    return replace(clause, stance=stance, probability=probability)


def _praises_plainly(text: str, document: Document) -> bool:
    """Whether a clause says no more than that something is fine, and its only words of blame are the answer's own."""
    match = _PLAIN_PRAISE.fullmatch(text)
    if match is None or _NO_PLAIN_PRAISE.search(text) or len(match["subject"].split()) > _MAX_SUBJECT:
        return False
    tokens = split_tokens(match["subject"])
    blaming = [token for token, letter in zip(tokens, find_roles(tokens)[0], strict=True) if letter in _NEGATIVE]
    own = key_set(document.text)
    return bool(blaming) and all(
        own.issuperset(key for word in split_words(token) for key in word.keys) for token in blaming
    )
