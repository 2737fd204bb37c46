"""Parts and the whole."""

import time

from text2grad.trainer.stopwatch import Stopwatch


def test_parts_are_timed_within_the_whole():
    watch = Stopwatch()
    with watch.part("sleeping"):
        time.sleep(0.02)
    time.sleep(0.01)
    assert 0.02 <= watch.parts["seconds_sleeping"] < watch.seconds
    assert watch.seconds >= 0.03
