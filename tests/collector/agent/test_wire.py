"""What the reader process says arrives whole or not at all."""

from __future__ import annotations

from io import BytesIO

import pytest

from collector.agent import wire

MESSAGE = {"tick": {"values": {"util_ratio": 0.25}, "links": {3: (1.0, 2.0)}, "none": None}}


def test_messages_come_out_as_they_went_in():
    pipe = BytesIO(wire.frame(MESSAGE) + wire.frame({"beat": 1}))
    assert [wire.read(pipe), wire.read(pipe), wire.read(pipe)] == [MESSAGE, {"beat": 1}, None]


@pytest.mark.parametrize("left", [0, 3, 4, 20])
def test_a_message_cut_off_by_the_end_of_its_sender_is_the_end(left):
    assert wire.read(BytesIO(wire.frame(MESSAGE)[:left])) is None
