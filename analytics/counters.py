"""Counters that only grow, as the driver and the kernel keep them."""

from __future__ import annotations


def gained(counter: str, ts: str = "ts") -> str:
    """SQL for what a counter gained over a group of readings; null where it ends below its highest
    reading: it was set back, and nothing is known."""
    return (
        f"CASE WHEN arg_max({counter}, {ts}) = max({counter}) "
        f"THEN max({counter}) - min({counter}) END"
    )
