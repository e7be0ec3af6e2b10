"""A small site with a ledger: two teams, three nodes, two weeks; conftests load it.

Every planted fact is a constant here, so that tests compare with it and not with what came out.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

from analytics.ledger import ensure_built
from analytics.org import Mapping, load_mappings
from analytics.window import Window
from collector.model import Allocation, FactWindow, Job, JobRun, Node, NodeState
from collector.store import Store

SINCE = datetime(2026, 10, 19, tzinfo=UTC)
UNTIL = datetime(2026, 11, 2, tzinfo=UTC)
CLUSTER = "small"
GPUS = {"big-1": 2, "big-2": 2, "old-1": 4}
MODEL = {"big-1": "A100-80", "big-2": "A100-80", "old-1": "T4-16"}
# (run, account, user, node, gpus, activity): the dear team idles, the cheap one works.
RUNS = (
    ("101", "lang", "ada", "big-1", 2, 0.30),
    ("102", "voice", "bob", "old-1", 2, 0.95),
    ("103", "guest", "eve", "old-1", 1, 0.50),
)
DRAINED_SINCE = datetime(2026, 10, 30, tzinfo=UTC)
GAP = (datetime(2026, 10, 21, 6, tzinfo=UTC), datetime(2026, 10, 21, 9, tzinfo=UTC))
HELD_HOURS = (UNTIL - SINCE) / timedelta(hours=1)


def fill(store: Store) -> None:
    """Write the facts and build the ledger."""
    take_in(store)
    account(store)


def account(store: Store) -> None:
    ensure_built(store, Window(SINCE, UNTIL))


def take_in(store: Store) -> None:
    """Write the facts."""
    with store.work() as work, work.transaction():
        work.append_facts([*_nodes(), *_runs(), *_windows()])
        for run in RUNS:
            work.append("sample", _samples(*run))
        load_mappings(
            work,
            [
                Mapping(
                    key_kind="account", key_value=account, team=team, valid_from=SINCE,
                    source="test",
                )
                for account, team in (("lang", "language"), ("voice", "speech"))
            ],
            at=SINCE,
            actor="test",
        )  # fmt: skip


def create(path: Path) -> Path:
    """A file of its own with the small site in it, closed."""
    with Store.open(path, clock=lambda: UNTIL) as store:
        fill(store)
    return path


def _nodes() -> list[Node | NodeState]:
    nodes: list[Node | NodeState] = [
        Node(
            cluster=CLUSTER, node=name, gpu_model=MODEL[name], gpus=gpus, cpus=64,
            mem_mib=512 * 1024, valid_from=SINCE, source="test",
        )
        for name, gpus in GPUS.items()
    ]  # fmt: skip
    drained = NodeState(
        cluster=CLUSTER, node="big-2", since=DRAINED_SINCE, state="drained",
        reason="fan <b>broken</b>", source="test",
    )  # fmt: skip
    return [*nodes, drained]


def _runs() -> list[Job | JobRun | Allocation]:
    facts: list[Job | JobRun | Allocation] = []
    for run, account, user, node, gpus, _ in RUNS:
        same = {"cluster": CLUSTER, "job_id": run, "account": account, "user_name": user}
        facts += [
            Job(**same, submit_at=SINCE, req_gpus=gpus, source="test"),
            JobRun(
                **same, run_id=run, submit_at=SINCE, start_at=SINCE, state="RUNNING", gpus=gpus,
                last_known_at=UNTIL, source="test",
            ),
            Allocation(
                cluster=CLUSTER, run_id=run, node=node, gpu_model=MODEL[node], gpus=gpus, cpus=8,
                mem_mib=32 * 1024, start_at=SINCE, source="test",
            ),
        ]  # fmt: skip
    return facts


def _windows() -> list[FactWindow]:
    everywhere = FactWindow(
        cluster=CLUSTER, kind="scheduler", since=SINCE, until=UNTIL, source="test"
    )
    measured = [
        FactWindow(
            cluster=CLUSTER, kind="telemetry", node=n, since=SINCE, until=UNTIL, source="test"
        )
        for n in GPUS
    ]
    return [everywhere, *measured]


def _samples(run: str, account: str, user: str, node: str, gpus: int, activity: float) -> dict:
    """A sample at the end of every hour, but none in the gap of big-1."""
    hours = [SINCE + timedelta(hours=h + 1) for h in range(int(HELD_HOURS))]
    if node == "big-1":
        hours = [at for at in hours if not GAP[0] < at <= GAP[1]]
    first = 2 if user == "eve" else 0
    ticks = [(at, index) for index in range(first, first + gpus) for at in hours]
    return {
        "cluster": [CLUSTER] * len(ticks),
        "node": [node] * len(ticks),
        "gpu_index": [index for _, index in ticks],
        "run_id": [run] * len(ticks),
        "ts": [at for at, _ in ticks],
        "step_s": [3600.0] * len(ticks),
        "util_ratio": [activity] * len(ticks),
        "source": ["test"] * len(ticks),
    }
