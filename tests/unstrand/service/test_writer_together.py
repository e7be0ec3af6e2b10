"""Parts of the same kind that wait are written together; one that is refused costs only itself."""

from __future__ import annotations

import threading

import pytest

from unstrand.service.writer import Writer


@pytest.fixture
def writer(store):
    writer = Writer(store)
    yield writer
    writer.stop()


class Notes:
    """Writes keys of store_info; refuses `bad`, and cannot store anything beside `poison`."""

    def __init__(self):
        self.groups = []

    def write(self, work, parts):
        self.groups.append(list(parts))
        if "poison" in parts:
            raise ValueError("poison")
        good = [part for part in parts if part != "bad"]
        work.append("store_info", {"key": good, "value": ["x"] * len(good)})
        return [ValueError("bad") if part == "bad" else 1 for part in parts]


def behind_a_gate(writer, notes, parts):
    gate = threading.Event()
    writer.start()
    held = writer.submit(lambda work: int(gate.wait(5)) * 0, source="test")
    done = [writer.submit_part(part, notes.write, source="test") for part in parts]
    gate.set()
    held.result(5)
    return [future.exception(5) or future.result(0) for future in done]


def keys(store):
    return [row["key"] for row in store.rows("SELECT key FROM store_info WHERE value = 'x'")]


def test_what_waits_is_written_in_one_call(store, writer):
    notes = Notes()
    assert behind_a_gate(writer, notes, ["a", "b", "c"]) == [1, 1, 1]
    assert ["a", "b", "c"] in notes.groups
    assert keys(store) == ["a", "b", "c"]


def test_a_refusal_reaches_its_sender_and_the_others_are_written(store, writer):
    answers = behind_a_gate(writer, Notes(), ["a", "bad", "c"])
    assert [str(answer) for answer in answers] == ["1", "bad", "1"]
    assert keys(store) == ["a", "c"]
    assert writer.figures.rows == 2


def test_what_breaks_a_group_is_found_and_fails_alone(store, writer):
    answers = behind_a_gate(writer, Notes(), ["a", "poison", "c"])
    assert [str(answer) for answer in answers] == ["1", "poison", "1"]
    assert keys(store) == ["a", "c"]
