"""Comments by rule on spans of public texts, with known places: training data of the learned aligner.

The answers are SciTLDR's training summaries, a few sentences of its abstracts, and half of QA-Feedback's answers. A
target is a number, a name, a phrase, a clause or a sentence. In some answers it is corrupted first, by words of
another text, so that the source does not contain it. The comment says something about the target in some of its
words, in words about its kind ("the year"), or in words around it.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path

from freeform_cases import Case

from text2grad.data import fgrlhf, scitldr
from text2grad.text.whitespace import PUNCTUATION, WhitespaceWord, WordKind, split_words

Target = tuple[int, int]  # words

_BLAME = """
the source does not say {p}
there is no mention of {p} in the article
{p} is not mentioned in the text
the part about {p} is wrong
{p} is made up
i don't think {p} is right
remove the information about {p} from the summary
remove {p}
replace the information about {p} with the information about {o}
replace {p} with {o}
the summary says {p}, but the article says {o}
it was {o}, not {p}
it claims {p}, which is false
nothing supports the claim about {p}
too vague about {p}
the bit about {p} is redundant
the sentence about {p} is exaggerated
modify the information about {p} in the summary
the summary incorrectly states {p}
the answer gets {p} wrong
{p} should be {o}
why does it talk about {p}?
it hallucinates {p}
the article never says that {p}, it only says that {o}
the statement on {p} can't be verified
what it says about {p} is misleading
{p}: that is not correct
""".strip().splitlines()
_PRAISE = """
the explanation of {p} is great
i like how it mentions {p}
good point about {p}
the part about {p} is clear and correct
{p} is exactly right
nicely put: {p}
""".strip().splitlines()
_IN_CONTEXT = """
the summary says {p} but the source text says {o}
the summary states that {p}, but the article says that {o}
it says {p}, however {s} is not mentioned in the source
the summary mentions {p}, but the source does not say {s}
the article says {o}, it does not say {s}
according to the text {o}
in the source it was {o}, not {s}
the summary claims that {p}. the source only says {o}
the answer says {p} which is not supported by the article
{s} is wrong, it was {o}
the source text doesn't mention that {p}
""".strip().splitlines()
_INSTRUCTIONS = """
remove the information about {p} from the summary
replace the information about {p} with the information about {o}
modify the information about {p} in the summary
delete {p}
change {p} to {o}
please take out {p}
""".strip().splitlines()
_KIND_BLAME = """
the {k} of {c} is wrong
the {k} is wrong
the {k} is not in the source
the {k} is not given in the source text
the {k} in the part about {c} is made up
remove the information about the {k} from the summary
check the {k} for {c}
where does the {k} come from?
the source gives another {k} for {c}
the summary includes the {k}, which the article does not mention
modify the information about the {k} of {c} in the summary
""".strip().splitlines()
_KINDS = {
    "year": ["year", "date", "time"],
    "number": ["number", "figure", "amount", "value", "total"],
    "name": ["name", "person", "location", "place", "title"],
}


def synthetic_cases(folder: Path, seed: int, per_text: int = 1) -> list[Case]:
    """Return cases of every kind, the same for the same seed; a group is a text."""
    rng = random.Random(seed)
    texts = _texts(folder)
    cases = []
    for group, answer, source in texts:
        for _ in range(per_text):
            other = rng.choice(texts)[1]
            case = _case(group, answer, source, other, rng)
            if case is not None:
                cases.append(case)
    return cases


def marked_cases(folder: Path, seed: int) -> list[Case]:
    """Return cases whose targets are the errors that people marked in half of QA-Feedback's answers."""
    rng = random.Random(seed)
    cases = []
    for example in _train_half(folder):
        words = split_words(example.completion)
        for span in example.feedback.spans if example.feedback else []:
            inside = [i for i, word in enumerate(words) if word.start < span.end and span.start < word.end]
            if inside and len(inside) < len(words):
                target = (inside[0], inside[-1] + 1)
                other = _phrase(split_words(example.reference or "nothing"), (0, 6), rng)
                comment = _say(rng.choice(_BLAME), _phrase(words, target, rng), other, rng)
                source = rng.choice([None, example.meta["document"]])
                cases.append(Case(example.id, comment, example.completion, source, _gold(words, [target])))
    return cases


