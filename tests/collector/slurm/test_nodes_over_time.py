from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collector.slurm import node, timeline, topology

DAY = 86_400


def at(epoch):
    return datetime.fromtimestamp(epoch, UTC)


def import_days(site, begin, end, *nodes, **options):
    """Import one job per window, so that only nodes and states matter."""
    site.rows = [site.run()]
    site.nodes = list(nodes)
    window = {"since": at(site.t0 + begin * DAY), "until": at(site.t0 + end * DAY)}
    return site.take_in(**window, **options)


def inventory(site):
    rows = site.store.rows("SELECT node, gpus, valid_from, valid_to FROM node ORDER BY ALL")
    return [
        (row["node"], row["gpus"], day(site, row["valid_from"]), day(site, row["valid_to"]))
        for row in rows
    ]


def day(site, moment):
    return None if moment is None else (moment - at(site.t0)) / timedelta(days=1)


def states(site):
    rows = site.store.rows("SELECT node, state, since, until FROM node_state ORDER BY node, since")
    return [
        (row["node"], row["state"], day(site, row["since"]), day(site, row["until"]))
        for row in rows
    ]


def test_a_node_that_stays_as_it_is_keeps_one_row(site):
    import_days(site, 0, 1, site.node())
    import_days(site, 1, 2, site.node())
    import_days(site, 0, 3, site.node())
    assert inventory(site) == [("gn01", 8, 0, None)]


def test_a_node_that_loses_a_gpu_has_a_row_for_each_time(site):
    import_days(site, 0, 1, site.node())
    import_days(site, 2, 3, site.node(Gres="gpu:a100:7"))
    assert inventory(site) == [("gn01", 7, 2, None), ("gn01", 8, 0, 2)]


def test_an_older_file_that_comes_later_goes_before_the_newer_one(site):
    import_days(site, 2, 3, site.node(Gres="gpu:a100:7"))
    import_days(site, 0, 1, site.node())
    assert inventory(site) == [("gn01", 7, 2, None), ("gn01", 8, 0, 2)]


def test_a_node_that_is_gone_ends_with_the_window_that_shows_it_gone(site):
    import_days(site, 0, 1, site.node(), site.node(NodeName="gn02"))
    summary = import_days(site, 1, 2, site.node())
    assert inventory(site) == [("gn01", 8, 0, None), ("gn02", 8, 0, 1)]
    assert "1 nodes are no longer in the node list" in summary.remarks


def test_a_node_of_two_models_has_a_row_for_each(site):
    import_days(site, 0, 1, site.node(Gres="gpu:a100:4(S:0),gpu:t4:2(S:1)", CfgTRES=None))
    rows = site.store.rows("SELECT gpu_model, gpus, cpus FROM node ORDER BY gpu_model")
    assert [tuple(row.values()) for row in rows] == [("a100", 4, 128), ("t4", 2, 128)]


EVENTS = "Cluster|NodeName|TimeStart|TimeEnd|State|Reason|User\n"


def event(site, name, begin, end, state="DRAIN"):
    until = "Unknown" if end is None else int(site.t0 + end * DAY)
    return f"c|{name}|{int(site.t0 + begin * DAY)}|{until}|{state}|fan|root(0)\n"


def test_events_say_when_a_node_took_no_work(site):
    text = EVENTS + event(site, "", 0, None) + event(site, "gn01", 0.25, 0.5)
    text += event(site, "gn02", 0.75, None, "DOWN*")
    import_days(site, 0, 1, site.node(), site.node(NodeName="gn02", State="DOWN*"), events=text)
    assert states(site) == [("gn01", "drained", 0.25, 0.5), ("gn02", "down", 0.75, None)]


def test_without_events_a_drained_node_is_so_since_its_stamp(site):
    stamp = site.t0 + DAY // 2
    drained = site.node(State="IDLE+DRAIN", Reason=f"fan = loud [root@{stamp}]")
    unstamped = site.node(NodeName="gn02", State="DOWN")
    import_days(site, 0, 1, drained, unstamped)
    assert states(site) == [("gn01", "drained", 0.5, None), ("gn02", "down", 0, None)]
    assert site.store.value("SELECT reason FROM node_state WHERE node = 'gn01'") == "fan = loud"


