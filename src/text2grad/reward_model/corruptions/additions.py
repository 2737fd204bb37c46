"""What the source does not say, what nobody asked for, and what was said before."""

from __future__ import annotations

import re
from random import Random

from text2grad.reward_model.corruptions.edits import Edit, insertion
from text2grad.reward_model.corruptions.material import FaithfulText, Pool, pick_new, sentences_of
from text2grad.text.lexicon import ARTICLES, PREPOSITIONS

_MODIFIERS = (
    "former", "British", "American", "French", "German", "Scottish", "Welsh", "Irish", "Chinese", "Australian",
    "18-year-old", "34-year-old", "two-time", "record-breaking", "controversial", "leading", "senior", "veteran",
    "new", "annual", "historic", "award-winning", "major", "popular", "unique", "state-of-the-art", "international",
    "national", "retired", "famous", "rare", "temporary", "second", "third", "unexpected", "large-scale", "real-time",
)  # fmt: skip
_OPENERS = PREPOSITIONS | frozenset({"and", "who", "which", "when", "where", "because", "to", "while", "as"})


def add_phrase(text: FaithfulText, pool: Pool, rng: Random) -> Edit | None:
    """Insert a place, a time or an amount of another text where a phrase may stand."""
    places = _phrase_places(text)
    phrase = pick_new(pool.phrases, text, rng)
    return insertion(rng.choice(places), f" {phrase}", "added phrase") if places and phrase else None


def add_modifier(text: FaithfulText, _: Pool, rng: Random) -> Edit | None:
    """Insert an adjective after an article."""
    parsed = text.completion
    places = [
        word.end
        for i, word in enumerate(parsed.words[:-1])
        if word.text.lower() in ARTICLES - {"an"} and parsed.after(i) == " " and parsed.words[i + 1].is_content
    ]
    fitting = [word for word in _MODIFIERS if word[0] not in "aeiouAEIU8" and text.is_new(word)]
    return insertion(rng.choice(places), f" {rng.choice(fitting)}", "added phrase") if places and fitting else None


def add_clause(text: FaithfulText, pool: Pool, rng: Random) -> Edit | None:
    """Insert a clause of another text at the end of a sentence."""
    ends = [match.start() for match in re.finditer(r"(?<=\w)[.!?](?=\s|$)", text.example.completion)]
    clause = pick_new(pool.clauses, text, rng)
    return insertion(rng.choice(ends), clause, "added clause") if ends and clause else None


def add_sentence(text: FaithfulText, pool: Pool, rng: Random) -> Edit | None:
    """Insert a sentence of another text."""
    sentence = pick_new(pool.sentences, text, rng)
    return _insert_sentence(text, sentence, "added sentence", rng) if sentence else None


def add_digression(text: FaithfulText, _: Pool, rng: Random) -> Edit | None:
    """Insert sentences of the source, or of `meta["passage"]`, that do not answer the question; if there is one."""
    if "question" not in text.example.meta:
        return None
    own = [sentence for sentence in sentences_of(text.passage) if sentence not in text.example.completion]
    if not own:
        return None
    first = rng.randrange(len(own))
    return _insert_sentence(text, " ".join(own[first : first + rng.randint(1, 3)]), "digression", rng)


def repeat_sentence(text: FaithfulText, _: Pool, rng: Random) -> Edit | None:
    """Repeat a sentence of the completion at its end."""
    own = list(sentences_of(text.completion))
    end = len(text.example.completion.rstrip())
    return insertion(end, f" {rng.choice(own)}", "repetition") if own else None


def _insert_sentence(text: FaithfulText, sentence: str, kind: str, rng: Random) -> Edit | None:
    """Insert after a sentence, most often after the last one."""
    ends = [match.end() for match in re.finditer(r"(?<=\w)[.!?](?=\s|$)", text.example.completion)]
    if not ends:
        return None
    place = ends[-1] if rng.random() < 0.6 else rng.choice(ends)
    return insertion(place, f" {sentence}", kind)


def _phrase_places(text: FaithfulText) -> list[int]:
    """Return the ends of content words before a mark, a preposition, or what else starts a phrase."""
    parsed = text.completion
    places = []
    for i, word in enumerate(parsed.words):
        gap = parsed.after(i)
        before_phrase = gap == " " and i + 1 < len(parsed.words) and parsed.words[i + 1].text in _OPENERS
        if word.is_content and (before_phrase or gap[:1] in (",", ".", ";")) and not word.text.endswith(("'s", "’s")):
            places.append(word.end)
    return places
