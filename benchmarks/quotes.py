"""Accuracy and speed of quote matching on HaluQuestQA's 1 672 expert spans, which come as text only.

Every span is located in its answer as `text2grad.data.haluquestqa` does it: those of one aspect together, with the
expert's reason as context. By plain string comparisons that share no code with the aligner, a span is
  verbatim      contained in the answer
  case          contained up to case
  punctuation   contained up to the characters between the words
  other         none of these
These comparisons give the truth for the first three; a match is right if it begins and ends with the same word
characters. Nine spans occur more than once. Three of them were decided by reading the reason (and, once, because the
other occurrence overlaps the next span of the same list; the lists are in text order); for the other six, the first
occurrence is taken. Case decides nothing: the data capitalise every span's start. The cues in a reason were written
with these nine in view, so they say little about other repeated words:

FGRLHF's human spans have offsets. The words of each answer's spans, in text order, are located in it; only the exact
range is right. Nothing was tuned on them. Baseline: the first occurrence.

Of the other 91, 83 are not quotations but mean the whole answer ("ANSWER1:"): a match for one of them is an error.
The remaining 8 were located by hand; a match is right if it overlaps that range by nine tenths.

False matches: every quotation is searched in answers to other questions, sampled with a fixed seed, and in the other
answer to its own question. Every match counts as false, even of words that really occur there.

Misquotations: every quotation of at least four words that occurs once is misquoted on purpose, one word in ten and at
least one: misspelt, left out, added or replaced by one from elsewhere. Right if it overlaps the truth by four fifths.
The default threshold was chosen on such false matches and misquotations, of these spans too.

Time: CPU time of one call with empty caches, on 2 000 characters of answers that contain the quotation or not.
"""

from __future__ import annotations

import gzip
import json
import random
import re
import statistics
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain

from harness import Bar, data_folder, options, report, show

from text2grad.align.quotes import normalize
from text2grad.align.quotes.quotes import Match, locate_quote, locate_quotes
from text2grad.data.haluquestqa import Answer, locate_marks, read_answers
from text2grad.schema import Range

SEED = 0
DRAWS = 5
LENGTH = 2000
TIMED = 300

# Start of the right occurrence, for the repeated words whose reason decides it.
DECIDED_BY_REASON = {
    ("haluquestqa-296-answer2", "The protein"): 530,  # the other one overlaps the next span of the list
    ("haluquestqa-452-answer1", "It"): 66,  # 'The term is "fight or flight"': the "it" of "fight it flight"
    ("haluquestqa-648-answer2", "And"): 1326,  # 'The answer ends with "and,"'
}

# The quotations that no plain comparison finds, by their answer and first words: the answer's first and last words.
BY_EYE = {
    ("haluquestqa-28-answer1", "1. Starting from"): ("1. Starting from the", "would be considered invalid."),
    ("haluquestqa-125-answer1", "Let’s say there’s"): ("let’s say there’s 100", "60 @ 10$ : 600$ sales"),
    ("haluquestqa-235-answer2", "Https://www.americas"): ("https://en.m.wikipedia.org/cooks", "odor-absorber"),
    ("haluquestqa-235-answer2", "Https://www.science"): ("Https://www.americastest", "neutralizes%20this%20acid."),
    ("haluquestqa-351-answer2", "Think of it as"): ("Think of it as", "based on evidence presented)"),
    ("haluquestqa-593-answer1", "In the old days"): ("In the old days", "could be sure what they were"),
    ("haluquestqa-606-answer1", "Consider a house"): ("Consider a house that", "the increase is only 8%"),
    ("haluquestqa-644-answer1", "If you drop it while"): ("If you drop it while", "is moving towards it now"),
}


@dataclass(frozen=True)
class Case:
    """A quotation, its answer, how they compare, its true range (None: nowhere), and what was found."""

    answer: Answer
    quote: str
    kind: str
    truth: Range | None
    repeated: bool
    found: Match | None


