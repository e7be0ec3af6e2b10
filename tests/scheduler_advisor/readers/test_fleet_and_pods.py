"""Fleet specs, and pods and nodes for packing."""

from __future__ import annotations

import pytest

from collector.errors import ImportRefusedError
from scheduler_advisor.engine.cluster import UNLIMITED
from scheduler_advisor.engine.packing import fragmentation_milli
from scheduler_advisor.readers.errors import ReaderError
from scheduler_advisor.readers.fleet import read_fleet
from scheduler_advisor.readers.pods import (
    read_pack_nodes,
    read_pod_order,
    read_pods,
    read_tie_order,
)


def test_a_pool_and_a_shape():
    assert (len(read_fleet("pool:100")), read_fleet("pool:100").total_gpus) == (1, 100)
    fleet = read_fleet("17x8")
    assert (len(fleet), fleet.total_gpus) == (17, 136)
    assert fleet.names == tuple(sorted(fleet.names))


@pytest.mark.parametrize("spec", ["pool:0", "pool", "17by8"])
def test_what_is_no_fleet_is_refused(spec):
    with pytest.raises(ReaderError, match="pool:"):
        read_fleet(spec)


def test_a_missing_fleet_file_is_refused():
    with pytest.raises(ImportRefusedError, match="no such file"):
        read_fleet("none.csv")


def test_a_fleet_file_is_in_the_order_of_names_and_blank_means_unlimited(tmp_path):
    path = tmp_path / "fleet.csv"
    path.write_text("node,gpu_model,gpus,cpus,mem_mib,leaf\nb,H100,8,,,s1\na,,2,4.5,64,\n")
    fleet = read_fleet(str(path))
    assert fleet.names == ("a", "b")
    assert fleet.cpu_milli.tolist() == [4500, UNLIMITED]
    assert fleet.mem_mib.tolist() == [64, UNLIMITED]
    assert (fleet.gpu_model, fleet.leaf) == (("", "H100"), ("", "s1"))


def test_openb_is_ready_for_packing(shared_data):
    folder = shared_data / "traces" / "openb"
    pods = read_pods(folder / "openb_pod_list_default.csv")
    nodes = read_pack_nodes(folder / "openb_node_list_gpu_node.csv")
    assert round(fragmentation_milli(pods, nodes), 2) == 866_232.55


def test_the_oracles_orders_are_read(shared_data):
    folder = shared_data / "oracles" / "fgd_seed42"
    order = read_pod_order(folder / "placements.csv")
    assert (len(order), order[0], order[8152]) == (10_866, "openb-pod-0255", "openb-pod-3888")
    ties = read_tie_order(folder / "node_rank.csv")
    assert (len(ties), ties[:2]) == (1_213, ["openb-node-0260", "openb-node-0858"])


def test_plain_lists_of_names_are_orders_too(tmp_path):
    path = tmp_path / "order.txt"
    path.write_text("b\na\n\nb\n")
    assert read_pod_order(path) == read_tie_order(path) == ["b", "a", "b"]


def test_an_order_without_a_known_column_or_without_names_is_refused(tmp_path):
    path = tmp_path / "order.csv"
    path.write_text("red,green\n1,2\n")
    with pytest.raises(ReaderError, match="no column base_pod or pod"):
        read_pod_order(path)
    path.write_text("\n")
    with pytest.raises(ReaderError, match="no names"):
        read_tie_order(path)


def test_nodes_without_cpu_and_jobs_of_several_tasks_cannot_be_packed(tmp_path):
    nodes = tmp_path / "nodes.csv"
    nodes.write_text("node,gpus,cpus\na,8,64\n")
    with pytest.raises(ReaderError, match="node a has no cpus or no mem_mib"):
        read_pack_nodes(nodes)
    jobs = tmp_path / "jobs.csv"
    jobs.write_text("job_id,submit,run,gpus,tasks\nwide,0,9,16,2\n")
    with pytest.raises(ReaderError, match="job wide has several tasks"):
        read_pods(jobs, "jobs")
