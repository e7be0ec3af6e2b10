"""The on-prem rate, by hand."""

from __future__ import annotations

from decimal import Decimal

import pytest

from analytics.amortization import Asset, amortized_rate, as_price
from analytics.errors import PriceError
from analytics.window import EPOCH


def test_an_eight_gpu_node_by_hand():
    node = Asset(
        gpus=8, capex=Decimal(320_000), residual_ratio=Decimal("0.25"), life_years=Decimal(4),
        power_kw=Decimal("10.2"), pue=Decimal("1.3"), price_per_kwh=Decimal("0.12"),
        network_per_year=Decimal(2_000), space_per_year=Decimal(1_500),
        staff_per_year=Decimal(6_000), availability_ratio=Decimal("0.95"),
    )  # fmt: skip
    rate = amortized_rate(node)
    # 320,000 x 0.75 / 4 = 60,000; 10.2 x 8760 x 1.3 x 0.12 = 13,938.912; 9,500 more; 66,576 hours
    assert rate.per_year == Decimal("83438.912")
    assert rate.available_gpu_hours == Decimal(66_576)
    assert rate.per_gpu_hour == Decimal("1.253288")
    assert as_price(node, "h100", EPOCH, "test").kind == "amortized"


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        ({"life_years": Decimal(0)}, "life_years"),
        ({"residual_ratio": Decimal(1)}, "residual_ratio"),
        ({"pue": Decimal("0.9")}, "pue"),
        ({"availability_ratio": Decimal(0)}, "availability_ratio"),
    ],
)
def test_numbers_out_of_range_are_refused_by_name(wrong, why):
    with pytest.raises(PriceError, match=why):
        Asset(gpus=8, capex=Decimal(1), **wrong)
