"""The writer: acknowledged after commit, in order, one bad batch alone, never unbounded."""

from __future__ import annotations

import threading
import time

import pytest

from unstrand.errors import BackPressureError
from unstrand.service.writer import Writer


def note(name):
    """A batch of one row of store_info."""
    return lambda work: work.append("store_info", {"key": [name], "value": ["x"]})


def keys(store):
    return [row["key"] for row in store.rows("SELECT key FROM store_info WHERE value = 'x'")]


@pytest.fixture
def writer(store):
    writer = Writer(store, queue_batches=4)
    yield writer
    writer.stop()


def test_a_batch_is_acknowledged_when_others_can_read_it(store, writer):
    writer.start()
    assert writer.submit(note("a"), source="test").result(5) == 1
    assert keys(store) == ["a"]


def test_batches_are_written_in_the_order_they_came(store, writer):
    writer.start()
    done = [writer.submit(note(str(i)), source="test") for i in range(50)]
    for future in done:
        future.result(5)
    assert keys(store) == [str(i) for i in range(50)]
    assert writer.figures.batches == writer.figures.rows == 50


def test_a_broken_batch_takes_no_other_one_down(store, writer):
    gate = threading.Event()

    def hold(work):
        gate.wait(5)
        return 0

    writer.start()
    first = writer.submit(hold, source="test")
    good = writer.submit(note("good"), source="test")
    bad = writer.submit(lambda work: work.append("no_such_table", {"a": [1]}), source="broken")
    after = writer.submit(note("after"), source="test")
    gate.set()
    assert first.result(5) == 0
    assert (good.result(5), after.result(5)) == (1, 1)
    with pytest.raises(Exception, match="no_such_table"):
        bad.result(5)
    assert keys(store) == ["good", "after"], "each once, although the group was tried twice"
    assert writer.figures.failed == 1
    assert writer.alive


def test_a_full_queue_is_said_to_the_sender_and_nothing_is_taken(store, writer):
    gate = threading.Event()

    def hold(work):
        gate.wait(5)
        return 0

    writer.start()
    held = writer.submit(hold, source="test")
    while writer.waiting:
        time.sleep(0.001)
    taken = [writer.submit(note(str(i)), source="test") for i in range(4)]
    with pytest.raises(BackPressureError, match="send it again"):
        writer.submit(note("refused"), source="node-7", timeout_s=0.05)
    gate.set()
    for future in [held, *taken]:
        future.result(5)
    assert keys(store) == ["0", "1", "2", "3"]
    assert writer.figures.refused == 1


def test_stopping_writes_what_was_taken_and_refuses_the_rest(store, writer):
    writer.start()
    taken = [writer.submit(note(str(i)), source="test") for i in range(4)]
    writer.stop()
    assert all(future.result(0) == 1 for future in taken)
    with pytest.raises(BackPressureError, match="stopping"):
        writer.submit(note("late"), source="test")
    assert not writer.alive