def test_a_later_import_ends_a_state_that_is_over(site):
    text = EVENTS + event(site, "gn01", 0.5, None)
    import_days(site, 0, 1, site.node(State="IDLE+DRAIN"), events=text)
    import_days(site, 0.9, 2, site.node(), events=EVENTS + event(site, "gn01", 0.5, 1.25))
    assert states(site) == [("gn01", "drained", 0.5, 1.25)]


def test_a_state_of_an_older_file_does_not_reach_into_newer_facts(site):
    import_days(site, 1, 2, site.node())
    import_days(site, 0, 1, site.node(State="IDLE+DRAIN"))
    assert states(site) == [("gn01", "drained", 0, 1)]


def test_overlapping_events_of_a_node_follow_each_other(site):
    text = EVENTS + event(site, "gn01", 0.25, None) + event(site, "gn01", 0.5, 0.75, "DOWN*")
    import_days(site, 0, 1, site.node(), events=text)
    assert states(site) == [("gn01", "drained", 0.25, 0.5), ("gn01", "down", 0.5, 0.75)]


TOPOLOGIES = {
    "topology.conf": "# tree\nSwitchName=s1 Nodes=gn[01-02]\nSwitchName=s2 Nodes=gn03\n"
    "SwitchName=top Switches=s[1-2]\n",
    "scontrol": "SwitchName=s1 Level=0 LinkSpeed=1 Nodes=gn[01-02]\n"
    "SwitchName=s2 Level=0 LinkSpeed=1 Nodes=gn03\n"
    "SwitchName=top Level=1 LinkSpeed=1 Nodes=gn[01-03] Switches=s[1-2]\n",
    "topology.yaml": """---
- topology: flat
  flat: true
- topology: tree
  cluster_default: true
  tree:
    switches:
      - switch: s1
        nodes: gn[01-02]
      - switch: s2
        nodes: gn03
      - switch: top
        children: s[1-2]
""",
}


@pytest.mark.parametrize("text", TOPOLOGIES.values(), ids=TOPOLOGIES.keys())
def test_every_form_of_a_tree_gives_leaf_and_spine(text):
    places = topology.parse("t", text)
    assert {name: (place.leaf, place.spine) for name, place in places.items()} == {
        "gn01": ("s1", "top"),
        "gn02": ("s1", "top"),
        "gn03": ("s2", "top"),
    }


@pytest.mark.parametrize(
    "text",
    [
        "BlockName=b1 Nodes=gn[01-18]\nBlockName=b2 Nodes=gn[19-36]\nBlockSizes=18,36\n",
        "- topology: block\n  block:\n    block_sizes: [18, 36]\n    blocks:\n"
        "      - {block: b1, nodes: 'gn[01-18]'}\n      - {block: b2, nodes: 'gn[19-36]'}\n",
    ],
)
def test_a_block_is_a_rack(text):
    places = topology.parse("t", text)
    assert (len(places), places["gn18"].rack, places["gn19"].rack) == (36, "b1", "b2")


def test_a_record_over_several_lines_is_one_node():
    text = (
        "NodeName=gn01 Arch=x86_64 CoresPerSocket=1\n"
        "   CPUAlloc=0 CPUEfctv=96 CPUTot=128 Gres=gpu:a100:8\n"
        "   OS=Linux 6.1 #1 SMP RealMemory=512000 State=IDLE+DRAIN\n"
        "   Reason=State=bad Gres [root@1793491200]\n\n"
        "NodeName=gn02 CfgTRES=cpu=4,gres/gpu=2,gres/gpu:t4=2 State=IDLE\n"
    )
    one, two = node.parse("n", text)
    assert (one.cpus, one.gpus, one.state, one.reason_at) == (
        96,
        {"a100": 8},
        "drained",
        1793491200,
    )
    assert two.gpus == {"t4": 2}


moments = st.integers(0, 60).map(lambda minute: datetime(2026, 11, 1, 0, minute % 60, tzinfo=UTC))


@given(moments, moments, moments, st.none() | moments)
def test_what_a_statement_leaves_of_an_interval_is_outside_of_it(since, until, begin, end):
    if since >= until or (end is not None and begin >= end):
        return
    for left, right in timeline.cut((begin, end), since, until):
        assert right is None or left < right
        assert left >= begin
        assert left >= until or (right is not None and right <= since)
