"""Keys of records: when two annotation requests are the same."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from text2grad.annotate.store import record_key
from text2grad.critics.fingerprint import critic_digest
from text2grad.schema import Example, Feedback
from text2grad.settings import Settings

BASE = {"id": "1", "prompt": "p", "completion": "c", "reference": "r", "tests": "t", "meta": {"test_log": "l"}}


def key(**fields):
    return record_key(Example.model_validate(BASE | fields), "critic")


@pytest.mark.parametrize("field", list(BASE))
def test_the_key_covers_everything_that_a_critic_may_read(field):
    assert key(**{field: {"test_log": "other"} if field == "meta" else "other"}) != key()


def test_the_key_has_16_bytes_and_ignores_feedback():
    assert len(key()) == 16
    assert key(feedback=Feedback(critic="x", critique="old")) == key()
    assert key(meta={"test_log": "l", "annotation": {"key": "00"}}) == key()


def test_fields_are_separated():
    assert key(prompt="pc", completion="") != key(prompt="p", completion="c")


def test_the_key_covers_the_critic():
    example = Example.model_validate(BASE)
    assert record_key(example, "a") != record_key(example, "b")


def test_the_key_covers_feedback_only_for_a_critic_that_reads_it() -> None:
    plain = Example.model_validate(BASE)
    said = plain.model_copy(update={"feedback": Feedback(critic="human", critique="Too long.")})
    assert record_key(plain, "a") == record_key(said, "a")
    assert record_key(plain, "a", reads_feedback=True) != record_key(said, "a", reads_feedback=True)


class Strictness(Settings):
    level: int = 1


@dataclasses.dataclass
class Rules:
    names: tuple[str, ...] = ("E501",)


class Plain:
    def __init__(self, **attributes):
        vars(self).update(attributes)

    def critique(self, examples):
        return []


class Other(Plain):
    pass


def test_a_fingerprint_decides_alone():
    class Named(Plain):
        def fingerprint(self):
            return "always the same"

    assert critic_digest(Named(level=1)) == critic_digest(Named(level=2))


@pytest.mark.parametrize(
    ("one", "two"),
    [
        ({"level": 1}, {"level": 2}),
        ({"level": 1}, {"level": True}),
        ({"rules": ["a"]}, {"rules": ["b"]}),
        ({"rules": {"a": 1}}, {"rules": {"a": 2}}),
        ({"path": Path("a")}, {"path": Path("b")}),
        ({"settings": Strictness(level=1)}, {"settings": Strictness(level=2)}),
        ({"rules": Rules(("a",))}, {"rules": Rules(("b",))}),
    ],
)
def test_without_one_plain_attributes_decide(one, two):
    assert critic_digest(Plain(**one)) == critic_digest(Plain(**one))
    assert critic_digest(Plain(**one)) != critic_digest(Plain(**two))


def test_without_one_the_class_decides_and_other_objects_do_not():
    assert critic_digest(Plain()) != critic_digest(Other())
    assert critic_digest(Plain(model=object())) == critic_digest(Plain(model=object()))
