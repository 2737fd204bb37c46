"""Matchers in other processes say what matchers of this process say."""

from __future__ import annotations

import os
import random
import signal
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from reward_support import ANSWERS, SHORT

from text2grad.lm.matching import vocabulary_of
from text2grad.lm.vocabulary import Masks, Vocabulary
from text2grad.models import load_tokenizer
from text2grad.reward.matcher_pool import MatcherPool
from text2grad.reward.matchers import OwnMatchers
from text2grad.reward.settings import Layout

LAYOUT = Layout(limits=SHORT)


@pytest.fixture(scope="module")
def vocabulary(tiny_model: Path) -> Vocabulary:
    tokenizer = load_tokenizer(tiny_model)
    return vocabulary_of(tokenizer, len(tokenizer))


@pytest.fixture(scope="module")
def pool(vocabulary: Vocabulary) -> Iterator[MatcherPool]:
    made = MatcherPool(vocabulary, LAYOUT, processes=2)
    yield made
    made.close()


def allowed(mask: Masks) -> list[int]:
    return np.flatnonzero(np.unpackbits(mask.view(np.uint8), bitorder="little")).tolist()


def test_both_allow_the_same_all_the_way(pool: MatcherPool, vocabulary: Vocabulary) -> None:
    own, pooled = OwnMatchers(vocabulary.to_match(), ANSWERS, LAYOUT), pool.open(ANSWERS)
    dice = random.Random(0)
    going = list(range(len(ANSWERS)))
    for _ in range(400):
        masks = own.masks(going)
        assert np.array_equal(pooled.masks(going), masks)
        tokens = [dice.choice(allowed(mask)) for mask in masks]
        own.advance(going, tokens)
        pooled.advance(going, tokens)
        going = [row for row, token in zip(going, tokens, strict=True) if token != vocabulary.end]
        if not going:
            break
    assert not going, "all judgements have ended"


def test_a_new_batch_starts_anew_and_may_have_fewer_answers_than_processes(
    pool: MatcherPool, vocabulary: Vocabulary
) -> None:
    for answers in (ANSWERS[:3], ANSWERS[:1]):
        expected = OwnMatchers(vocabulary.to_match(), answers, LAYOUT).masks(range(len(answers)))
        assert np.array_equal(pool.open(answers).masks(range(len(answers))), expected)


def test_a_token_against_the_grammar_is_an_error_here_and_the_pool_goes_on(
    pool: MatcherPool, vocabulary: Vocabulary
) -> None:
    matchers = pool.open(ANSWERS[:2])
    matchers.advance([0], [vocabulary.end])
    with pytest.raises(RuntimeError, match="against the grammar"):
        matchers.masks([0])
    assert pool.open(ANSWERS[:2]).masks([0, 1]).any()


def test_a_process_that_was_killed_is_noticed(vocabulary: Vocabulary) -> None:
    pool = MatcherPool(vocabulary, LAYOUT, processes=1)
    matchers = pool.open(ANSWERS[:1])
    matchers.masks([0])
    (process,) = pool.processes
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    with pytest.raises(RuntimeError, match="has ended"):
        matchers.advance([0], [vocabulary.end])
    pool.close()


def test_processes_end_with_the_pool(vocabulary: Vocabulary) -> None:
    pool = MatcherPool(vocabulary, LAYOUT, processes=2)
    pool.open(ANSWERS[:2]).masks([0, 1])
    processes = pool.processes
    del pool
    assert [process.returncode for process in processes] == [0, 0]
