"""The price book: what a GPU-hour of a model costs over time, with its source."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal, InvalidOperation
from importlib import resources
from typing import Any

from analytics.errors import PriceError
from analytics.sheet import read_sheet
from analytics.window import EPOCH, parse_time
from collector.store import Work

KINDS = ("internal", "contracted", "amortized", "list")
UNIT = "gpu_hour"
_MAX_AMOUNT = Decimal("100000")
_DEFAULT = "default:"
_NEVER_PRICED = (
    "price 0 is refused: a missing price is no price. Write free=true for a GPU that costs nothing"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Price:
    """An amount per GPU-hour over ``[effective_from, effective_to)``.

    Raises PriceError for an unknown kind, a unit that is not one GPU for one hour, a currency that
    is no ISO 4217 code, an amount below 0, or 0 without ``free``.
    """

    gpu_model: str
    amount: Decimal
    currency: str
    kind: str
    source: str
    effective_from: datetime = EPOCH
    effective_to: datetime | None = None
    cluster: str | None = None
    purchase_type: str = "on_demand"
    unit: str = UNIT
    free: bool = False
    retrieved_on: date | None = None

    def __post_init__(self) -> None:
        problem = _problem(self)
        if problem is not None:
            raise PriceError(f"price of {self.gpu_model}: {problem}")

    @property
    def price_id(self) -> str:
        """A hash of the row's content: the same row is the same price everywhere."""
        amount = self.amount.quantize(Decimal("0.000001"))
        text = "|".join(
            str(part)
            for part in (
                self.cluster, self.gpu_model, self.purchase_type, self.unit, amount, self.currency,
                self.kind, self.free, self.effective_from.isoformat(), self.effective_to,
                self.source,
            )
        )  # fmt: skip
        return hashlib.sha256(text.encode()).hexdigest()[:16]


def _problem(price: Price) -> str | None:
    checks = (
        (not price.gpu_model, "gpu_model is empty: name the model as `price list` does"),
        (price.kind not in KINDS, f"kind {price.kind!r}: use one of {', '.join(KINDS)}"),
        (price.unit != UNIT, f"unit {price.unit!r}: only {UNIT} (divide a node or month price)"),
        (
            len(price.currency) != 3
            or not price.currency.isascii()
            or not price.currency.isupper(),
            f"currency {price.currency!r}: use an ISO 4217 code such as USD",
        ),
        (not 0 <= price.amount < _MAX_AMOUNT, f"amount {price.amount}: must be 0 to {_MAX_AMOUNT}"),
        (price.amount == 0 and not price.free, _NEVER_PRICED),
        (price.amount != round(price.amount, 6), f"amount {price.amount}: at most 6 decimals"),
        (
            price.effective_to is not None and price.effective_to <= price.effective_from,
            "effective_to must lie after effective_from",
        ),
    )
    return next((text for wrong, text in checks if wrong), None)


def read_prices(text: str, name: str) -> list[Price]:
    """Prices from CSV with a header; columns as in `Price`, empty = not given.

    Raises PriceError with file, line and remedy; nothing of a broken file is returned.
    """
    needed = {"gpu_model", "amount", "currency"}
    found = read_sheet(text, name, needed, PriceError, lambda row: _from_row(row, name))
    return [price for price in found if price is not None]


def _from_row(row: dict[str, str], name: str) -> Price | None:
    if not row["amount"]:
        return None  # a blank is not known, which is not a price
    return Price(
        gpu_model=row["gpu_model"],
        amount=_amount(row["amount"]),
        currency=row["currency"],
        kind=row.get("kind") or "contracted",
        source=row.get("source") or name,
        effective_from=parse_time(row["effective_from"]) if row.get("effective_from") else EPOCH,
        effective_to=parse_time(row["effective_to"]) if row.get("effective_to") else None,
        cluster=row.get("cluster") or None,
        purchase_type=row.get("purchase_type") or "on_demand",
        unit=row.get("unit") or UNIT,
        free=(row.get("free") or "").lower() in ("true", "yes", "1"),
        retrieved_on=date.fromisoformat(row["retrieved_on"]) if row.get("retrieved_on") else None,
    )


def _amount(text: str) -> Decimal:
    try:
        amount = Decimal(text)
    except InvalidOperation:
        amount = Decimal("NaN")
    if not amount.is_finite() or amount >= _MAX_AMOUNT:
        raise PriceError(f"amount {text!r} is no number below {_MAX_AMOUNT}: write 2.50")
    return amount


