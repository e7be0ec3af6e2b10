from __future__ import annotations

from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collector.slurm import duration, job_state, node_flags, stamp
from collector.slurm.refusal import MalformedError


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        *(("00:01:00", 60), ("1-00:00:00", 86400), ("02:03.250", 123), ("100:00:00", 360000)),
        *(("", None), ("INVALID", None), ("3-01:02:03", 262923)),
    ],
)
def test_spans(text, seconds):
    assert duration.seconds(text) == seconds


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("60", 3600), ("01:00:00", 3600), ("UNLIMITED", None), ("Partition_Limit", None), ("", None)],
)
def test_limits_are_minutes_or_spans(text, seconds):
    assert duration.limit_seconds(text) == seconds


@pytest.mark.parametrize("text", ["1:2:3:4", "x", "1-", "-5:00", "5"])
def test_a_broken_span_is_malformed(text):
    with pytest.raises(MalformedError):
        duration.seconds(text)


@pytest.mark.parametrize("text", ["Unknown", "None", "", "N/A", "0"])
def test_no_instant(text):
    assert stamp.epoch(text) is None


@pytest.mark.parametrize(
    ("text", "zone", "epoch"),
    [
        ("1793491200", "UTC", 1793491200),
        ("2026-11-01T00:00:00", "UTC", 1793491200),
        ("2026-11-01T09:00:00", "Asia/Seoul", 1793491200),
        ("2026-11-01T00:00:00+00:00", "Asia/Seoul", 1793491200),
        ("2026-11-01T01:30:00+0100", "UTC", 1793493000),
        # 2026-10-25 02:30 comes twice in Berlin; the first pass is summer time.
        ("2026-10-25T02:30:00", "Europe/Berlin", 1792888200),
    ],
)
def test_instants_in_their_zone(text, zone, epoch):
    assert stamp.epoch(text, ZoneInfo(zone)) == epoch


@pytest.mark.parametrize(
    "text",
    [
        "yesterday",
        "2026-13-01T00:00:00",
        "2026-11-01",
        "1793491200000",
        "17",
        "1999-01-01T00:00:00",
    ],
)
def test_a_broken_instant_is_malformed(text):
    with pytest.raises(MalformedError, match="time"):
        stamp.epoch(text)


@given(st.text(alphabet="0123456789-T:+Z. ", max_size=25))
def test_any_text_is_an_instant_or_malformed(text):
    try:
        found = stamp.epoch(text)
    except MalformedError:
        return
    assert found is None or stamp.EARLIEST <= found < stamp.LATEST


@pytest.mark.parametrize(
    ("text", "state"),
    [
        ("COMPLETED", "COMPLETED"),
        ("CANCELLED by 1000", "CANCELLED"),
        ("CANCELLED+", "CANCELLED"),
        ("OUT_OF_ME+", "OUT_OF_MEMORY"),
        ("NODE_FAIL", "NODE_FAIL"),
        ("BOOT_FAIL", "NODE_FAIL"),
        ("DEADLINE", "TIMEOUT"),
        ("CD", "COMPLETED"),
        ("SOMETHING_NEW", "UNKNOWN"),
        ("RE+", "UNKNOWN"),
        ("", "UNKNOWN"),
    ],
)
def test_job_states(text, state):
    assert job_state.state_of(text) == state


@pytest.mark.parametrize(
    ("text", "state"),
    [
        ("IDLE", None),
        ("MIXED+PLANNED", None),
        ("ALLOCATED+RESERVED", None),
        ("IDLE+DRAIN", "drained"),
        ("MIXED+DRAIN+NOT_RESPONDING", "down"),
        ("DOWN*+DRAIN", "down"),
        ("IDLE*", "down"),
        ("IDLE~", "powered_down"),
        ("IDLE+POWERED_DOWN", "powered_down"),
        ("IDLE+MAINTENANCE", "maintenance"),
        ("DOWN+REBOOT_ISSUED", "down"),
        ("IDLE+REBOOT_REQUESTED", None),
        ("DRAINING@", "rebooting"),
        ("ALLOCATED-", None),
        ("WHATEVER+NEW", None),
    ],
)
def test_node_states(text, state):
    assert node_flags.state_of(text) == state
