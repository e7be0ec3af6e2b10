"""What an owned GPU costs per hour in which it is available.

annual = capex x (1 - residual) / life + power + network + space + staff;
power = kW x 8760 x load x PUE x price per kWh. The rate is per **available** GPU-hour: idle time is
paid for, it is not hidden in the rate of delivered hours (which would count idle time twice).
Formula: facts on GPU prices, on-premises rate.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from decimal import ROUND_HALF_UP, Decimal

from analytics.errors import PriceError
from analytics.prices import Price

HOURS_PER_YEAR = Decimal(8760)
_SIX = Decimal("0.000001")


@dataclass(frozen=True, slots=True, kw_only=True)
class Asset:
    """A purchase: money in ``currency``, ratios 0 to 1, ``power_kw`` at the wall before PUE.

    Raises PriceError for a life of nothing, ratios out of range or negative money.
    """

    gpus: int
    capex: Decimal
    currency: str = "USD"
    residual_ratio: Decimal = Decimal(0)
    life_years: Decimal = Decimal(4)
    power_kw: Decimal = Decimal(0)
    load_ratio: Decimal = Decimal(1)
    pue: Decimal = Decimal(1)
    price_per_kwh: Decimal = Decimal(0)
    network_per_year: Decimal = Decimal(0)
    space_per_year: Decimal = Decimal(0)
    staff_per_year: Decimal = Decimal(0)
    availability_ratio: Decimal = Decimal(1)

    def __post_init__(self) -> None:
        checks = (
            (self.gpus < 1, "gpus must be 1 or more"),
            (self.life_years <= 0, "life_years must be above 0"),
            (not 0 <= self.residual_ratio < 1, "residual_ratio must be 0 or more and below 1"),
            (
                not 0 < self.availability_ratio <= 1,
                "availability_ratio must be above 0 and up to 1",
            ),
            (not 0 <= self.load_ratio <= 1, "load_ratio must be 0 to 1"),
            (self.pue < 1, "pue must be 1 or more: it counts the building on top"),
            (min(self._money()) < 0, "money must not be negative"),
        )
        for wrong, text in checks:
            if wrong:
                raise PriceError(f"price calculate: {text}")

    def _money(self) -> tuple[Decimal, ...]:
        return (
            self.capex, self.power_kw, self.price_per_kwh, self.network_per_year,
            self.space_per_year, self.staff_per_year,
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class AmortizedRate:
    """Money per year by part, and the rate per available GPU-hour."""

    currency: str
    depreciation: Decimal
    power: Decimal
    network: Decimal
    space: Decimal
    staff: Decimal
    available_gpu_hours: Decimal
    per_gpu_hour: Decimal

    @property
    def per_year(self) -> Decimal:
        return self.depreciation + self.power + self.network + self.space + self.staff

    def to_dict(self) -> dict[str, str]:
        names = ("depreciation", "power", "network", "space", "staff", "per_year")
        rounded = {name: f"{getattr(self, name):.2f}" for name in names}
        return {
            "currency": self.currency,
            **rounded,
            "available_gpu_hours": f"{self.available_gpu_hours:.2f}",
            "per_gpu_hour": f"{self.per_gpu_hour:.6f}",
        }


def amortized_rate(asset: Asset) -> AmortizedRate:
    """The rate of an asset; rounded once, at the sixth decimal."""
    depreciation = asset.capex * (1 - asset.residual_ratio) / asset.life_years
    energy = asset.power_kw * HOURS_PER_YEAR * asset.load_ratio * asset.pue
    power = energy * asset.price_per_kwh
    hours = asset.gpus * HOURS_PER_YEAR * asset.availability_ratio
    parts = (
        depreciation,
        power,
        asset.network_per_year,
        asset.space_per_year,
        asset.staff_per_year,
    )
    rate = (sum(parts, Decimal(0)) / hours).quantize(_SIX, ROUND_HALF_UP)
    return AmortizedRate(asset.currency, *parts, hours, rate)


def as_price(asset: Asset, gpu_model: str, since: datetime, source: str) -> Price:
    """The rate as a row for the price book."""
    return Price(
        gpu_model=gpu_model,
        amount=amortized_rate(asset).per_gpu_hour,
        currency=asset.currency,
        kind="amortized",
        effective_from=since,
        source=source,
    )