def shipped_prices() -> list[Price]:
    """Public list prices of common GPUs; each names its source and the day it was read."""
    text = resources.files("analytics").joinpath("data/prices.csv").read_text(encoding="utf-8")
    return read_prices(text, "shipped prices")


def load_prices(work: Work, prices: Iterable[Price], *, at: datetime, actor: str) -> int:
    """Put prices into the book and return how many were new; each is written to the audit log.

    A price that differs from one with the same key and the same start retires it.
    """
    new = 0
    for price in prices:
        if work.value("SELECT count(*) FROM price WHERE price_id = ?", [price.price_id]):
            continue
        _retire_twin(work, price, at)
        key = work.value("SELECT coalesce(max(price_key), 0) + 1 FROM price")
        work.append("price", {name: [value] for name, value in _columns(price, key, at).items()})
        work.append("audit", _audit(price, at, actor))
        new += 1
    return new


def _retire_twin(work: Work, price: Price, at: datetime) -> None:
    work.execute(
        "UPDATE price SET retired_at = ? WHERE retired_at IS NULL "
        "AND cluster IS NOT DISTINCT FROM ? AND gpu_model = ? AND purchase_type = ? AND kind = ? "
        "AND effective_from = ? AND starts_with(source, ?) = ?",
        [
            at, price.cluster, price.gpu_model, price.purchase_type, price.kind,
            price.effective_from, _DEFAULT, price.source.startswith(_DEFAULT),
        ],
    )  # fmt: skip


def _columns(price: Price, key: int, at: datetime) -> dict[str, Any]:
    return {
        "price_key": key, "price_id": price.price_id, "cluster": price.cluster,
        "gpu_model": price.gpu_model, "purchase_type": price.purchase_type, "unit": price.unit,
        "amount": price.amount, "currency": price.currency, "kind": price.kind, "free": price.free,
        "effective_from": price.effective_from, "effective_to": price.effective_to,
        "source": price.source, "retrieved_on": price.retrieved_on, "loaded_at": at,
        "retired_at": None,
    }  # fmt: skip


def _audit(price: Price, at: datetime, actor: str) -> dict[str, list[object]]:
    return {
        "ts": [at], "actor": [actor], "action": ["price.load"], "subject": [price.gpu_model],
        "reason": [price.source],
        "after_value": [f"{price.amount} {price.currency} {price.kind} {price.effective_from}"],
    }  # fmt: skip


def seed_shipped(work: Work) -> None:
    """Put the shipped list prices into an empty book's place; they yield to any row of the
    user's."""
    if not work.value("SELECT count(*) FROM price WHERE starts_with(source, ?)", [_DEFAULT]):
        load_prices(work, shipped_prices(), at=datetime(2026, 11, 9, tzinfo=UTC), actor="unstrand")


def alive_sql(closed_at: datetime | None) -> str:
    """Which rows of the book hold now; with two parameters of ``closed_at``, which did then.

    Shipped prices count as always loaded: a release that has them replaces nothing.
    """
    if closed_at is None:
        return "retired_at IS NULL"
    return (
        f"(loaded_at <= ? OR starts_with(source, '{_DEFAULT}')) "
        "AND (retired_at IS NULL OR retired_at > ?)"
    )


def rank(row: dict[str, Any], purchase_type: str) -> tuple[object, ...]:
    """Which of several prices in force wins: the smallest rank.

    The cluster's own before a general one, the user's before a shipped one, the purchase type asked
    for, then internal, contracted, amortized, list; then the latest start, the latest loaded.
    """
    return (
        row["cluster"] is None,
        row["source"].startswith(_DEFAULT),
        row["purchase_type"] != purchase_type,
        KINDS.index(row["kind"]),
        -(row["effective_from"] - EPOCH).total_seconds(),
        -(row["loaded_at"] - EPOCH).total_seconds(),
        row["price_id"],
    )


def in_force(
    rows: Sequence[dict[str, Any]], at: datetime, purchase_type: str
) -> dict[str, Any] | None:
    """The price that holds at one instant, or None where there is none."""
    live = [
        row
        for row in rows
        if row["effective_from"] <= at and (row["effective_to"] is None or at < row["effective_to"])
    ]
    return min(live, key=lambda row: rank(row, purchase_type), default=None)
