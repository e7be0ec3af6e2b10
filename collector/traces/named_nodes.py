"""The nodes that a trace itself names, and how large they must have been."""

from __future__ import annotations

from collector.traces.inventory import NodeSpec
from collector.traces.trace import Trace


def named_nodes(trace: Trace) -> tuple[NodeSpec, ...]:
    """Every node that a job held, with as many GPUs as were ever held there at once."""
    events = []
    columns = (trace.column(name) for name in ("start_s", "end_s", "node_names"))
    for start, end, names in zip(*columns, strict=True):
        if start is None or not names or (end is not None and end <= start):
            continue
        for name in names:
            events.append((start, 1, name))
            if end is not None:
                events.append((end, 0, name))
    held: dict[str, int] = {}
    most: dict[str, int] = {}
    for _, begins, name in sorted(events):
        held[name] = held.get(name, 0) + (1 if begins else -1)
        most[name] = max(most.get(name, 0), held[name])
    return tuple(NodeSpec(name=name, gpus=most[name]) for name in sorted(most))
