"""How long jobs wait: the middle, the tail, and the mean that hides both."""

from __future__ import annotations

from collections.abc import Sequence

from dashboard.formats import hours, percent, waited
from dashboard.parts.html import Tile
from dashboard.words import Words
from scheduler_advisor.measurements.quantiles import quantile
from scheduler_advisor.measurements.waits import JobWait

LONG_S = 3600.0


def answer_text(waits: Sequence[JobWait], words: Words) -> str:
    """Half of the jobs wait less than ..., one in twenty more than ..."""
    done = sorted(wait.wait_s for wait in waits if wait.started)
    if not done:
        return words("queue.answer_none")
    units = words.span_units
    return words(
        "queue.answer",
        jobs=f"{len(done):,}",
        p50=waited(quantile(done, 0.5), units),
        p95=waited(quantile(done, 0.95), units),
        longest=waited(done[-1], units),
        long_share=percent(sum(wait > LONG_S for wait in done) / len(done)),
    )


def headline_tiles(waits: Sequence[JobWait], words: Words) -> list[Tile]:
    """Median, 95th percentile, mean, GPU-hours waited, jobs that have not started."""
    done = sorted(wait.wait_s for wait in waits if wait.started)
    units = words.span_units
    mean = sum(done) / len(done) if done else None
    asked = sum(wait.wait_s * wait.gpus for wait in waits) / 3600
    return [
        _tile("p50", waited(quantile(done, 0.5), units), words),
        _tile("p95", waited(quantile(done, 0.95), units), words),
        _tile("mean", waited(mean, units), words),
        _tile("asked", hours(asked), words),
        _tile("not_started", f"{sum(not wait.started for wait in waits):,}", words),
    ]


def _tile(name: str, value: str, words: Words) -> Tile:
    return Tile(
        label=words(f"queue.{name}"),
        value=value,
        kind="observed",
        help=words(f"queue.{name}_help"),
        sub=words(f"queue.{name}_sub"),
    )
