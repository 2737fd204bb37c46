"""Clauses that say that the source has not what the answer says: "Rain is nowhere in the article."

They blame words of the answer. That the *answer* has it tells them from those that say what the answer lacks.
"""

from __future__ import annotations

import re
from dataclasses import replace

from text2grad.align.answer.document import Document
from text2grad.align.clauses.clauses import Clause
from text2grad.align.omissions import is_present, omission_text
from text2grad.schema import Range

_SOURCE = (
    r"(?:(?:the|this|that|your|our|my|original)\s+)+(?:(?:original|source|input|news|given)\s+)*(?:source|article|text|original|document|passage|report"
    r"|transcript|prompt|question|input|task|job\s+(?:ad|advert|posting))(?:\s+(?:text|article|material|document))?"
)
_LEAD = r"\W*(?:(?:but|and|also|so|actually|sadly|sorry)\b[,\s]+)*"
_WHAT = r"(?P<what>[^,;:.?!]{2,60}?)"
_END = r"(?:\s+(?:at\s+all|anywhere|though|either))*(?:,?\s+n?or\s+(?:is|are|was|were)\s+[\w\s'’-]{2,30})?\W*"
_NOT = r"(?:n['’]t|\s+not|\s+never)"
_UNFOUNDED = tuple(
    re.compile(_LEAD + pattern + _END, re.IGNORECASE)
    for pattern in (
        rf"(?:(?:the|this|that|any|all\s+(?:of\s+)?the)\s+)?{_WHAT}\s+(?:(?:is|are|was|were|appears?|occurs?|can\s+be)\s+)?nowhere\s+"
        rf"(?:(?:to\s+be\s+)?(?:found|seen|mentioned|stated|said|supported)\s+)?(?:in|by)\s+{_SOURCE}",
        rf"{_WHAT}\s+(?:is|are|was|were|does|do|did|can|could|has|have){_NOT}\s+(?:(?:actually|even|really|ever|be|been|anywhere)\s+)*(?:(?:found|mentioned"
        rf"|stated|said|supported|backed(?:\s+up)?|given|present|appear|occur|come|covered|discussed)\s+)?(?:(?:anywhere|up)\s+)*(?:in|by|from)\s+{_SOURCE}",
        rf"{_SOURCE}\s+(?:(?:does|do|did){_NOT}|never|nowhere|(?:says?|said|has|had|contains?|gives?)\s+nothing)\s+(?:(?:actually|even|really|once|ever)\s+)*"
        rf"(?:(?:mention|say|state|speak|talk|refer|contain|support|claim|include|suggest|imply|tell)(?:s|ed)?\s+)?(?:(?:anything|us|a\s+word)\s+)*(?:(?:about|of|on|to|that)\s+)?{_WHAT}",
        rf"(?:(?:there\s+is|there['’]s)\s+)?(?:nothing|not\s+a\s+word|no\s+(?:word|mention|trace|sign|talk))\s+(?:about|on|of)\s+{_WHAT}\s+(?:anywhere\s+)?in\s+{_SOURCE}",
        rf"(?:nothing|not\s+a\s+word|no\s+(?:word|mention|trace|sign))\s+(?:anywhere\s+)?in\s+{_SOURCE}\s+(?:about|on|of|says|suggests|supports)\s+{_WHAT}",
        rf"(?:i|we|you|one)\s+(?:can|could|do|did)(?:n['’]t|not|\s+not)\s+(?:find|see|spot|locate)\s+(?:any\s+|a\s+)?{_WHAT}\s+(?:anywhere\s+)?in\s+{_SOURCE}",
        rf"(?:(?:there\s+(?:is|are|was|were)|there['’]s|i\s+(?:see|found|find))\s+)?no\s+{_WHAT}\s+(?:anywhere\s+)?in\s+{_SOURCE}",
        rf"where\s+(?:do|does|did)\s+(?!(?:i|you|we|they|he|she|one|it)\b){_WHAT}\s+come\s+from",
        rf"where\s+(?:did|do)\s+(?:you|it|they)\s+(?:get|find|take)\s+{_WHAT}(?:\s+from)?",
    )
)
_CUES = ("source", "article", "text", "original", "document", "passage", "report", "transcript", "prompt", "question",
         "input", "task", "job", "where")  # fmt: skip
_NEGATION = re.compile(r"\b(?:not|no|never|nothing|nowhere|none|unknown)\b|n['’]t\b", re.IGNORECASE)
_PROBABILITY = 0.9


def find_unfounded(comment: str, bounds: Range, document: Document) -> Range | None:
    """Return the words that name what a clause says the source has not, if the answer has it."""
    lower = comment[slice(*bounds)].lower()
    if document.program is not None or not any(cue in lower for cue in _CUES):
        return None
    for pattern in _UNFOUNDED:
        if match := pattern.fullmatch(comment, *bounds):
            what = match.span("what")
            is_denial = _NEGATION.search(comment, *what) is not None
            return what if not is_denial and is_present(omission_text(comment, what), document.text) else None
    return None


def blame_unfounded(comment: str, clause: Clause, document: Document) -> Clause:
    """Return the clause as blame that says of nothing that it is missing, if it says what the source has not."""
    if clause.stance == "good" or find_unfounded(comment, (clause.start, clause.end), document) is None:
        return clause
    probability = max(_PROBABILITY, clause.probability if clause.stance == "poor" else 0.0)
    return replace(clause, stance="poor", probability=probability, missing=None, lacks=0.0)
