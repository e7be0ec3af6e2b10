"""How many GPUs are installed: the short reading of reports and that of a build agree."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from analytics.ledger.facts import inventory, load
from analytics.ledger.fleet import Fleet, clip
from collector.model import Node, NodeState

T0 = datetime(2026, 10, 5, tzinfo=UTC)
HOUR_US = 3_600_000_000
WINDOW = (int((T0 + timedelta(hours=4)).timestamp()) * 1_000_000,
          int((T0 + timedelta(hours=12)).timestamp()) * 1_000_000)  # fmt: skip


def at(hour):
    return None if hour is None else T0 + timedelta(hours=hour)


ENDS = st.one_of(st.none(), st.integers(1, 20))
NODES = st.lists(
    st.tuples(st.sampled_from("ab"), st.sampled_from([None, "H100", "A100"]), st.integers(0, 8),
              st.booleans(), st.integers(0, 14), ENDS),
    max_size=12,
)  # fmt: skip
OFF = st.lists(
    st.tuples(st.sampled_from("ab"), st.sampled_from(["powered_down", "drained"]),
              st.integers(0, 14), ENDS),
    max_size=5,
)  # fmt: skip


def installed(facts):
    fleet = Fleet.of(facts)
    return {
        pool: spans
        for pool, line in zip(fleet.pools, fleet.installed, strict=True)
        if (spans := list(clip(line, *WINDOW)))
    }


@settings(max_examples=60, deadline=None, derandomize=True,
          suppress_health_check=list(HealthCheck))  # fmt: skip
@given(nodes=NODES, off=OFF)
def test_doubles_ends_successors_and_power_are_read_alike(store, nodes, off):
    facts = [
        Node(cluster="c", node=node, gpu_model=model, gpus=gpus, owned=owned, valid_from=at(since),
             valid_to=at(until), source="test")
        for node, model, gpus, owned, since, until in nodes
    ] + [
        NodeState(cluster="c", node=node, state=state, since=at(since), until=at(until),
                  source="test")
        for node, state, since, until in off
    ]  # fmt: skip
    with store.work() as work:
        for table in ("node", "node_state"):
            work.execute(f"DELETE FROM {table}")
        work.append_facts(facts)
        assert installed(inventory(work, "c", *WINDOW)) == installed(load(work, "c", *WINDOW))