def main() -> None:
    args = options(__doc__ or "")
    path = data_folder() / "haluquestqa" / "HaluQuestQA.csv.gz"
    everything = list(read_answers(path))[: 200 if args.quick else None]
    started = time.process_time()
    located = [locate_marks(answer) for answer in everything]
    seconds = time.process_time() - started
    cases = list(chain.from_iterable(map(build_cases, everything, located)))
    quotations = [case for case in cases if case.kind != "whole answer"]

    figures = (
        {"spans": len(cases), "locate_all_s": round(seconds, 3)}
        | evaluate_locations(cases)
        | evaluate_known_offsets(args.quick)
        | evaluate_false_matches(quotations, everything)
        | evaluate_misquotations(quotations)
        | measure_times(quotations, everything)
    )
    bars = {
        "alike_right_share": Bar(at_least=1),
        "whole_answer_matched": Bar(at_most=0),
        "by_eye_right_share": Bar(at_least=0.8),
        "offsets_once_right_share": Bar(at_least=0.999),
        "offsets_repeated_right_share": Bar(at_least=0.9),
        "false_other_question_share": Bar(at_most=0.01),
        "false_same_question_share": Bar(at_most=0.01),
        "misquoted_right_share": Bar(at_least=0.9),
        "misquoted_elsewhere_share": Bar(at_most=0.01),
        "verbatim_ms": Bar(at_most=1),
        "normalized_ms": Bar(at_most=1),
        "fuzzy_ms": Bar(at_most=5),
    }
    report("quotes", figures, bars, args)


def build_cases(answer: Answer, matches: list[Match | None]) -> Iterator[Case]:
    for mark, match in zip(answer.marks, matches, strict=True):
        if mark.means_whole_answer:
            yield Case(answer, mark.quote, "whole answer", None, False, locate_quote(mark.quote, answer.text))
            continue
        kind, places = compare(mark.quote, answer.text)
        if kind == "other":
            places = [find_by_hand(answer, mark.quote)]
        chosen = DECIDED_BY_REASON.get((answer.id, mark.quote), places[0][0])
        truth = next(place for place in places if place[0] == chosen)
        yield Case(answer, mark.quote, kind, truth, len(places) > 1, match)


def compare(quote: str, text: str) -> tuple[str, list[Range]]:
    """Return how a quotation compares with the text, and all ranges where it occurs in that way."""
    low, low_text = quote.lower(), text.lower()
    assert len(low_text) == len(text), "lower case shifts the offsets"
    if low in low_text:
        places = [(match.start(), match.end()) for match in re.finditer(re.escape(low), low_text)]
        return ("verbatim" if quote in text else "case"), places
    words = list(re.finditer(r"[^\W_]+", low_text))
    sought = re.findall(r"[^\W_]+", low)
    places = [
        (words[at].start(), words[at + len(sought) - 1].end())
        for at in range(len(words) - len(sought) + 1)
        if [word[0] for word in words[at : at + len(sought)]] == sought
    ]
    return ("punctuation" if places else "other"), places


def find_by_hand(answer: Answer, quote: str) -> Range:
    first, last = next(
        ends for (id_, opening), ends in BY_EYE.items() if id_ == answer.id and quote.startswith(opening)
    )
    start = answer.text.index(first)
    return start, answer.text.index(last, start) + len(last)


def is_right(case: Case) -> bool:
    if case.found is None or case.truth is None:
        return False
    found = (case.found.start, case.found.end)
    if case.kind == "other":
        return overlap(found, case.truth) >= 0.9
    return trim(case.answer.text, found) == trim(case.answer.text, case.truth)


def trim(text: str, bounds: Range) -> Range:
    """Remove non-word characters from both ends; unchanged if there are no others."""
    inner = [at for at in range(*bounds) if text[at].isalnum()]
    return (inner[0], inner[-1] + 1) if inner else bounds


def overlap(one: Range, other: Range) -> float:
    """Return the shared characters divided by the covered characters."""
    shared = max(0, min(one[1], other[1]) - max(one[0], other[0]))
    return shared / (max(one[1], other[1]) - min(one[0], other[0]))


