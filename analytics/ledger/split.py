"""Exact shares of an integer."""

from __future__ import annotations

from collections.abc import Iterator


def split(amount: int, weights: list[tuple[str | None, int]]) -> Iterator[tuple[str | None, int]]:
    """Exactly ``amount`` by largest remainder, ties in the names' order; zeros are left out."""
    total = sum(weight for _, weight in weights)
    shares = [amount * weight // total for _, weight in weights]
    order = sorted(range(len(weights)), key=lambda i: (-(amount * weights[i][1] % total), i))
    for i in order[: amount - sum(shares)]:
        shares[i] += 1
    yield from ((name, share) for (name, _), share in zip(weights, shares, strict=True) if share)
