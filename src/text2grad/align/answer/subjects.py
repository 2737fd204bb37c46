"""What a clause speaks of in its grammatical subject or after "about": "The lemon is a nice touch", "the tram tip"."""

# ruff: noqa: E501  one pattern per line

from __future__ import annotations

import re
from collections.abc import Iterator

from text2grad.align.answer.document import Document
from text2grad.align.answer.proposals import Proposal
from text2grad.schema import Range
from text2grad.text.whitespace import PUNCTUATION, WhitespaceWord, is_function_part, part_key, split_parts, split_words

_VERB = (
    r"(?:is|are|was|were|isn['’]t|aren['’]t|wasn['’]t|weren['’]t|seems?|sounds?|looks?|feels?|reads?|should|shouldn['’]t|must"
    r"|could|can|needs?|has to|have to|has|have|makes?|does(?:n['’]t)?|do(?:n['’]t)?|takes?|comes?|gets?|works?|adds?|deserves?)"
)
_LEAD = r"\W*(?:(?:but|and|however|yet|also|although|though|while|still|plus|only|even)\s+)*"
_DETERMINER = r"(?:(?:the|this|that|these|those|your|its|his|her|their|an?|all|both)\s+)?"
_SUBJECT = re.compile(rf"{_LEAD}{_DETERMINER}(?P<subject>(?:[\w'’-]+\s+){{1,5}}?){_VERB}\b", re.IGNORECASE)
_ABOUT = re.compile(
    r"\b(?:(?:part|bit|line|sentence|passage|section|paragraph|point|claim|statement|remark|mention|story|detail|idea|tip|advice"
    r"|explanation|description|comparison|joke|note|paragraph|step|stuff|info(?:rmation)?)s?\s+(?:about|on|of|with|regarding"
    r"|concerning|where|that|how|saying)"
    r"|(?:love|like|liked|loved|enjoyed|appreciate|hate|dislike|remove|delete|drop|cut|omit|skip|lose|keep|nice touch with"
    r"|not sure about|disagree with))\s+(?:the\s+|that\s+|your\s+|its\s+|how\s+|an?\s+)?(?P<about>(?:[\w'’-]+\s*){1,6})",
    re.IGNORECASE,
)
# Nouns that name the sentence around what they qualify: "the tram tip", "the cat line"
_SENTENCE_NOUNS = frozenset(
    map(
        part_key,
        [
            "tip",
            "advice",
            "part",
            "bit",
            "line",
            "sentence",
            "remark",
            "claim",
            "statement",
            "point",
            "warning",
            "story",
            "joke",
            "step",
            "idea",
            "comment",
            "mention",
            "detail",
            "suggestion",
            "section",
            "passage",
            "paragraph",
            "note",
            "explanation",
            "description",
            "argument",
            "reason",
        ],
    )
)
_WORDS_CONFIDENCE, _SENTENCE_CONFIDENCE = 0.65, 0.6


def find_subjects(comment: str, start: int, end: int, document: Document) -> Iterator[Proposal]:
    """Yield what comment[start:end] is about: words of the answer where it has all of them, else their sentence."""
    words = split_words(document.text)
    matches = [(m.span("subject"), False) for m in [_SUBJECT.match(comment, start, end)] if m]
    matches += [(m.span("about"), "love" not in m[0].lower()) for m in _ABOUT.finditer(comment, start, end)]
    for phrase, is_sentence in matches:
        parts = [part for part in split_parts(comment[slice(*phrase)]) if not is_function_part(part)]
        keys = [part_key(part) for part in parts]
        named = [key for key in keys if key not in _SENTENCE_NOUNS]
        if not named:
            continue
        if len(named) == len(keys) and not is_sentence:
            runs = _runs(words, named)
            if runs:
                yield Proposal("mention", phrase, (runs[0],), _WORDS_CONFIDENCE / len(runs))
                return
        place, share, ties = _best_sentence(words, named, document)
        if place is not None and share >= 0.5:
            yield Proposal("mention", phrase, (place,), _SENTENCE_CONFIDENCE * (0.5 + share / 2) / ties)
            return


def _runs(words: list[WhitespaceWord], keys: list[str]) -> list[Range]:
    """Return the places where the completion has these words next to each other, in this order."""
    found = []
    flat = [(key, word) for word in words for key in word.keys]
    for i in range(len(flat) - len(keys) + 1):
        if [key for key, _ in flat[i : i + len(keys)]] == keys:
            first, last = flat[i][1], flat[i + len(keys) - 1][1]
            lead = len(first.text) - len(first.text.lstrip(PUNCTUATION))
            tail = len(last.text) - len(last.text.rstrip(PUNCTUATION))
            found.append((first.start + lead, last.end - tail))
    return [place for place in dict.fromkeys(found) if place[0] < place[1]]


def _best_sentence(words: list[WhitespaceWord], keys: list[str], document: Document) -> tuple[Range | None, float, int]:
    """Return the sentence with most of the words, the share of them that it has, and how many sentences tie."""
    scores: dict[Range, set[str]] = {}
    for word in words:
        shared = set(keys).intersection(word.keys)
        if shared:
            scores.setdefault(document.sentence_at(word.start), set()).update(shared)
    if not scores:
        return None, 0.0, 1
    best = max(len(found) for found in scores.values())
    ties = [place for place, found in scores.items() if len(found) == best]
    return ties[0], best / len(set(keys)), len(ties)
