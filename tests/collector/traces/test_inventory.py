"""Nodes from shapes and files."""

from __future__ import annotations

import pytest

from collector.errors import ImportRefusedError
from collector.traces.inventory import NodeSpec, read_nodes, shaped


def test_a_shape_names_nodes_so_that_names_sort_as_numbers():
    nodes = shaped("12x8")
    assert [node.name for node in nodes] == sorted(node.name for node in nodes)
    assert (len(nodes), {node.gpus for node in nodes}) == (12, {8})


@pytest.mark.parametrize("text", ["8", "0x8", "8x0", "axb", "-1x8"])
def test_what_is_no_shape_is_refused(text):
    with pytest.raises(ImportRefusedError, match="write for example 17x8"):
        shaped(text)


def test_nodes_from_csv_toml_and_openb_agree(write):
    csv = write("n.csv", "node,gpu_model,gpus,cpus,mem_mib,rack\na,T4,2,4.5,100,r1\nb,,0,8,,\n")
    toml = write(
        "n.toml",
        '[[node]]\nnode="a"\ngpu_model="T4"\ngpus=2\ncpus=4.5\nmem_mib=100\nrack="r1"\n'
        '[[node]]\nnode="b"\ngpus=0\ncpus=8\n',
    )
    expected = (
        NodeSpec(name="a", gpus=2, gpu_model="T4", cpu_milli=4500, mem_mib=100, rack="r1"),
        NodeSpec(name="b", gpus=0, cpu_milli=8000),
    )
    assert read_nodes(csv) == read_nodes(toml) == expected
    openb = write("o.csv", "sn,cpu_milli,memory_mib,gpu,model\na,4500,100,2,T4\n")
    assert read_nodes(openb)[0] == NodeSpec(
        name="a", gpus=2, gpu_model="T4", cpu_milli=4500, mem_mib=100
    )


def test_one_toml_table_can_stand_for_many_nodes(write):
    nodes = read_nodes(write("n.toml", '[[node]]\nnode="gpu"\ncount=11\ngpus=8\n'))
    assert [node.name for node in nodes][:2] == ["gpu00", "gpu01"]
    assert len(nodes) == 11


def test_leaf_switches_of_one_name_under_two_pods_are_two(write):
    nodes = read_nodes(write("clos.csv", "ip,DSW,PSW,ASW\na,G6,P1,S1\nb,G6,P2,S1\n"))
    assert [node.leaf for node in nodes] == ["P1/S1", "P2/S1"]
    assert {node.gpus for node in nodes} == {8}


def test_the_real_clos_has_119_leaves_of_at_most_8_hosts(traces):
    nodes = read_nodes(traces / "topology" / "lingjun_topo.csv")
    leaves = [node.leaf for node in nodes]
    assert (len(nodes), len(set(leaves))) == (847, 119)
    assert max(leaves.count(leaf) for leaf in set(leaves)) <= 8


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("n.csv", "node,gpus\na,8\na,8\n", "n.csv, line 3: node a appears a second time"),
        ("n.csv", "host,gpus\na,8\n", "no column node"),
        ("n.csv", "node,gpus\na,many\n", "line 2: gpus is 'many'"),
        ("n.toml", "nodes = 3\n", r"no \[\[node\]\] table"),
        ("n.toml", "node = [", "not TOML"),
        ("n.toml", '[[node]]\nnode="a"\ngpu=8\n', "table 1 is not understood"),
        ("n.toml", '[[node]]\nnode="a"\ngpus=8\n[[node]]\nnode="a"\ngpus=8\n', "the same name"),
    ],
)
def test_a_broken_node_file_is_refused(write, name, text, message):
    with pytest.raises(ImportRefusedError, match=message):
        read_nodes(write(name, text))
