"""The grounding critic against people, on DeFacto's validation split.

Weights and thresholds were fitted to the training split, and choices made by cross-validation there. The validation
split was looked at three times on the way: the AUC of blame was .780, .788 and .791.

Agreement: the area under the ROC curve of the critic's blame (severities of poor spans) and of its score for "a person
found an error in this summary", and the F1 of the words that it blames for those that people changed; counting words
that the source does not have is the baseline. Intervals come from resampling summaries. People's corrections have to
score higher than what they corrected.

Defence: mean scores of references and of degenerate answers on SciTLDR's dev set, the quickstart's held-out texts and
DeFacto, where references are people's corrections and summaries without an error. `rewards.py` has the whole catalogue,
with answers of the untrained model.

Ablation: each factor of the score left out, and what that does to agreement and to the best degenerate answer.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from statistics import fmean
from typing import Any, NamedTuple

import numpy as np
from harness import Bar, data_folder, options, report, show
from numpy.typing import NDArray
from train_grounding import auc, f1

from text2grad.critics.rules.grounding import judge_summary, length_limit
from text2grad.critics.rules.quality import Quality
from text2grad.critics.rules.source import Source
from text2grad.data import defacto, scitldr, summaries
from text2grad.schema import Example
from text2grad.text.words import Text, parse_text

RESAMPLES, SEED = 1000, 0
MAX_EXAMPLES = 200
FACTORS = ("all factors", *Quality._fields)

Array = NDArray[np.float64]


class Judged(NamedTuple):
    """A summary of DeFacto. words: changed by people, blamed, not in the source; empty where changes are unknown."""

    has_error: bool
    blame: float
    quality: Quality
    num_new: int
    words: Array


class Pair(NamedTuple):
    document: str
    reference: str


def main() -> None:
    args = options(__doc__ or "")
    folder = data_folder()
    examples = list(defacto.read(folder / "defacto" / "val.jsonl.gz"))[: 100 if args.quick else None]
    judged = [judge(example) for example in examples]
    figures = agreement(judged)
    figures["corrected_higher"] = corrected_higher(examples, judged)
    limit = 30 if args.quick else MAX_EXAMPLES
    sets = {
        "scitldr": [
            Pair(e.meta["document"], str(next(iter(e.reference or []))))
            for e in scitldr.read(folder / "scitldr_a" / "dev.jsonl.gz")
        ][:limit],
        "quickstart": [Pair(e.meta["document"], str(e.reference)) for e in summaries.load("heldout")][:limit],
        "defacto": list(faithful_pairs(examples))[:limit],
    }
    kinds = {name: judge_kinds(pairs) for name, pairs in sets.items()}
    rows = []
    for kind in ("reference", *KINDS):
        means = {name: fmean(quality.score for quality in qualities[kind]) for name, qualities in kinds.items()}
        figures |= {f"{name}_{kind.replace(' ', '_')}": value for name, value in means.items()}
        rows.append([kind, *(f"{value:.3f}" for value in means.values())])
    show("Mean score", ["answer", *sets], rows)
    for name in sets:
        best = max(figures[f"{name}_{kind.replace(' ', '_')}"] for kind in KINDS)
        figures[f"{name}_margin"] = figures[f"{name}_reference"] - best
    figures["ablation"] = ablation(judged, kinds)
    bars = {
        "blame_auc": Bar(at_least=0.79),
        "score_auc": Bar(at_least=0.75),
        "word_f1_gain": Bar(at_least=0.0),
        "corrected_higher": Bar(at_least=0.75),
        **{f"{name}_margin": Bar(at_least=0.3) for name in sets},
    }
    report("grounding", figures, bars, args)


def judge(example: Example) -> Judged:
    assert example.feedback is not None
    source, summary = Source(parse_text(example.prompt_text)), parse_text(example.completion)
    findings, _, quality = judge_summary(summary, source, length_limit(source))
    poor = [finding for finding in findings if finding.label == "poor"]
    new = [word.is_content and word.lexeme.key not in source.positions for word in summary.words]
    is_known = example.meta["corrected"] or not example.meta["has_error"]
    columns = [overlapping(summary, example.feedback.spans), overlapping(summary, poor), new]
    return Judged(
        has_error=example.meta["has_error"],
        blame=sum(finding.severity for finding in poor),
        quality=quality,
        num_new=sum(new),
        words=np.array(columns if is_known else [[], [], []], float),
    )


def overlapping(text: Text, ranges: Sequence[Any]) -> list[bool]:
    return [any(word.start < r.end and word.end > r.start for r in ranges) for word in text.words]


def agreement(judged: Sequence[Judged]) -> dict[str, Any]:
    """Return each measure with its 95% interval."""
    rng = np.random.default_rng(SEED)
    draws = [measure(judged)]
    draws += [measure([judged[i] for i in rng.integers(len(judged), size=len(judged))]) for _ in range(RESAMPLES)]
    figures: dict[str, Any] = {"summaries": len(judged), "with_error": sum(one.has_error for one in judged)}
    rows = []
    for name, value in draws[0].items():
        low, high = np.quantile([draw[name] for draw in draws[1:]], [0.025, 0.975])
        figures |= {name: value, f"{name}_interval": [round(float(low), 4), round(float(high), 4)]}
        rows.append([name, f"{value:.3f}", f"{low:.3f} {high:.3f}"])
    show("Agreement with people, DeFacto val", ["measure", "value", "95% interval"], rows)
    return figures


def measure(judged: Sequence[Judged]) -> dict[str, float]:
    errors = np.array([one.has_error for one in judged], float)
    changed, blamed, new = np.concatenate([one.words for one in judged], axis=1)
    word_f1, new_f1 = f1(blamed == 1, changed), f1(new == 1, changed)
    return {
        "blame_auc": auc(np.array([one.blame for one in judged]), errors),
        "score_auc": 1 - auc(np.array([one.quality.score for one in judged]), errors),
        "new_words_auc": auc(np.array([one.num_new for one in judged], float), errors),
        "word_f1": word_f1,
        "new_words_f1": new_f1,
        "word_f1_gain": word_f1 - new_f1,
    }


def corrected_higher(examples: Sequence[Example], judged: Sequence[Judged]) -> float:
    """Return the share of corrections that score higher than what they correct; ties count half."""
    gains = [
        score_of(example.prompt_text, example.meta["corrected"]).score - one.quality.score
        for example, one in zip(examples, judged, strict=True)
        if example.meta["has_error"] and example.meta["corrected"]
    ]
    return fmean((gain > 0) + (gain == 0) / 2 for gain in gains)


def score_of(document: str, summary: str) -> Quality:
    source = Source(parse_text(document))
    return judge_summary(parse_text(summary), source, length_limit(source)).quality


def faithful_pairs(examples: Sequence[Example]) -> Iterator[Pair]:
    for example in examples:
        reference = example.meta["corrected"] if example.meta["has_error"] else example.completion
        if reference:
            yield Pair(example.prompt_text, reference)


def sentences(document: str) -> list[str]:
    text = parse_text(document)
    return [text.string[text.words[s.start].start : text.words[s.stop - 1].end] for s in text.sentences]


def shuffled(pair: Pair) -> str:
    words = pair.reference.rstrip(". ").split()
    random.Random(SEED).shuffle(words)
    return f"{' '.join(words)}."


def content_words(string: str) -> list[str]:
    return list(dict.fromkeys(word.text for word in parse_text(string).words if word.is_content))


KINDS: dict[str, Callable[[Pair], str]] = {
    "empty": lambda pair: "",
    "refusal": lambda pair: "I'm sorry, but I cannot summarise this text.",
    "one word": lambda pair: content_words(pair.document)[0],
    "document": lambda pair: pair.document,
    "first sentence": lambda pair: f"{sentences(pair.document)[0]}.",
    "three fragments": lambda pair: " ".join(f"{' '.join(s.split()[:10])}." for s in sentences(pair.document)[:3]),
    "half a reference": lambda pair: " ".join(pair.reference.split()[: len(pair.reference.split()) // 2]),
    "key words": lambda pair: f"{' '.join(content_words(pair.document)[:15])}.",
    "list of key words": lambda pair: f"{', '.join(content_words(pair.document)[:12])}.",
    "shuffled reference": shuffled,
    "reference twice": lambda pair: f"{pair.reference} {pair.reference}",
    "reference and document": lambda pair: f"{pair.reference} {pair.document}",
    "empty phrase": lambda pair: "It was one of those things, and there was more of it than before.",
}


def judge_kinds(pairs: Sequence[Pair]) -> dict[str, list[Quality]]:
    answers: dict[str, Callable[[Pair], str]] = {"reference": lambda pair: pair.reference, **KINDS}
    return {kind: [score_of(pair.document, make(pair)) for pair in pairs] for kind, make in answers.items()}


def ablation(judged: Sequence[Judged], kinds: dict[str, dict[str, list[Quality]]]) -> dict[str, Any]:
    """Return for the score without each factor: agreement, and the degenerate answer that comes closest."""
    errors = np.array([one.has_error for one in judged], float)
    results: dict[str, Any] = {}
    rows = []
    for factor in FACTORS:
        margins = {
            f"{name}: {kind}": fmean(without(q, factor) for q in qualities["reference"])
            - fmean(without(q, factor) for q in qualities[kind])
            for name, qualities in kinds.items()
            for kind in KINDS
        }
        closest = min(margins, key=lambda name: margins[name])
        agreed = 1 - auc(np.array([without(one.quality, factor) for one in judged]), errors)
        results[factor] = {"score_auc": agreed, "least_margin": margins[closest], "closest": closest}
        rows.append(
            [
                factor if factor == FACTORS[0] else f"without {factor}",
                f"{agreed:.3f}",
                f"{margins[closest]:.3f}",
                closest,
            ]
        )
    show("Ablation", ["score", "AUC", "least lead of references", "over"], rows)
    return results


def without(quality: Quality, factor: str) -> float:
    return quality.score if factor == FACTORS[0] else quality._replace(**{factor: 1.0}).score


if __name__ == "__main__":
    main()
