"""The address is the state: what it says is shown, and what is shown can be said by it."""

from __future__ import annotations

from datetime import UTC, date, datetime

from hypothesis import given
from hypothesis import strategies as st

from dashboard.palette import CLASSES
from dashboard.view import LONGEST_DAYS, MOST_HOURS_BACK, ZONES, Shape, View, read_view

KNOWN = datetime(2026, 11, 2, tzinfo=UTC)
TODAY = date(2026, 11, 29)


def test_without_an_address_the_last_four_known_weeks_are_shown():
    view = read_view({}, KNOWN, TODAY)
    assert (view.first, view.last, view.zone) == (date(2026, 10, 5), date(2026, 11, 1), "UTC")


def test_a_store_without_facts_shows_up_to_today():
    assert read_view({}, None, TODAY).last == TODAY


def test_days_are_days_of_the_zone():
    view = read_view(
        {"from": "2026-10-25", "to": "2026-10-25", "tz": "Europe/Berlin"}, KNOWN, TODAY
    )
    assert (view.until - view.since).total_seconds() == 25 * 3600, "the day with two 2 o'clocks"
    assert view.since == datetime(2026, 10, 24, 22, tzinfo=UTC)


def test_the_last_known_day_depends_on_the_zone():
    assert read_view({"tz": "Asia/Seoul"}, KNOWN, TODAY).last == date(2026, 11, 2)


def test_what_cannot_be_is_replaced_and_told():
    view = read_view({"from": "2026-13-01", "lang": "xx", "tz": "../etc/passwd"}, KNOWN, TODAY)
    assert {name for name, _ in view.remarks} == {"from", "lang", "tz"}
    assert (view.language, view.zone) == ("en", "UTC")


def test_a_shape_or_class_that_cannot_be_is_told():
    view = read_view({"shape": "0x1", "class": "wasted", "back": "-1"}, KNOWN, TODAY)
    assert {name for name, _ in view.remarks} == {"shape", "class", "back"}
    assert (view.shape, view.ledger_class) == (None, None)
    assert read_view({"shape": "8x2"}, KNOWN, TODAY).shape == Shape(8, 2)


def test_a_window_that_is_too_long_or_backwards_is_not_shown():
    for query in (
        {"from": "2020-01-01", "to": "2026-01-01"},
        {"from": "2026-10-02", "to": "2026-10-01"},
    ):
        view = read_view(query, KNOWN, TODAY)
        assert view.remarks
        assert view.days == 28


@given(
    first=st.dates(date(2020, 1, 1), date(2026, 1, 1)),
    days=st.integers(1, LONGEST_DAYS),
    zone=st.sampled_from(ZONES),
    language=st.sampled_from(["en", "ko"]),
    team=st.none() | st.text(min_size=1),
    job=st.none() | st.text(min_size=1),
    ledger_class=st.none() | st.sampled_from(list(CLASSES)),
    shape=st.none() | st.builds(Shape, st.integers(1, 64), st.integers(1, 4096)),
    queue=st.none() | st.text(min_size=1),
    state=st.none() | st.text(min_size=1),
    hours_back=st.integers(0, MOST_HOURS_BACK),
)
def test_a_link_shows_the_same_view_to_the_next_person(first, days, zone, language, **more):
    last = date.fromordinal(first.toordinal() + days - 1)
    view = View(first, last, zone, language, **more)
    assert read_view(view.address(), KNOWN, TODAY) == view
