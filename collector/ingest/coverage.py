"""The times over which a node's telemetry is known; beyond them it is unknown."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from collector.agent.batch import Batch
from collector.store import Work
from collector.telemetry.rows import micros

SOURCE = "agent"
_Node = tuple[str, str]  # cluster, node


@dataclass(slots=True)
class _Span:
    """Samples from ``first`` to ``last``; a tick that comes a step late leaves no gap."""

    first: datetime
    last: datetime
    step: timedelta

    @property
    def reach(self) -> list[datetime]:
        return [self.first - self.step, self.last + self.step]


def cover(work: Work, batches: Iterable[Batch]) -> None:
    """Extend what is known of each node by the times of its samples."""
    spans: dict[_Node, list[_Span]] = {}
    for batch in batches:
        span = _span(batch)
        if span is not None:
            spans.setdefault((batch.cluster, batch.node), []).append(span)
    joined = {node: _joined(of) for node, of in spans.items()}
    _together(work, {node: of[0] for node, of in joined.items() if len(of) == 1})
    for node, of in joined.items():
        if len(of) > 1:
            for span in of:
                _together(work, {node: span})


def _span(batch: Batch) -> _Span | None:
    samples = batch.tables.get("sample") or {}
    times = samples.get("ts") or []
    if not times:
        return None
    step = timedelta(seconds=max(samples["step_s"]))
    return _Span(_at(min(times)) - step, _at(max(times)), step)


def _joined(spans: list[_Span]) -> list[_Span]:
    """Spans of one node that touch, as one."""
    found: list[_Span] = []
    for span in sorted(spans, key=lambda one: one.first):
        if found and found[-1].last >= span.first - span.step:
            found[-1].last = max(found[-1].last, span.last)
            found[-1].step = max(found[-1].step, span.step)
        else:
            found.append(span)
    return found


def _together(work: Work, spans: dict[_Node, _Span]) -> None:
    """One span of each node; in one statement where each touches one window at most."""
    if not spans:
        return
    windows: dict[_Node, list[dict[str, Any]]] = {}
    for row in (
        _extend_one(work, *next(iter(spans.items()))) if len(spans) == 1 else _extend(work, spans)
    ):
        windows.setdefault((row["cluster"], row["node"]), []).append(row)
    fresh = {node: span for node, span in spans.items() if node not in windows}
    for node, of in windows.items():
        if len(of) > 1:  # a gap is closed: several windows become one
            fresh[node] = _close_gap(work, node, of, spans[node].step)
    _append(work, fresh)


def _extend_one(work: Work, node: _Node, span: _Span) -> list[dict[str, Any]]:
    """`_extend` for one node: a join costs as much as the rest of a batch."""
    return work.rows(
        "UPDATE fact_window SET since = least(since, ?), until = greatest(until, ?) "
        "WHERE cluster = ? AND node = ? AND source = ? AND kind = 'telemetry' AND until >= ? "
        "AND since <= ? RETURNING cluster, node, since, until",
        [span.first, span.last, *node, SOURCE, *span.reach],
    )


def _extend(work: Work, spans: dict[_Node, _Span]) -> list[dict[str, Any]]:
    """Windows that the spans touch, each grown by its span."""
    return work.rows(
        "UPDATE fact_window SET since = least(fact_window.since, make_timestamp(g.first)), "
        "until = greatest(fact_window.until, make_timestamp(g.last)) "
        "FROM (SELECT unnest(?::VARCHAR[]) AS cluster, unnest(?::VARCHAR[]) AS node, "
        "unnest(?::BIGINT[]) AS first, unnest(?::BIGINT[]) AS last, "
        "unnest(?::BIGINT[]) AS since, unnest(?::BIGINT[]) AS until) g "
        "WHERE fact_window.cluster = g.cluster AND fact_window.node = g.node "
        "AND fact_window.source = ? AND fact_window.kind = 'telemetry' "
        "AND fact_window.until >= make_timestamp(g.since) "
        "AND fact_window.since <= make_timestamp(g.until) "
        "RETURNING fact_window.cluster, fact_window.node, fact_window.since, fact_window.until",
        [
            [cluster for cluster, _ in spans],
            [node for _, node in spans],
            [micros(span.first) for span in spans.values()],
            [micros(span.last) for span in spans.values()],
            [micros(span.reach[0]) for span in spans.values()],
            [micros(span.reach[1]) for span in spans.values()],
            SOURCE,
        ],
    )


def _close_gap(work: Work, node: _Node, windows: list[dict[str, Any]], step: timedelta) -> _Span:
    whole = _Span(
        min(window["since"] for window in windows),
        max(window["until"] for window in windows),
        step,
    )
    work.execute(
        "DELETE FROM fact_window WHERE cluster = ? AND node = ? AND source = ? "
        "AND kind = 'telemetry' AND until >= ? AND since <= ?",
        [*node, SOURCE, *whole.reach],
    )
    return whole


def _append(work: Work, spans: dict[_Node, _Span]) -> None:
    count = len(spans)
    columns = {
        "cluster": [cluster for cluster, _ in spans], "kind": ["telemetry"] * count,
        "node": [node for _, node in spans],
        "since": [span.first for span in spans.values()],
        "until": [span.last for span in spans.values()], "source": [SOURCE] * count,
    }  # fmt: skip
    work.append("fact_window", columns)


def _at(micros_: int) -> datetime:
    return datetime.fromtimestamp(0, UTC) + timedelta(microseconds=micros_)
