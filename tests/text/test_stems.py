import pytest

from text2grad.text.stems import stem


@pytest.mark.parametrize(
    "family",
    [
        "plan plans planned planning",
        "make makes making made",
        "city cities",
        "bus buses",
        "invest invests investor investment invested",
        "announce announced announcement",
        "organise organized organisation organizations",
        "colour color colours",
        "metre meters",
        "theatre theaters",
        "travel travelled traveler",
        "fall falls fell falling",
        "construct construction constructed",
        "child children",
        "sell sold sales",
    ],
)
def test_a_family_shares_its_stem(family):
    assert len({stem(word) for word in family.split()}) == 1


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("bread", "breeze"),
        ("inning", "in"),
        ("train", "trail"),
        ("harbour", "harvest"),
        ("bank", "bake"),
        ("lake", "lamp"),
    ],
)
def test_unrelated_words_do_not(one, other):
    assert stem(one) != stem(other)


def test_short_words_stay():
    assert [stem(word) for word in ("", "a", "as", "bus")] == ["", "a", "as", "bus"]