def _texts(folder: Path) -> list[tuple[str, str, str | None]]:
    rng = random.Random(0)
    found: list[tuple[str, str, str | None]] = []
    for example in scitldr.read(folder / "scitldr_a" / "train.jsonl.gz"):
        source = str(example.meta["document"])
        words = split_words(source)
        if len(words) < 30:
            continue
        starts = [0, *(i for i in range(1, len(words)) if words[i].sentence != words[i - 1].sentence)]
        summary = example.reference[0] if example.reference else ""
        found.append((example.id, summary, source))
        if rng.random() < 0.5:
            continue
        first = rng.randrange(len(starts))
        last = min(first + rng.choice((1, 1, 2, 3, 5)), len(starts))
        end = words[starts[last] - 1].end if last < len(starts) else words[-1].end
        found.append((example.id, source[words[starts[first]].start : end], source))
    found += [(example.id, example.completion, example.meta["document"]) for example in _train_half(folder)]
    return [text for text in found if 6 <= len(text[1].split()) <= 90]


def _train_half(folder: Path) -> list:
    return list(fgrlhf.read(folder / "fgrlhf_qa_feedback" / "dev_feedback.json.gz"))[::2]


def _case(group: str, answer: str, source: str | None, other: str, rng: random.Random) -> Case | None:
    words, others = split_words(answer), split_words(other)
    corrupt = rng.random() < 0.7
    targets: list[Target] = []
    for _ in range(rng.choice((1, 1, 2, 2, 3))):
        target = _target(words, rng)
        if not any(start < target[1] and target[0] < end for start, end in targets):
            targets.append(target)
    original = words
    if corrupt:
        answer = _corrupt(words, targets, others, rng)
        words = split_words(answer)
    if not corrupt or rng.random() < 0.3:
        source = None
    comments = [_comment(words, original, target, others, rng) for target in targets]
    if rng.random() < 0.4:
        comments += [_instruction(words, original, target, rng) for target in targets]
    gold = _gold(words, targets)
    return None if all(gold) else Case(group, " ".join(comments), answer, source, gold)


def _target(words: Sequence[WhitespaceWord], rng: random.Random) -> Target:
    """Choose a number or name, a phrase of up to seven words, or a sentence."""
    how = rng.random()
    special = [i for i, word in enumerate(words) if word.kind in (WordKind.NUMBER, WordKind.NAME)]
    if how < 0.35 and special:
        start = end = rng.choice(special)
        end += 1
        while end < len(words) and words[end].kind is words[start].kind and words[end - 1].text[-1] not in PUNCTUATION:
            end += 1
        return start, end
    if how < 0.85:
        start = rng.randrange(len(words))
        end = min(len(words), start + rng.choice((2, 3, 4, 5, 7, 9)))
        trim = rng.random() < 0.5
        while trim and start < end - 1 and not words[start].is_content:
            start += 1
        while end - 1 > start and not words[end - 1].is_content:
            end -= 1
        same = [i for i in range(start, end) if words[i].sentence == words[start].sentence]
        return start, same[-1] + 1
    sentence = rng.choice(words).sentence
    inside = [i for i, word in enumerate(words) if word.sentence == sentence]
    return inside[0], inside[-1] + 1


def _corrupt(
    words: Sequence[WhitespaceWord], targets: Sequence[Target], others: Sequence[WhitespaceWord], rng: random.Random
) -> str:
    """Return the text with the content words of the targets replaced by others of their kind from another text."""
    pieces = [word.text for word in words]
    for target in targets:
        for i in range(*target):
            same = [word for word in others if word.kind is words[i].kind]
            if words[i].is_content and same and (target[1] - target[0] < 3 or rng.random() < 0.6):
                bare = rng.choice(same).text.strip(PUNCTUATION)
                tail = pieces[i][len(pieces[i].rstrip(PUNCTUATION)) :]
                pieces[i] = (bare or "it") + tail
    return " ".join(pieces)


