from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

import pytest

from text2grad.reward_model.serving.batcher import Batcher, QueueFullError
from text2grad.schema import Example, Feedback

LONG = 30.0  # seconds that no test waits


class Echo:
    """Returns each completion as critique; raises on "bad", and waits for `go` before every batch."""

    def __init__(self) -> None:
        self.batches: list[list[str]] = []
        self.threads: set[str] = set()
        self.go = threading.Event()
        self.go.set()

    def critique(self, examples: Sequence[Example]) -> list[Feedback]:
        self.batches.append([example.completion for example in examples])
        self.threads.add(threading.current_thread().name)
        assert self.go.wait(LONG)
        if "bad" in self.batches[-1]:
            raise ArithmeticError("planted")
        return [Feedback(critic="echo", critique=text) for text in self.batches[-1]]


@pytest.fixture
def echo() -> Echo:
    return Echo()


def examples(*answers: str) -> list[Example]:
    return [Example(id=answer, prompt="p", completion=answer) for answer in answers]


def critiques(feedback: Sequence[Feedback]) -> list[str]:
    return [said.critique for said in feedback]


def run(
    critic: Any,
    scenario: Callable[[Batcher], Coroutine[Any, Any, Any]],
    size: int = 4,
    wait: float = 0,
    max_queue_size: int = 100,
) -> Any:
    async def inside() -> Any:
        async with Batcher(critic, "echo", size, wait, max_queue_size) as batcher:
            return await asyncio.wait_for(scenario(batcher), LONG)

    return asyncio.run(inside())


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(LONG):
        while not condition():
            await asyncio.sleep(0.001)


def test_concurrent_callers_share_a_batch_and_get_their_own_answers(echo):
    async def scenario(batcher):
        return await asyncio.gather(*(batcher.critique(examples(*pair)) for pair in ("ab", "cd", "ef")))

    answers = run(echo, scenario, size=6, wait=LONG)

    assert echo.batches == [["a", "b", "c", "d", "e", "f"]]
    assert list(map(critiques, answers)) == [["a", "b"], ["c", "d"], ["e", "f"]]


def test_batches_are_limited_and_first_in_first_out(echo):
    assert critiques(run(echo, lambda batcher: batcher.critique(examples(*"abcdefghij")), size=4)) == list("abcdefghij")
    assert echo.batches == [list("abcd"), list("efgh"), list("ij")]


def test_a_single_example_waits_for_max_wait(echo):
    began = time.monotonic()

    run(echo, lambda batcher: batcher.critique(examples("a")), wait=0.2)

    assert 0.2 <= time.monotonic() - began < 5


def test_an_example_on_which_the_critic_raises_fails_alone(echo, caplog):
    async def scenario(batcher):
        return await asyncio.gather(batcher.critique(examples("a", "bad")), batcher.critique(examples("b", "c")))

    (good, failed), others = run(echo, scenario)

    assert critiques([good, *others]) == ["a", "b", "c"]
    assert {said.status for said in (good, *others)} == {"ok"}
    assert (failed.status, failed.critic) == ("failed", "echo")
    assert failed.error == "the critic failed with ArithmeticError; see the server's log"
    assert "planted" in caplog.text
    assert echo.batches == [["a", "bad", "b", "c"], ["a", "bad"], ["a"], ["bad"], ["b", "c"]]


def test_a_critic_that_returns_too_few_feedbacks_fails():
    class Silent:
        def critique(self, examples):
            return []

    (failed,) = run(Silent(), lambda batcher: batcher.critique(examples("a")))

    assert failed.status == "failed"
    assert "returned 0 feedbacks for 1 examples" in failed.error


def test_a_full_queue_rejects_a_request_whole(echo):
    async def scenario(batcher):
        await batcher.critique(examples("a"))
        echo.go.clear()
        under_way = asyncio.create_task(batcher.critique(examples(*"bcde")))
        await until(lambda: len(echo.batches) == 2)
        waiting = asyncio.create_task(batcher.critique(examples(*"fghi")))
        await until(lambda: batcher.queue_size == 4)
        with pytest.raises(QueueFullError, match="4 examples are already queued"):
            await batcher.critique(examples("j", "k"))
        assert batcher.queue_size == 4
        echo.go.set()
        return critiques(await under_way + await waiting)

    assert run(echo, scenario, max_queue_size=5) == list("bcdefghi")


def test_a_cancelled_request_leaves_its_batch_intact(echo):
    async def scenario(batcher):
        echo.go.clear()
        cancelled, other = (asyncio.create_task(batcher.critique(examples(name))) for name in "ab")
        await until(lambda: len(echo.batches) == 1)
        cancelled.cancel()
        await asyncio.wait([cancelled])
        echo.go.set()
        return critiques(await other + await batcher.critique(examples("c")))

    assert run(echo, scenario) == ["b", "c"]
    assert echo.batches == [["a", "b"], ["c"]]


def test_the_critic_has_one_thread_and_the_event_loop_stays_free(echo):
    async def scenario(batcher):
        echo.go.clear()
        answers = [asyncio.create_task(batcher.critique(examples(name))) for name in "abcdefgh"]
        await until(lambda: len(echo.batches) == 1)
        for _ in range(50):  # the loop turns while the critic is busy, and no second batch begins
            await asyncio.sleep(0.001)
        assert len(echo.batches) == 1
        echo.go.set()
        await asyncio.gather(*answers)

    run(echo, scenario, size=4)

    assert len(echo.threads) == 1
    assert threading.current_thread().name not in echo.threads
