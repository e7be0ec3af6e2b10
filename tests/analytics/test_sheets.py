"""Broken price and owner files: refused whole, with file, line and what is wrong."""

from __future__ import annotations

from decimal import Decimal

import pytest

from analytics.errors import OrgMapError, PriceError, WindowError
from analytics.org import read_mappings
from analytics.prices import read_prices
from analytics.window import Window, parse_time

PRICES = "gpu_model,amount,currency,effective_from,effective_to\nh100,2,USD,,\n"
OWNERS = "key_kind,key_value,team,ratio,ratio_ppm,valid_from,valid_to\naccount,a,red,,,,\n"
EARLY = "0001-01-01T00:00+23:00"


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("t4,NaN,USD,,", "'NaN' is no number"),
        ("t4,sNaN,USD,,", "'sNaN' is no number"),
        ("t4,Infinity,USD,,", "'Infinity' is no number"),
        ("t4,1e30,USD,,", "'1e30' is no number below 100000"),
        ("t4,1e999999999,USD,,", "is no number below 100000"),
        ("t4,two,USD,,", "'two' is no number"),
        ('t4,"2,50",USD,,', "'2,50' is no number below 100000: write 2.50"),
        (",2,USD,,", "gpu_model is empty"),
        ("t4,2,USD,soon,", "'soon' is no time"),
        (f"t4,2,USD,{EARLY},", "outside the years"),
        ('"t4,2,USD,,', "quote not closed"),
        (f"{'t' * 200_000},2,USD,,", "field larger"),
        ("t\0,2,USD,,", "zero byte"),
    ],
)
def test_a_broken_price_is_refused_with_file_line_and_reason(line, why):
    with pytest.raises(PriceError) as refused:
        read_prices(PRICES + line + "\n", "p.csv")
    assert str(refused.value).startswith("p.csv line 3: ")
    assert why in str(refused.value)


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("account,b,red,nan,,,", "'nan' is no number"),
        ("account,b,red,inf,,,", "'inf' is no number"),
        ("account,b,red,60%,,,", "'60%' is no number"),
        ("account,b,red,-1,,,", "above 0"),
        ("account,b,red,,x,,", "'x' is no number"),
        ("account,b,red,,99999999999999999999,,", "up to 1"),
        ("account,b,red,,,2026-02-01,2026-01-01", "valid_to must lie after"),
        (f"account,b,red,,,{EARLY},", "outside the years"),
        ('account,"b,red,,,,', "quote not closed"),
        (f"account,{'b' * 200_000},red,,,,", "field larger"),
        ("account,b\0,red,,,,", "zero byte"),
    ],
)
def test_a_broken_mapping_is_refused_with_file_line_and_reason(line, why):
    with pytest.raises(OrgMapError) as refused:
        read_mappings(OWNERS + line + "\n", "o.csv")
    assert str(refused.value).startswith("o.csv line 3: ")
    assert why in str(refused.value)


def test_a_column_that_is_there_twice_is_refused():
    with pytest.raises(PriceError, match=r"p.csv: the header names amount twice"):
        read_prices("gpu_model,amount,amount,currency\nh100,1,2,USD\n", "p.csv")


def test_a_blank_amount_is_not_known_and_so_no_price():
    (price,) = read_prices(PRICES + "t4,,USD,,\n", "p.csv")
    assert (price.gpu_model, price.amount) == ("h100", Decimal(2))


def test_an_instant_that_leaves_the_calendar_in_utc_is_refused():
    with pytest.raises(WindowError, match="outside the years"):
        parse_time("9999-12-31T23:59:59-23:00")


def test_a_window_at_the_edge_of_the_calendar_is_refused():
    with pytest.raises(WindowError, match="leaves the years 1900 to 2200"):
        Window.parse("2026-01-01", "9999-12-31T23:30")
    with pytest.raises(WindowError, match="is too long"):
        Window.back("99999999999999w", parse_time("2026-01-01"))
