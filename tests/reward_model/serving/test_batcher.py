from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

import pytest

from text2grad.reward_model.serving.batcher import Batcher, BusyError
from text2grad.schema import Example, Feedback

LONG = 30.0  # seconds that no test waits


class Echo:
    """Says each answer back; raises on "bad", and waits for `go` before every batch."""

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
    room: int = 100,
) -> Any:
    async def inside() -> Any:
        async with Batcher(critic, "echo", size, wait, room) as batcher:
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


def test_no_batch_is_larger_than_its_limit_and_those_who_came_first_go_first(echo):
    assert critiques(run(echo, lambda batcher: batcher.critique(examples(*"abcdefghij")), size=4)) == list("abcdefghij")
    assert echo.batches == [list("abcd"), list("efgh"), list("ij")]


def test_one_example_alone_waits_no_longer_than_it_must(echo):
    began = time.monotonic()

    run(echo, lambda batcher: batcher.critique(examples("a")), wait=0.2)

    assert 0.2 <= time.monotonic() - began < 5


def test_an_example_that_breaks_the_critic_fails_alone(echo, caplog):
    async def scenario(batcher):
        return await asyncio.gather(batcher.critique(examples("a", "bad")), batcher.critique(examples("b", "c")))

    (good, failed), others = run(echo, scenario)

    assert critiques([good, *others]) == ["a", "b", "c"]
    assert {said.status for said in (good, *others)} == {"ok"}
    assert (failed.status, failed.critic) == ("failed", "echo")
    assert failed.error == "the critic failed with ArithmeticError; the server's log says more"
    assert "planted" in caplog.text
    assert echo.batches == [["a", "bad", "b", "c"], ["a", "bad"], ["a"], ["bad"], ["b", "c"]]


def test_a_critic_that_owes_an_answer_has_failed(caplog):
    class Silent:
        def critique(self, examples):
            return []

    (failed,) = run(Silent(), lambda batcher: batcher.critique(examples("a")))

    assert failed.status == "failed"
    assert "returned 0 comments on 1 answers" in caplog.text


def test_a_full_line_refuses_a_request_whole_and_says_when_to_come_back(echo):
    async def scenario(batcher):
        await batcher.critique(examples("a"))
        echo.go.clear()
        under_way = asyncio.create_task(batcher.critique(examples(*"bcde")))
        await until(lambda: len(echo.batches) == 2)
        waiting = asyncio.create_task(batcher.critique(examples(*"fghi")))
        await until(lambda: batcher.waiting == 4)
        with pytest.raises(BusyError, match="4 examples are waiting already") as refused:
            await batcher.critique(examples("j", "k"))
        assert batcher.waiting == 4
        echo.go.set()
        return critiques(await under_way + await waiting), refused.value.retry_after

    answers, retry_after = run(echo, scenario, room=5)

    assert answers == list("bcdefghi")
    assert retry_after == 1


def test_a_slow_critic_asks_for_more_patience(echo):
    async def scenario(batcher):
        echo.go.clear()
        first = asyncio.create_task(batcher.critique(examples("a")))
        await until(lambda: len(echo.batches) == 1)
        await asyncio.sleep(0.3)
        echo.go.set()
        await first
        echo.go.clear()
        under_way = asyncio.create_task(batcher.critique(examples("b")))
        await until(lambda: len(echo.batches) == 2)
        waiting = asyncio.create_task(batcher.critique(examples(*"cdefghij")))
        await until(lambda: batcher.waiting == 8)
        with pytest.raises(BusyError) as refused:
            await batcher.critique(examples("k"))
        echo.go.set()
        await asyncio.gather(under_way, waiting)
        return refused.value.retry_after

    assert run(echo, scenario, room=8) >= 3  # 8 examples at 0.3 seconds each


def test_whoever_leaves_takes_his_examples_out_of_the_line(echo):
    async def scenario(batcher):
        echo.go.clear()
        under_way = asyncio.create_task(batcher.critique(examples("a")))
        await until(lambda: len(echo.batches) == 1)
        leaving, staying = (asyncio.create_task(batcher.critique(examples(*names))) for names in ("bc", "d"))
        await until(lambda: batcher.waiting == 3)
        leaving.cancel()
        await until(lambda: batcher.waiting == 1)
        echo.go.set()
        return critiques(await under_way + await staying)

    assert run(echo, scenario) == ["a", "d"]
    assert echo.batches == [["a"], ["d"]]


def test_whoever_leaves_in_the_middle_of_a_batch_leaves_the_others_alone(echo):
    async def scenario(batcher):
        echo.go.clear()
        leaving, staying = (asyncio.create_task(batcher.critique(examples(name))) for name in "ab")
        await until(lambda: len(echo.batches) == 1)
        leaving.cancel()
        await asyncio.wait([leaving])
        echo.go.set()
        return critiques(await staying + await batcher.critique(examples("c")))

    assert run(echo, scenario) == ["b", "c"]
    assert echo.batches == [["a", "b"], ["c"]]


def test_all_may_leave_while_they_wait_for_company(echo):
    async def scenario(batcher):
        leaving = asyncio.create_task(batcher.critique(examples("a")))
        await until(lambda: batcher.waiting == 1)
        leaving.cancel()
        await asyncio.sleep(0.2)
        return critiques(await batcher.critique(examples("b")))

    assert run(echo, scenario, wait=0.1) == ["b"]
    assert echo.batches == [["b"]]


def test_closing_finishes_what_was_taken_without_waiting_for_company(echo):
    async def scenario():
        async with Batcher(echo, "echo", max_batch_size=4, max_wait=LONG, max_waiting=100) as batcher:
            taken = asyncio.create_task(batcher.critique(examples(*"abcdef")))
            await until(lambda: batcher.waiting == 2)
        with pytest.raises(BusyError, match="starting or stopping"):
            await batcher.critique(examples("g"))
        return critiques(await taken)

    assert asyncio.run(scenario()) == list("abcdef")


def test_nothing_is_taken_before_the_start(echo):
    batcher = Batcher(echo, "echo", max_batch_size=4, max_wait=0, max_waiting=100)
    with pytest.raises(BusyError, match="starting or stopping"):
        asyncio.run(batcher.critique(examples("a")))


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
