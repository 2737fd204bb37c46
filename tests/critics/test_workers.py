"""Critics in worker processes: the same feedback in the same order, errors, and who is divided at all."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pytest
from support import PASSAGE, Broken, Odd, Unloadable, VowelCritic

from text2grad.align.comment_aligner import CommentAligner
from text2grad.critics import workers
from text2grad.critics.base import collect_feedback
from text2grad.critics.rules.grounding import GroundingCritic
from text2grad.critics.rules.qa import QACritic
from text2grad.critics.workers import WorkerPool, critique_on_all_cores, num_workers
from text2grad.schema import Example, Feedback

EXAMPLES = [
    Example(
        id=str(i),
        prompt=PASSAGE,
        completion=f"It was built in {1860 + i} by Ingrid Moe.",
        feedback=Feedback(critic="human", critique='"Ingrid Moe" is right.'),
        meta={"document": PASSAGE},
    )
    for i in range(20)
]


@pytest.fixture(scope="module")
def pool() -> Iterator[WorkerPool]:
    made = WorkerPool(2)
    yield made
    made.close()


@pytest.mark.parametrize("critic", [GroundingCritic(max_words=20), QACritic(), CommentAligner()])
def test_workers_give_the_same_feedback_in_order(critic: GroundingCritic, pool: WorkerPool) -> None:
    assert pool.critique(critic, EXAMPLES) == critic.critique(EXAMPLES)


def test_an_exception_of_the_critic_comes_back_and_the_workers_go_on(pool: WorkerPool) -> None:
    with pytest.raises(LookupError, match="no such style"):
        pool.critique(Broken(), EXAMPLES)
    assert len(pool.critique(VowelCritic(), EXAMPLES)) == 20


def test_an_exception_that_cannot_be_made_again_harms_no_later_answer(pool: WorkerPool) -> None:
    with pytest.raises(RuntimeError, match="OddError: 3: no such style"):
        pool.critique(Odd(), EXAMPLES)
    assert pool.critique(VowelCritic(), EXAMPLES) == VowelCritic().critique(EXAMPLES)


def test_a_critic_that_a_worker_cannot_load_is_an_error_and_not_a_killed_worker(pool: WorkerPool) -> None:
    with pytest.raises(RuntimeError, match="OddError: 4: only here"):
        pool.critique(Unloadable(), EXAMPLES)
    assert pool.critique(VowelCritic(), EXAMPLES) == VowelCritic().critique(EXAMPLES)


def test_a_worker_that_is_killed_is_replaced() -> None:
    pool = WorkerPool(1)
    pool._workers[0].kill()
    pool._workers[0].wait()
    (first, *_) = collect_feedback(_InPool(pool), EXAMPLES[:2])
    assert first.status == "failed"
    assert "was killed" in str(first.error)
    assert pool.critique(VowelCritic(), EXAMPLES[:2]) == VowelCritic().critique(EXAMPLES[:2])
    pool.close()


class _InPool:
    def __init__(self, pool: WorkerPool) -> None:
        self.pool = pool

    def critique(self, examples: Sequence[Example]) -> list[Feedback]:
        return self.pool.critique(VowelCritic(), examples)


def test_only_independent_critics_of_many_examples_on_many_cores_are_divided(
    pool: WorkerPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    divided: list[str] = []

    class Pool:
        def critique(self, critic: VowelCritic, examples: Sequence[Example]) -> list[Feedback]:
            divided.append(type(critic).__name__)
            return pool.critique(critic, examples)

    monkeypatch.setattr(workers, "_shared_pool", lambda count: Pool())
    monkeypatch.setattr(workers, "num_workers", lambda: 8)
    many = EXAMPLES * 4
    assert collect_feedback(GroundingCritic(), many) == GroundingCritic().critique(many)
    collect_feedback(GroundingCritic(), EXAMPLES)
    collect_feedback(VowelCritic(), many)
    assert divided == ["GroundingCritic"]
    monkeypatch.setattr(workers, "num_workers", lambda: 2)
    critique_on_all_cores(GroundingCritic(), many)
    assert divided == ["GroundingCritic"]


def test_processes_of_one_machine_share_its_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers.os, "sched_getaffinity", lambda _: set(range(64)))
    assert num_workers() == 16
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "8")
    assert num_workers() == 8
