"""The price book: what a GPU-hour of a model costs over time, with its source."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal, InvalidOperation
from importlib import resources
from typing import Any

from analytics.currencies import is_currency
from analytics.errors import PriceError
from analytics.sheet import read_sheet
from analytics.window import EPOCH, parse_time
from collector.store import Work

KINDS = ("internal", "contracted", "amortized", "list")
UNIT = "gpu_hour"
_MAX_AMOUNT = Decimal("100000")
DEFAULT_SOURCE = "default:"
"""How the source of a shipped price begins."""
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
            not is_currency(price.currency),
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
    have = {row["price_id"] for row in work.rows("SELECT price_id FROM price")}
    new: list[Price] = []
    for price in prices:
        if price.price_id not in have:
            have.add(price.price_id)
            new.append(price)
    if not new:
        return 0
    first = work.value("SELECT coalesce(max(price_key), 0) + 1 FROM price")
    rows = [_columns(price, first + nth, at) for nth, price in enumerate(new)]
    replaced = _retire_twins(work, rows, at)
    work.append("price", {name: [row[name] for row in rows] for name in rows[0]})
    work.append("audit", _audit(new, replaced, at, actor))
    return len(new)


_TWIN = (
    "p.cluster IS NOT DISTINCT FROM n.cluster AND p.gpu_model = n.gpu_model "
    "AND p.purchase_type = n.purchase_type AND p.kind = n.kind "
    "AND p.effective_from = n.effective_from "
    f"AND starts_with(p.source, '{DEFAULT_SOURCE}') = starts_with(n.source, '{DEFAULT_SOURCE}')"
)


def _retire_twins(work: Work, rows: list[dict[str, Any]], at: datetime) -> dict[str, str]:
    """Retire what the new rows say anew; returns what stood there, by the new row's id.

    Of twins within one file the last one holds.
    """
    work.execute("CREATE OR REPLACE TEMP TABLE new_price AS SELECT * FROM price LIMIT 0")
    work.append("new_price", {name: [row[name] for row in rows] for name in rows[0]})
    replaced = work.rows(
        "SELECT n.price_id, p.amount, p.currency FROM price p JOIN new_price n "  # noqa: S608 - our own condition
        f"ON {_TWIN} WHERE p.retired_at IS NULL"
    )
    work.execute(
        "UPDATE price AS p SET retired_at = ? FROM new_price n "  # noqa: S608 - our own condition
        f"WHERE p.retired_at IS NULL AND {_TWIN}",
        [at],
    )
    twice = work.rows(
        "SELECT DISTINCT p.price_id FROM new_price p JOIN new_price n "  # noqa: S608 - our own condition
        f"ON {_TWIN} AND n.price_key > p.price_key"
    )
    gone = {row["price_id"] for row in twice}
    for row in rows:
        row["retired_at"] = at if row["price_id"] in gone else None
    work.execute("DROP TABLE new_price")
    return {row["price_id"]: f"{row['amount']} {row['currency']}" for row in replaced}


def _columns(price: Price, key: int, at: datetime) -> dict[str, Any]:
    return {
        "price_key": key, "price_id": price.price_id, "cluster": price.cluster,
        "gpu_model": price.gpu_model, "purchase_type": price.purchase_type, "unit": price.unit,
        "amount": price.amount, "currency": price.currency, "kind": price.kind, "free": price.free,
        "effective_from": price.effective_from, "effective_to": price.effective_to,
        "source": price.source, "retrieved_on": price.retrieved_on, "loaded_at": at,
        "retired_at": None,
    }  # fmt: skip


def _audit(
    prices: list[Price], replaced: dict[str, str], at: datetime, actor: str
) -> dict[str, list[object]]:
    count = len(prices)
    return {
        "ts": [at] * count, "actor": [actor] * count, "action": ["price.load"] * count,
        "subject": [price.gpu_model for price in prices],
        "reason": [price.source for price in prices],
        "before_value": [replaced.get(price.price_id) for price in prices],
        "after_value": [
            f"{price.amount} {price.currency} {price.kind} {price.purchase_type} from "
            f"{price.effective_from.isoformat()}"
            for price in prices
        ],
    }  # fmt: skip


def seed_shipped(work: Work) -> None:
    """Put the shipped list prices into an empty book's place; they yield to any row of the
    user's."""
    if not work.value("SELECT count(*) FROM price WHERE starts_with(source, ?)", [DEFAULT_SOURCE]):
        load_prices(work, shipped_prices(), at=datetime(2026, 11, 9, tzinfo=UTC), actor="unstrand")
