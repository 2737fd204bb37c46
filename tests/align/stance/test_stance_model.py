from __future__ import annotations

from importlib.resources import files

import pytest

from text2grad.align.stance.stance_model import predict_stance, predict_stances_of_answer
from text2grad.align.weight_files import load_weights


@pytest.mark.parametrize("clause", ["It is good.", "It is wrong.", "", "\ue000", "?!", "word " * 500])
def test_probabilities(clause: str) -> None:
    found = predict_stance(clause)
    assert found.good + found.poor + found.unsure == pytest.approx(1.0)
    assert all(0.0 <= probability <= 1.0 for probability in found)


def test_praise_blame_and_what_is_missing_are_told_apart() -> None:
    assert predict_stance("The explanation is clear.").good > 0.8
    assert predict_stance("The explanation is wrong.").poor > 0.8
    assert predict_stance("It forgot the price.").missing > 0.8
    assert predict_stance("The price is wrong.").missing < 0.2


def test_both_models_decide_the_stance_of_a_clause() -> None:
    found = predict_stances_of_answer([("The explanation is wrong.", "", "")], [["share4"]])[0]
    assert found.good + found.poor + found.unsure == pytest.approx(1.0)
    assert found.poor > 0.8


def test_the_weights_are_small_and_whole() -> None:
    assert len(files("text2grad.align").joinpath("weights/stance.json.gz").read_bytes()) < 200_000
    weights = load_weights("text2grad.align", "stance")
    assert all(len(weight) == 4 and all(isinstance(value, int) for value in weight) for weight in weights.values())
