"""Figures as people read them."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal

import pytest

from dashboard.formats import (
    change,
    hours,
    length,
    money,
    number,
    percent,
    points,
    whole_money,
)


@pytest.mark.parametrize(
    ("shown", "wanted"),
    [
        (money(Decimal("1234567.891"), "USD"), "1,234,567.89 USD"),
        (money(Decimal("-0.001"), "USD"), "0.00 USD"),
        (money(None, "USD"), "–"),
        (whole_money(Decimal("999.994"), "EUR"), "999.99 EUR"),
        (whole_money(Decimal("12345.5"), "EUR"), "12,346 EUR"),
        (hours(0.04), "0.0 GPU-h"),
        (hours(12345.6), "12,346 GPU-h"),
        (number(None), "–"),
        (percent(None), "–"),
        (percent(1.0), "100.0%"),
        (percent(0.99999), "99.9%"),
        (percent(0.0), "0.0%"),
        (percent(0.0001), "<0.1%"),
        (change(Decimal(112), Decimal(100)), "+12%"),
        (change(Decimal(1), Decimal(0)), "–"),
        (change(Decimal(0), Decimal(5)), "-100%"),
        (change(100.1, 100.0), "±0%"),
        (points(0.5, 0.512), "-1.2 pp"),
        (length(timedelta(days=3, hours=4, minutes=5)), "3 d 4 h"),
        (length(timedelta(minutes=70)), "1 h 10 min"),
        (length(timedelta(0)), "0 min"),
        (length(timedelta(days=12, hours=15), ("일", "시간", "분")), "12일 15시간"),
    ],
)
def test_figures_read_well(shown, wanted):
    assert shown == wanted
