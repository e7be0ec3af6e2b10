"""``sacctmgr -P show event``: when a node could not take work, and why."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, tzinfo

from collector.slurm import column, delimited
from collector.slurm.delimited import Layout
from collector.slurm.node_flags import state_of
from collector.slurm.refusal import refusal

FIELDS = "cluster,nodename,start,end,state,reason,user"
COMMAND = (
    "SLURM_TIME_FORMAT=%s TZ=UTC sacctmgr -P show event start=START format="
    "cluster,nodename,start,end,state,reason,user"
)
REMEDY = f"Write the file with `{COMMAND}`"
_NAMES = {"timestart": "start", "timeend": "end", "node": "nodename", "node name": "nodename"}
_LAYOUT = Layout(
    frozenset({"nodename", "node name", "node"}), (delimited.fields_of(FIELDS),), REMEDY
)


@dataclass(frozen=True, slots=True)
class NodeEvent:
    """A node was in ``state`` (None = it took work) over ``[since, until)``, epoch seconds."""

    node: str
    since: int
    until: int | None
    state: str | None
    state_raw: str
    reason: str | None
    user: str | None


def parse(source: str, data: bytes, *, cluster: str, zone: tzinfo = UTC) -> list[NodeEvent]:
    """The node events of ``cluster``; rows without a node (registrations) are left out."""
    rows = delimited.read(source, data, _LAYOUT)
    names = {_NAMES.get(name, name): name for name in rows.columns}
    missing = [name for name in ("nodename", "start", "end", "state") if name not in names]
    if missing:
        raise refusal(source, 1, f"no column {', '.join(missing)}", REMEDY)
    text = {
        key: rows.column(names.get(key, key)).to_pylist()
        for key in ("cluster", "nodename", "state", "reason", "user")
    }
    starts = column.instants(rows, names["start"], zone, REMEDY).to_pylist()
    ends = column.instants(rows, names["end"], zone, REMEDY).to_pylist()
    one = len(set(text["cluster"])) < 2
    events = []
    for index, node in enumerate(text["nodename"]):
        if not node or not (one or text["cluster"][index] == cluster):
            continue
        since, until = starts[index], ends[index]
        if since is None:
            raise refusal(source, int(rows.lines[index]), f"node {node} has no start", REMEDY)
        if until is not None and until <= since:
            continue  # an event of no length says nothing
        raw, reason, user = text["state"][index], text["reason"][index], text["user"][index]
        state = state_of(raw)
        events.append(NodeEvent(node, since, until, state, raw, reason or None, user or None))
    return events