def evaluate_locations(cases: list[Case]) -> dict[str, float]:
    kinds = ["verbatim", "case", "punctuation", "other", "whole answer"]
    rows = []
    for kind in kinds:
        of_kind = [case for case in cases if case.kind == kind]
        how = Counter(case.found.kind if case.found else "not found" for case in of_kind)
        columns = [len(of_kind), sum(map(is_right, of_kind)), *(how[form] for form in FORMS)]
        rows.append([kind, *map(str, columns)])
    show("Experts' spans in their answers", ["span is", "spans", "right", *FORMS], rows)

    alike = [case for case in cases if case.kind in kinds[:3]]
    repeated = [case for case in alike if case.repeated]
    by_eye = [case for case in cases if case.kind == "other"]
    return {
        "alike": len(alike),
        "alike_right": sum(map(is_right, alike)),
        "alike_right_share": share(map(is_right, alike)),
        "repeated": len(repeated),
        "repeated_right": sum(map(is_right, repeated)),
        "by_eye": len(by_eye),
        "by_eye_right": sum(map(is_right, by_eye)),
        "by_eye_right_share": share(map(is_right, by_eye)),
        "whole_answer": sum(case.kind == "whole answer" for case in cases),
        "whole_answer_matched": sum(case.kind == "whole answer" and case.found is not None for case in cases),
    }


FORMS = ["exact", "normalized", "fuzzy", "not found"]


def share(flags: Iterable[bool]) -> float:
    counted = list(flags)
    return sum(counted) / len(counted) if counted else 1.0


def evaluate_known_offsets(quick: bool) -> dict[str, float]:
    """Locate human spans with known offsets by their words."""
    path = data_folder() / "fgrlhf_qa_feedback" / "dev_feedback.json.gz"
    with gzip.open(path, "rt", encoding="utf-8") as file:
        records = json.load(file)[: 100 if quick else None]
    outcomes: dict[str, list[tuple[bool, bool]]] = {"once": [], "repeated": []}
    for record in records:
        text = record["prediction 1"]
        marked = sorted({(error["start"], error["end"]) for error in record["feedback"]["errors"]})
        truths = [strip_range(text, bounds) for bounds in marked if text[slice(*bounds)].strip()]
        quotes = [text[start:end] for start, end in truths]
        for quote, truth, match in zip(quotes, truths, locate_quotes(quotes, text), strict=True):
            first = text.find(quote)
            kind = "repeated" if text.find(quote, first + 1) >= 0 else "once"
            right = match is not None and (match.start, match.end) == truth
            outcomes[kind].append((right, first == truth[0]))
    figures: dict[str, float] = {}
    rows = []
    for kind, pairs in outcomes.items():
        rights, firsts = [right for right, _ in pairs], [first for _, first in pairs]
        figures[f"offsets_{kind}"] = len(pairs)
        figures[f"offsets_{kind}_right"] = sum(rights)
        figures[f"offsets_{kind}_right_share"] = share(rights)
        figures[f"offsets_{kind}_first_right"] = sum(firsts)
        rows.append([kind, str(len(pairs)), str(sum(rights)), str(sum(firsts))])
    show("FGRLHF's spans, whose offsets are known", ["words occur", "spans", "right", "first taken"], rows)
    return figures


def strip_range(text: str, bounds: Range) -> Range:
    words = text[slice(*bounds)]
    start = bounds[0] + len(words) - len(words.lstrip())
    return start, start + len(words.strip())


def evaluate_false_matches(quotations: list[Case], everything: list[Answer]) -> dict[str, float]:
    """Search every quotation in answers that it does not come from."""
    draw = random.Random(SEED)
    of_question: dict[str, list[Answer]] = {}
    for answer in everything:
        of_question.setdefault(answer.question, []).append(answer)
    other_answers = [
        (
            case,
            draw.choice([answer for answer in draw.sample(everything, 3) if answer.question != case.answer.question]),
        )
        for case in quotations
        for _ in range(DRAWS)
    ]
    same_question = [
        (case, answer)
        for case in quotations
        for answer in of_question[case.answer.question]
        if answer.id != case.answer.id
    ]
    figures: dict[str, float] = {}
    rows = []
    for name, pairs in (("other_question", other_answers), ("same_question", same_question)):
        found = [locate_quote(case.quote, answer.text) for case, answer in pairs]
        how: Counter[str] = Counter(match.kind for match in found if match is not None)
        figures[f"false_{name}"] = sum(how.values())
        figures[f"false_{name}_of"] = len(pairs)
        figures[f"false_{name}_share"] = sum(how.values()) / len(pairs)
        rows.append([name.replace("_", " "), str(len(pairs)), *(str(how[form]) for form in FORMS[:3])])
    show("False matches in other answers", ["an answer to", "searched", *FORMS[:3]], rows)
    return figures


