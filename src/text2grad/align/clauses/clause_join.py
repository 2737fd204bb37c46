"""Whether two neighbouring parts of a comment say one thing: "Who says so? The article does not." blames once.

A logistic regression over how the right part starts, the marks and conjunctions between the parts, their lengths, the
words that they share, and the stance of each. Trained by `benchmarks/train_stance.py`.
"""

from __future__ import annotations

from functools import lru_cache
from math import exp

from text2grad.align.clauses.clause_split import Piece
from text2grad.align.stance.stance_features import find_roles, split_tokens
from text2grad.align.stance.stance_model import StanceProbabilities
from text2grad.align.weight_files import load_weights
from text2grad.text.lexicon import word_set
from text2grad.text.stems import stem

_SCALE = 100  # the weights are stored as hundredths
_STRONG = 0.75  # probability of a stance from which on it is told apart from a weaker one
_FUNCTION_WORDS = word_set("""
    the a an it its this that these those is are was were be and or of to in on for with as at by from not no i you we
    they he she my your there here have has had do does did would should could can will so but if
    """)


def extract_join_features(
    masked: str, left: Piece, right: Piece, stances: tuple[StanceProbabilities, StanceProbabilities]
) -> list[str]:
    """Return the names of the features of two neighbouring parts. stances: of the left and the right one."""
    first, second = (split_tokens(masked[part.start : part.end]) for part in (left, right))
    kinds = [_stance_key(stance) for stance in stances]
    mark = masked[left.start : right.start].rstrip()[-1:]
    mark = "w" if mark.isalnum() else mark
    lengths = [min(len(tokens), 20).bit_length() for tokens in (first, second)]
    roles = [set(find_roles(tokens)[0]) - {""} for tokens in (first, second)]
    shared = ({stem(token) for token in first} & {stem(token) for token in second}) - _FUNCTION_WORDS
    features = [f"mark:{mark}", f"word:{right.before}", f"end:{masked[right.start : right.end].rstrip()[-1:]}"]
    features += [f"stances:{kinds[0]}{kinds[1]}", f"left:{kinds[0]}", f"right:{kinds[1]}"]
    features += [f"stances:{kinds[0][0]}{kinds[1][0]} mark:{mark}", f"same:{kinds[0][0] == kinds[1][0]} {right.before}"]
    features += [f"lengths:{lengths[0]} {lengths[1]}", f"length:{lengths[1]}", f"length left:{lengths[0]}"]
    features += [f"starts:{' '.join(second[:n])}" for n in (1, 2)]
    features += [f"starts left:{' '.join(first[:1])}", f"shared:{min(len(shared), 3)}"]
    features += [f"role:{role}" for role in roles[1]] + [f"role left:{role}" for role in roles[0]]
    features += [f"missing:{round(2 * stances[0].missing)}{round(2 * stances[1].missing)}"]
    return features


def predict_join(
    masked: str, left: Piece, right: Piece, stances: tuple[StanceProbabilities, StanceProbabilities]
) -> float:
    """Return the probability that two neighbouring parts say one thing; praise and blame never do."""
    if max(min(stances[0].good, stances[1].poor), min(stances[0].poor, stances[1].good)) >= _STRONG:
        return 0.0
    weights = _load_weights()
    score = weights["bias"]
    for feature in extract_join_features(masked, left, right, stances):
        score += weights.get(feature, 0)
    return 1.0 / (1.0 + exp(-max(-50.0, score / _SCALE)))


def _stance_key(stance: StanceProbabilities) -> str:
    """Return the likeliest stance's letter, and whether it is likely."""
    probability, letter = max((stance.good, "g"), (stance.poor, "p"), (stance.unsure, "u"))
    return letter + ("+" if probability >= _STRONG else "-")


@lru_cache(maxsize=1)
def _load_weights() -> dict[str, int]:
    weights: dict[str, int] = load_weights("text2grad.align", "join")
    return weights