def _comment(
    words: Sequence[WhitespaceWord],
    original: Sequence[WhitespaceWord],
    target: Target,
    others: Sequence[WhitespaceWord],
    rng: random.Random,
) -> str:
    start, end = target
    kind = words[start].kind
    context = _context(words, target, rng)
    if kind in (WordKind.NUMBER, WordKind.NAME) and end - start <= 3 and rng.random() < 0.5:
        names = _KINDS["name"] if kind is WordKind.NAME else _KINDS["number"]
        if kind is WordKind.NUMBER and words[start].text.strip(PUNCTUATION).isdigit() and len(words[start].text) >= 4:
            names = _KINDS["year"]
        return _finish(rng.choice(_KIND_BLAME).format(k=rng.choice(names), c=context), rng)
    if rng.random() < 0.5:  # the sentence around it is told too, and what it should have been
        wide = _widen(words, target, rng)
        template = rng.choice(_IN_CONTEXT)
        return _finish(template.format(p=_join(words, wide), o=_join(original, wide), s=_join(words, target)), rng)
    at = rng.randrange(max(1, len(others) - 4))
    other = _phrase(others, (at, min(len(others), at + max(1, end - start))), rng)
    phrase = _phrase(words, target, rng)
    if rng.random() < 0.25:
        phrase = f"{context} {phrase}"
    return _say(rng.choice(_PRAISE if rng.random() < 0.12 else _BLAME), phrase, other, rng)


def _instruction(
    words: Sequence[WhitespaceWord], original: Sequence[WhitespaceWord], target: Target, rng: random.Random
) -> str:
    template = rng.choice(_INSTRUCTIONS)
    return _finish(template.format(p=_phrase(words, target, rng), o=_phrase(original, target, rng)), rng)


def _widen(words: Sequence[WhitespaceWord], target: Target, rng: random.Random) -> Target:
    """Return the target with up to eight words of its sentence on each side."""
    sentence = words[target[0]].sentence
    inside = [i for i, word in enumerate(words) if word.sentence == sentence]
    return max(inside[0], target[0] - rng.randrange(9)), min(inside[-1] + 1, target[1] + rng.randrange(9))


def _join(words: Sequence[WhitespaceWord], bounds: Target) -> str:
    return " ".join(word.text for word in words[slice(*bounds)]).strip(PUNCTUATION) or "it"


def _context(words: Sequence[WhitespaceWord], target: Target, rng: random.Random) -> str:
    sentence = words[target[0]].sentence
    near = [
        word.text.strip(PUNCTUATION)
        for i, word in enumerate(words)
        if word.sentence == sentence and word.is_content and not target[0] <= i < target[1]
    ]
    start = rng.randrange(len(near)) if near else 0
    return "the " + " ".join(near[start : start + rng.choice((1, 1, 2))]) if near else "it"


def _phrase(words: Sequence[WhitespaceWord], target: Target, rng: random.Random) -> str:
    """Return the words of the target, or some of its content words."""
    inside = list(words[target[0] : target[1]])
    if len(inside) > 1 and rng.random() < 0.8:
        content = [word for word in inside if word.is_content] or inside
        keep = max(1, round(len(content) * rng.uniform(0.1, 0.9)))
        chosen = sorted(rng.sample(range(len(content)), keep))
        inside = [content[i] for i in chosen]
    text = " ".join(word.text for word in inside).strip(PUNCTUATION) or "it"
    return text.lower() if rng.random() < 0.3 else text


def _say(template: str, phrase: str, other: str, rng: random.Random) -> str:
    return _finish(template.format(p=phrase, o=other), rng)


def _finish(sentence: str, rng: random.Random) -> str:
    sentence = sentence if rng.random() < 0.3 else sentence[0].upper() + sentence[1:]
    return sentence + ("" if rng.random() < 0.2 or sentence.endswith("?") else ".")


def _gold(words: Sequence[WhitespaceWord], targets: Sequence[Target]) -> list[bool]:
    return [any(start <= i < end for start, end in targets) for i in range(len(words))]
