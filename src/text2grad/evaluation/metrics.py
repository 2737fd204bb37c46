"""Metrics of single completions."""

from __future__ import annotations

import re
import string
from collections import Counter
from functools import cache

from rouge_score.rouge_scorer import RougeScorer

from text2grad.errors import UserError
from text2grad.schema import Feedback


def rouge_l(text: str, references: str | list[str]) -> float:
    """Return ROUGE-L F1 with stemming, against the best of the references."""
    references = [references] if isinstance(references, str) else references
    return max(float(_scorer().score(reference, text)["rougeL"].fmeasure) for reference in references)


def token_f1(text: str, references: str | list[str]) -> float:
    """Return SQuAD's F1 of words, against the best of the references."""
    references = [references] if isinstance(references, str) else references
    return max(_word_f1(_squad_words(text), _squad_words(reference)) for reference in references)


def exact_match(text: str, references: str | list[str]) -> float:
    """Return 1 if the text equals a reference but for case, punctuation and articles (SQuAD's exact match), else 0."""
    references = [references] if isinstance(references, str) else references
    return float(any(_squad_words(text) == _squad_words(reference) for reference in references))


def sentence_bleu(text: str, references: str | list[str]) -> float:
    """Return sacreBLEU's sentence BLEU, from 0 to 100: n-grams that do not occur are smoothed (exp)."""
    try:
        import sacrebleu
    except ImportError as error:
        raise UserError('BLEU needs the package sacrebleu: pip install "text2grad[eval]"') from error
    references = [references] if isinstance(references, str) else references
    return float(sacrebleu.sentence_bleu(text, references).score)


def critic_score(feedback: Feedback) -> float:
    """Return the critic's own score; without one, praise minus blame minus omissions, each by its severity."""
    if feedback.score is not None:
        return feedback.score
    praise = sum(span.severity for span in feedback.spans if span.label == "good")
    blame = sum(span.severity for span in feedback.spans if span.label == "poor")
    return praise - blame - sum(omission.severity for omission in feedback.omissions)


def _squad_words(text: str) -> list[str]:
    plain = "".join(character for character in text.lower() if character not in string.punctuation)
    return re.sub(r"\b(?:a|an|the)\b", " ", plain).split()


def _word_f1(said: list[str], wanted: list[str]) -> float:
    common = sum((Counter(said) & Counter(wanted)).values())
    return 2 * common / (len(said) + len(wanted)) if common else float(said == wanted)


@cache
def _scorer() -> RougeScorer:
    return RougeScorer(["rougeL"], use_stemmer=True)