def evaluate_misquotations(quotations: list[Case]) -> dict[str, float]:
    draw = random.Random(SEED)
    vocabulary = sorted({word for case in quotations for word in case.answer.text.split()})
    figures: dict[str, float] = {}
    rows = []
    outcomes: list[float | None] = []
    for way in ("misspelt", "left out", "added", "replaced"):
        overlaps = []
        for case in quotations:
            if case.truth is None or case.repeated or case.kind == "other" or len(case.quote.split()) < 4:
                continue
            found = locate_quote(misquote(case.quote, way, vocabulary, draw), case.answer.text)
            overlaps.append(overlap((found.start, found.end), case.truth) if found else None)
        outcomes += overlaps
        right, elsewhere = right_and_elsewhere(overlaps)
        figures[f"misquoted_{way.replace(' ', '_')}_right_share"] = right
        rows.append([way, str(len(overlaps)), f"{right:.1%}", f"{elsewhere:.2%}"])
    show("Misquoted on purpose, one word in ten", ["words", "sought", "right", "elsewhere"], rows)
    right, elsewhere = right_and_elsewhere(outcomes)
    return figures | {"misquoted_right_share": right, "misquoted_elsewhere_share": elsewhere}


def right_and_elsewhere(overlaps: list[float | None]) -> tuple[float, float]:
    right = share(one is not None and one >= 0.8 for one in overlaps)
    return right, share(one == 0 for one in overlaps)


def misquote(quote: str, way: str, vocabulary: list[str], draw: random.Random) -> str:
    words = quote.split()
    for at in sorted(draw.sample(range(len(words)), max(1, len(words) // 10)), reverse=True):
        if way == "misspelt":
            words[at] = misspell(words[at], draw)
        elif way == "left out":
            del words[at]
        elif way == "added":
            words.insert(at, draw.choice(vocabulary))
        else:
            words[at] = draw.choice(vocabulary)
    return " ".join(words)


def misspell(word: str, draw: random.Random) -> str:
    """Swap two letters, drop one or double one."""
    at = draw.randrange(len(word))
    return draw.choice(
        [
            word[:at] + word[at : at + 2][::-1] + word[at + 2 :],
            word[:at] + word[at + 1 :],
            word[:at] + word[at] + word[at:],
        ]
    )


def measure_times(quotations: list[Case], everything: list[Answer]) -> dict[str, float]:
    draw = random.Random(SEED)
    vocabulary = sorted({word for case in quotations for word in case.answer.text.split()})
    rows = []
    figures: dict[str, float] = {}
    usual = [case for case in quotations if case.kind == "verbatim" and 20 <= len(case.quote) <= 400]
    timings: dict[str, list[float]] = {name: [] for name in ("verbatim", "normalized", "fuzzy", "not found")}
    for case in draw.sample(usual, min(TIMED, len(usual))):
        rest = draw.sample([answer for answer in everything if answer.question != case.answer.question], 20)
        filler = " ".join(answer.text for answer in rest)
        text = (case.answer.text + " " + filler)[: max(LENGTH, len(case.answer.text))]
        timings["verbatim"].append(cold_ms(case.quote, text))
        timings["normalized"].append(cold_ms(case.quote.swapcase(), text))
        timings["fuzzy"].append(cold_ms(misquote(case.quote, "misspelt", vocabulary, draw), text))
        timings["not found"].append(cold_ms(case.quote, filler[:LENGTH]))
    for name, times in timings.items():
        median, slow = statistics.median(times), statistics.quantiles(times, n=100)[98]
        figures[f"{name.replace(' ', '_')}_ms"] = round(median, 4)
        figures[f"{name.replace(' ', '_')}_p99_ms"] = round(slow, 4)
        rows.append([name, f"{median:.3f}", f"{slow:.3f}"])
    show(f"One cold call on {LENGTH} characters", ["quotation", "median ms", "p99 ms"], rows)
    return figures


def cold_ms(quote: str, text: str) -> float:
    for cached in (normalize.fold_typography, normalize.fold_punctuation, normalize.fold_spaces):
        cached.cache_clear()
    started = time.process_time()
    locate_quote(quote, text)
    return 1000 * (time.process_time() - started)


if __name__ == "__main__":
    main()
