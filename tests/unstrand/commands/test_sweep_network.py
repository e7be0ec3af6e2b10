"""A sweep over the store reads the history with each cell's own network, as `simulate` does."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pyarrow.parquet as pq
import pytest

from collector.model import Allocation, FactWindow, Job, JobRun, Node
from collector.store import Store
from scheduler_advisor.engine import Policy
from scheduler_advisor.readers.store import read_history
from unstrand.__main__ import run

T0 = datetime(2026, 10, 5, tzinfo=UTC)
END = T0 + timedelta(days=6)
SAME = {"cluster": "c", "source": "test"}
CELLS = """
[policy.flat]
[policy.four]
placement = "topology"
[policy.four.topology]
slowdown = true
oversubscription = 4
[policy.eight]
placement = "topology"
[policy.eight.topology]
slowdown = true
oversubscription = 8
[policy.spread]
placement = "worst-fit"
[policy.spread.topology]
slowdown = true
oversubscription = 4
"""
NETWORKS = {
    "flat": None,
    "four": {"placement": "topology", "topology.oversubscription": 4},
    "eight": {"placement": "topology", "topology.oversubscription": 8},
    "spread": {"placement": "worst-fit", "topology.oversubscription": 4},
}


@pytest.fixture
def db(tmp_path):
    """One user's job ran twice in one leaf for ten hours and twice over two for eleven."""
    nodes = [
        Node(node=f"n{one}", gpu_model="H100", gpus=8, leaf=f"l{one // 2}", spine="s",
             valid_from=T0 - timedelta(days=9), **SAME)
        for one in range(4)
    ]  # fmt: skip
    facts = [FactWindow(kind="scheduler", since=T0, until=END, **SAME)]
    for number, (places, hours) in enumerate(((("n0", "n1"), 10), (("n0", "n2"), 11)) * 2):
        start = T0 + timedelta(hours=20 * number)
        end = start + timedelta(hours=hours)
        facts += [
            Job(job_id=f"j{number}", name="train", user_name="u", submit_at=start, **SAME),
            JobRun(run_id=f"j{number}.1", job_id=f"j{number}", attempt=1, submit_at=start,
                   start_at=start, end_at=end, gpus=16, user_name="u", state="COMPLETED", **SAME),
            *(Allocation(run_id=f"j{number}.1", node=node, gpus=8, start_at=start, end_at=end,
                         **SAME) for node in places),
        ]  # fmt: skip
    path = tmp_path / "s.duckdb"
    with Store.open(path, clock=lambda: END) as store, store.work() as work:
        work.append_facts([*nodes, *facts])
    return path


def test_each_cell_has_the_communication_of_its_own_network(db, tmp_path):
    policies, out = tmp_path / "policies.toml", tmp_path / "out.parquet"
    policies.write_text(CELLS)
    asked = ["sweep", "--window", "6d", "--policies", policies, "--out", out, "--db", db]
    assert run([str(one) for one in asked]) == 0
    rows = {row["policy"]: row for row in pq.read_table(out).to_pylist()}
    assert list(rows) == ["flat", "four", "eight", "spread"]
    with Store.open(db, clock=lambda: END) as store:
        for name, keys in NETWORKS.items():
            keys = keys and Policy().with_values({"topology.slowdown": "true", **keys})
            jobs = read_history(store, "c", T0, END, keys).read.jobs
            assert rows[name]["workload_hash"] == jobs.hash, name
    hashes = [rows[name]["workload_hash"] for name in ("flat", "four", "eight")]
    assert len(set(hashes)) == 3
    assert rows["four"]["workload_hash"] == rows["spread"]["workload_hash"]
    # One cell's order in the file decides nothing.
    policies.write_text(CELLS.replace("[policy.flat]\n", "") + "[policy.flat]\n")
    assert run([str(one) for one in asked]) == 0
    again = {row["policy"]: row for row in pq.read_table(out).to_pylist()}
    assert list(again) == ["four", "eight", "spread", "flat"]
    assert all(row["cached"] for row in again.values())
