"""Wrong relations: negated, turned round, or with more, less, before or because exchanged."""

from __future__ import annotations

from random import Random

from text2grad.reward_model.corruptions.edits import Edit
from text2grad.reward_model.corruptions.material import FaithfulText, Pool
from text2grad.text.lexicon import IRREGULAR_VERBS, word_set

_PAIRS = """
    more less; more fewer; most least; higher lower; highest lowest; high low; larger smaller; largest smallest;
    large small; bigger smaller; better worse; best worst; longer shorter; long short; faster slower; fast slow;
    earlier later; early late; older younger; older newer; old new; stronger weaker; strong weak; deeper shallower;
    deep shallow; many few; all some; every no; always never; often rarely; usually rarely; both neither; any no;
    before after; above below; over under; inside outside; with without; within beyond; during after; until since;
    because although; since although; despite because; therefore however; and or;
    increase decrease; increases decreases; increased decreased; increasing decreasing; rise fall; rises falls;
    rose fell; risen fallen; rising falling; grow shrink; grew shrank; growing shrinking; gain lose; gained lost;
    improve worsen; improves worsens; improved worsened; improving worsening; improvement deterioration;
    outperform underperform; outperforms underperforms; outperforming underperforming; maximum minimum;
    maximise minimise; maximize minimize; maximizing minimizing; win lose; wins loses; won lost; winning losing;
    winner loser; victory defeat; beat lost; success failure; successful unsuccessful; succeed fail; succeeded failed;
    buy sell; buys sells; bought sold; buying selling; open close; opens closes; opened closed; opening closing;
    start end; starts ends; started ended; begin finish; began finished; arrive leave; arrived left; enter leave;
    accept reject; accepted rejected; accepts rejects; allow forbid; allows forbids; allowed forbidden; approve reject;
    approved rejected; agree disagree; agreed disagreed; support oppose; supports opposes; supported opposed;
    include exclude; includes excludes; included excluded; including excluding; add remove; adds removes;
    added removed; cause prevent; causes prevents; caused prevented; causing preventing; enable prevent;
    enables prevents; encourage discourage; help hinder; helps hinders; helped hindered; possible impossible;
    able unable; likely unlikely; known unknown; true false; correct incorrect; right wrong; same different;
    similar different; first last; next previous; public private; safe dangerous; rich poor; cheap expensive;
    easy difficult; simple complex; positive negative; direct indirect; local global; linear nonlinear;
    discrete continuous; supervised unsupervised; sufficient insufficient; efficient inefficient; robust fragile;
    stable unstable; novel existing; modern ancient; north south; east west; northern southern; eastern western;
    left right; upper lower; top bottom; men women; man woman; boy girl; boys girls; father mother; son daughter;
    brother sister; husband wife; he she; his her; him her; male female; parents children; teacher student;
    import export; imports exports; attack defend; attacked defended; friend enemy; war peace; day night;
    summer winter; morning evening; home away; up down; hired fired; alive dead; survived died; injured killed
    """
_AUXILIARIES = word_set("is are was were can could will would should must may might")
_HAVE = word_set("has have had")
_PARTICIPLES = frozenset(IRREGULAR_VERBS)


def _opposites() -> dict[str, list[str]]:
    table: dict[str, list[str]] = {}
    for pair in _PAIRS.split(";"):
        one, other = pair.split()
        table.setdefault(one, []).append(other)
        table.setdefault(other, []).append(one)
    return table


OPPOSITES = _opposites()


def reverse_relation(text: FaithfulText, _: Pool, rng: Random) -> Edit | None:
    """Exchange a word of comparison, order, quantity, cause or direction for its opposite."""
    words = [word for word in text.completion.words if word.text.lower() in OPPOSITES]
    if not words:
        return None
    word = rng.choice(words)
    other = rng.choice(OPPOSITES[word.text.lower()])
    return Edit(word.start, word.end, other.capitalize() if word.text[0].isupper() else other, "relation")


def negate(text: FaithfulText, _: Pool, rng: Random) -> Edit | None:
    """Insert a "not" after an auxiliary, or take one away."""
    words, string = text.completion.words, text.completion.string
    edits = []
    for i, word in enumerate(words[:-1]):
        following, lowered = words[i + 1], word.text.lower()
        if text.completion.after(i) != " ":
            continue
        if following.text == "not" and (lowered in _AUXILIARIES or lowered in _HAVE):
            edits.append(Edit(word.start, following.end, string[word.start : word.end], "not"))
        elif lowered in _AUXILIARIES or (lowered in _HAVE and _is_participle(following.text)):
            edits.append(Edit(word.end, word.end, " not", "not"))
    return rng.choice(edits) if edits else None


def _is_participle(word: str) -> bool:
    return word == "been" or word.endswith("ed") or word in _PARTICIPLES
