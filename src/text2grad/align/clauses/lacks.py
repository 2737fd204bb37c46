"""Clauses that speak of a lack and do not complain of one: "Nothing is left out", "You wisely skipped the price".

The stance models take the words of a lack for blame. Here the wording is read: whether the lack is denied, whether it
is welcome, and whether something is there that need not be.
"""

# ruff: noqa: E501  one pattern per line

from __future__ import annotations

import re

_LEAD = r"[^\w\"“‘«`]*(?:(?:but|and|though|still|also|just|so|as\s+far\s+as\s+i\s+can\s+(?:see|tell),?)\s+)*"
_BE = r"(?:is|are|was|were|(?:has|have)\s+been|gets?|got|seems?(?:\s+to\s+be)?|appears?(?:\s+to\s+be)?|goes|went)"
_LEFT_OUT = (
    r"(?:missing|lacking|absent|left\s+(?:out|off|unsaid)|omitted|skipped|forgotten|overlooked|ignored|neglected|dropped|lost"
    r"|unmentioned|unexplained|unsaid)"
)
_TAIL = r"(?:\s+(?!(?:but|except|apart|that|which|who|if|unless|until|besides|other)\b)[\w'’-]+){0,6}[\s.!]*"
_DENIED = re.compile(
    rf"{_LEAD}(?:(?:no|not\s+(?:a|one)|none\s+of|neither|hardly\s+any|scarcely\s+any)\s+(?P<what>[^,;:?!]{{2,60}}?)|nothing(?:\s+\w+){{0,3}}?|none)\s+"
    rf"(?:{_BE}\s+)(?:(?:really|actually|here|being|simply)\s+)*{_LEFT_OUT}{_TAIL}"
    rf"|{_LEAD}there(?:['’]s|\s+is|\s+are|\s+was|\s+were)\s+(?:nothing(?:\s+\w+){{0,2}}?|no\s+(?P<thing>[\w'’-]+(?:\s+[\w'’-]+){{0,2}}?))\s+(?:that\s+{_BE}\s+)?{_LEFT_OUT}{_TAIL}",
    re.IGNORECASE,
)
_TELLING = re.compile(
    r"\b(?:mention|word|hint|explanation|indication|sign|note|idea|clue|information|reason|warning|list)\s+(?:of|on|about|why|as\s+to|that)\b"
    r"|\b(?:what|which|who|that|why|where|how)\b",
    re.IGNORECASE,
)  # "No hint of what is missing"
_DROP = r"(?:leav(?:e|es|ing)|left)\s+(?:\w+\s+){0,5}?out|(?:omit(?:s|ted|ting)?|skip(?:s|ped|ping)?|dropp?(?:s|ed|ing)?|avoid(?:s|ed|ing)?|exclud(?:es?|ed|ing))"
_DROPPING = r"(?:leaving\s+(?:\w+\s+){0,5}?out|omitting|skipping|dropping|avoiding|excluding)"
_NOT = r"(?:(?:do|does|did|has|have|is|are|was|were)(?:n['’]t|\s+not)|never|not)"
_SAY = r"(?:mention|includ|stat|say|said|giv|add|list|discuss|tell|told|explain|describ|bring|brought|go|went|cover|repeat|quot|spell|nam)\w*"
_LACKING = rf"(?:(?:\w+\s+)?(?:{_DROP})\b|(?:have\s+|has\s+)?(?:{_DROP})\b|{_NOT}\s+(?:been\s+|get\s+)?(?:{_SAY}|there|in)\b|(?:has|have|had|contains?|gives?|gave|is|are|was|were|there['’]s)\s+no\b|{_BE}\s+(?:{_LEFT_OUT})\b)"
_SUBJECT = r"(?:(?!(?:but|and|or|want|need)\b)[\w'’-]+\s+){0,5}?"
_PLEASED = (
    r"(?:glad|happy|pleased|relieved|grateful|thankful|delighted|wise|sensible|smart|clever|good|great|nice|lovely|kind|fine"
    r"|brilliant|excellent|thanks|thank\s+you|liked?|loved?|appreciated?|enjoy(?:ed)?|welcome|relief|applaud|commend|praise"
    r"|(?:right|correct)(?=\s+(?:not\s+)?to\b))"
)  # "You are right that the price is missing" says that it is
_RIGHTLY = (
    r"(?:rightly|wisely|sensibly|correctly|properly|thankfully|fortunately|luckily|mercifully|smartly|cleverly"
    r"|appropriately|helpfully|gladly|nicely|kindly|happily|skilful?ly|skillfully|prudently|judiciously)"
)
_IT = r"(?:you|it|they|he|she|this|there|(?:the|your)\s+(?:answer|summary|text|letter|response|reply|story|poem|message|article))"
_WELCOME = re.compile(
    rf"(?P<head>{_LEAD}(?:[\w'’]+\s+){{0,5}}?)(?:(?<!\bthe\s)(?<!\ba\s)(?<!\ban\s)(?<!\bmy\s)(?<!\byour\s)(?<!\bits\s){_PLEASED}"
    rf"|{_PLEASED}\s+(?:job|call|idea|choice|decision|move|thing|work))(?:\s+of\s+(?:you|it))?\s+"
    rf"(?:(?:(?:that|how)\s+{_SUBJECT}|{_IT}\s+(?:\w+ly\s+)?){_LACKING}|(?:(?:for|of|in|on)\s+)?(?:not\s+{_SAY}|{_DROPPING})\b|to\s+(?:not\s+{_SAY}|{_DROP})\b|not\s+to\s+{_SAY})",
    re.IGNORECASE,
)
_ADVERB = re.compile(
    rf"(?P<head>{_LEAD}{_SUBJECT}){_RIGHTLY}\s+{_LACKING}|{_LEAD}{_RIGHTLY},?\s+{_SUBJECT}{_LACKING}", re.IGNORECASE
)
_NOT_PLEASED = re.compile(
    r"\b(?:not|no|never|hardly|would|could|should|might|must|if|wish|hope[ds]?|unless|until|why|what|when|who|than|but|too|less|seems?|sure)\b|n['’]t\b|['’]d\b",
    re.IGNORECASE,
)
_PLACE = r"(?:\s+(?:here|at\s+all|really|either|anymore|(?:in|for|at|with)\s+[^,;:?!]{2,40}))?[\s.!]*"
_NEEDLESS = re.compile(
    rf"{_LEAD}(?:there(?:['’]s|\s+is|\s+was)\s+)?no\s+(?!one\b)[^,;:?!]{{2,50}}?\s+(?:(?:is|are|was|were)\s+)?(?:really\s+|even\s+)?(?:needed|necessary|required|called\s+for|wanted){_PLACE}"
    rf"|{_LEAD}(?:the|your|this|that|an?|these|those|such)\s+[^,;:?!]{{2,50}}?\s+(?:is|are|was|were)(?:n['’]t|\s+not)\s+(?:really\s+|even\s+|at\s+all\s+)?(?:needed|necessary|required|called\s+for|wanted){_PLACE}"
    rf"|{_LEAD}(?:you\s+)?(?:do\s+not|don['’]t|did\s+not|didn['’]t|need\s+not|needn['’]t)\s+(?:need|have)\s+to\s+\w+[^,;:?!]{{0,60}}",
    re.IGNORECASE,
)
_WORK_ON_IT = re.compile(
    r"\b(?:changes?|edits?|corrections?|fix(?:es)?|revisions?|improvements?|rewrit\w+|action|comments?|further|other|more"
    r"|additional|adjustments?|clarifications?|explanations?)\b",
    re.IGNORECASE,
)  # what is not needed where all is well
_INSTEAD = re.compile(
    r"\W*(?:(?:but|and|also|so)\s+)*(?:instead\s+of|rather\s+than)\s+\w+ing\b[^,;:]*,\s*(?P<main>.+)",
    re.IGNORECASE | re.DOTALL,
)
_STATEMENT = re.compile(
    r"(?:it|you|he|she|we|they|i|there|the|this|that|these|those|a|an|your|its|his|her|their)\b(?!.*\b(?:should|could|might|must|ought|needs?\s+to|want|prefer)\b|['’]d\b)",
    re.IGNORECASE | re.DOTALL,
)  # "Instead of giving the price, it tells a joke" says that the price is missing


def denies_lack(text: str) -> bool:
    """Whether a clause says that nothing, or no such thing, is missing."""
    match = _DENIED.fullmatch(text)
    return match is not None and not _TELLING.search(match["what"] or match["thing"] or "")


def welcomes_lack(text: str) -> bool:
    """Whether a clause is glad of something left out."""
    if "?" in text:
        return False
    matches = (pattern.match(text) for pattern in (_ADVERB, _WELCOME))
    return any(match is not None and not _NOT_PLEASED.search(match["head"] or "") for match in matches)


def is_needless(text: str) -> bool:
    """Whether a clause says that something need not be there, or asks for something else in its place.

    "No greeting needed" and "Instead of apologising, suggest another date" blame what is there.
    """
    if "?" in text:
        return False
    if _NEEDLESS.fullmatch(text) and not _WORK_ON_IT.search(text):
        return True
    instead = _INSTEAD.match(text)
    return instead is not None and not _STATEMENT.match(instead["main"])
