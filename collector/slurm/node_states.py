"""When nodes could not take work: from events, and from what the node list shows itself."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from collector.model import NodeState
from collector.slurm.inventory import SHOWN, SOURCE
from collector.slurm.node import SlurmNode
from collector.slurm.node_event import NodeEvent
from collector.slurm.timeline import Span, cut


@dataclass(frozen=True, slots=True)
class StateStatement:
    """What is known of node states: ``booked`` by accounting over ``[since, until)``, ``shown`` by
    the node list over ``[seen_since, until)``; the two do not overlap."""

    booked: tuple[NodeState, ...]
    shown: tuple[NodeState, ...]
    since: datetime
    seen_since: datetime
    until: datetime

    def closed(self) -> StateStatement:
        """The same, where "still so" reaches only to ``until``: what came later is known."""

        def close(states: Iterable[NodeState]) -> tuple[NodeState, ...]:
            return tuple(s if s.until is not None else replace(s, until=self.until) for s in states)

        return replace(self, booked=close(self.booked), shown=close(self.shown))


def from_events(
    cluster: str, events: Iterable[NodeEvent], since: datetime, until: datetime
) -> list[NodeState]:
    """The events that touch the window, each cut where the node's next one begins."""
    by_node: dict[str, list[NodeEvent]] = {}
    for event in events:
        by_node.setdefault(event.node, []).append(event)
    states: list[NodeState] = []
    for node in sorted(by_node):
        ordered = sorted(by_node[node], key=lambda e: (e.since, e.until is None, e.until or 0))
        for event, following in zip(ordered, [*ordered[1:], None], strict=True):
            state = _state(cluster, event, None if following is None else following.since)
            if state is not None and _touches(state, since, until):
                states.append(state)
    return states


def from_nodes(
    cluster: str,
    nodes: Iterable[SlurmNode],
    since: datetime,
    until: datetime,
    known: Sequence[NodeState] = (),
) -> list[NodeState]:
    """Nodes that the list shows as not usable: since the stamp of their reason, else ``since``.

    ``known``: states from events, which are exact; a node with an open one needs no other, and a
    state from the list begins after the last closed one.
    """
    states = []
    for node in nodes:
        mine = [state for state in known if state.node == node.name]
        if node.state is None or any(state.until is None for state in mine):
            continue
        begin = since if node.reason_at is None else datetime.fromtimestamp(node.reason_at, UTC)
        begin = max([begin, *(state.until for state in mine if state.until is not None)])
        if begin <= until:
            states.append(
                NodeState(
                    cluster=cluster,
                    node=node.name,
                    since=begin,
                    state=node.state,
                    state_raw=node.state_raw,
                    reason=node.reason,
                    user_name=node.reason_user,
                    source=SHOWN,
                )
            )
    return states


def over_where_usable(
    states: Iterable[NodeState], nodes: Iterable[SlurmNode], seen_at: datetime
) -> list[NodeState]:
    """Open states ended at ``seen_at`` where the node list of that instant shows the node usable.

    The controller knows of a resume at once, accounting a second or two later; the exact end comes
    with the next question. A state that begins at ``seen_at`` or later is newer than the list.
    """
    usable = {node.name for node in nodes if node.state is None}
    return [
        replace(state, until=seen_at)
        if state.until is None and state.node in usable and state.since < seen_at
        else state
        for state in states
    ]


def booked(existing: Iterable[NodeState], statement: StateStatement) -> list[NodeState]:
    """The states of accounting after the statement, in the order of node and begin."""
    rest = _cut_all(existing, statement.since, statement.until, statement.booked)
    return _coalesced([*rest, *statement.booked])


def shown(existing: Iterable[NodeState], statement: StateStatement) -> list[NodeState]:
    """The states of the node list after the statement; what accounting says goes before them."""
    rest = _cut_all(
        existing, statement.seen_since, statement.until, (*statement.shown, *statement.booked)
    )
    return _coalesced([*rest, *statement.shown])


def _cut_all(
    existing: Iterable[NodeState], since: datetime, until: datetime, by: Iterable[NodeState]
) -> list[NodeState]:
    """What is left of ``existing`` outside of the window and of the node's states in ``by``."""
    spans: dict[str, list[Span]] = {}
    for state in by:
        spans.setdefault(state.node, []).append((state.since, state.until))
    left: list[NodeState] = []
    for state in existing:
        parts = cut((state.since, state.until), since, until)
        for begin, end in spans.get(state.node, ()):
            parts = [rest for part in parts for rest in cut(part, begin, end)]
        left += [replace(state, since=begin, until=end) for begin, end in parts]
    return left


def _coalesced(states: Iterable[NodeState]) -> list[NodeState]:
    """States that say the same and touch become one, so that asking often adds no rows."""
    joined: list[NodeState] = []
    for state in sorted(states, key=lambda state: (state.node, state.since)):
        last = joined[-1] if joined else None
        if last is None or last.until != state.since or not _same(last, state):
            joined.append(state)
        else:
            joined[-1] = replace(last, until=state.until)
    return joined


def _state(cluster: str, event: NodeEvent, following: int | None) -> NodeState | None:
    """None for an event in which the node took work, or that the next one hides."""
    end = event.until
    if following is not None:
        end = following if end is None else min(end, following)
    if event.state is None or (end is not None and end <= event.since):
        return None
    return NodeState(
        cluster=cluster,
        node=event.node,
        since=datetime.fromtimestamp(event.since, UTC),
        until=None if end is None else datetime.fromtimestamp(end, UTC),
        state=event.state,
        state_raw=event.state_raw,
        reason=event.reason,
        user_name=event.user,
        source=SOURCE,
    )


def _touches(state: NodeState, since: datetime, until: datetime) -> bool:
    return state.since < until and (state.until is None or state.until > since)


def _same(one: NodeState, other: NodeState) -> bool:
    return replace(one, since=other.since, until=other.until) == other
