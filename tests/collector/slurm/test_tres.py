from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collector.slurm import tres
from collector.slurm.gres import gpus_by_type
from collector.slurm.refusal import MalformedError


@pytest.mark.parametrize(
    ("text", "gpus"),
    [
        ("cpu=8,gres/gpu=2", 2),
        ("cpu=8,gres/gpu:a100=2", 2),
        ("cpu=8,gres/gpu:a100=2,gres/gpu=2", 2),
        ("gres/gpu:a100=2,gres/gpu:h100=1,gres/gpu=3", 3),
        ("gres/gpu:a100=2,gres/gpu:h100=1", 3),
        ("gres/gpu:h100_1g.10gb=2,gres/gpu=2", 2),
        ("gres/gpu:1g.5gb=7,gres/gpu=7", 7),
        ("gres/gpu:nvidia_a100_3g.39gb=1,gres/gpu:nvidia_a100_1g.5gb+me=1,gres/gpu=2", 2),
        ("billing=7,cpu=4,gres/gpu:a100-sxm4-40gb.1g.5gb=1,gres/gpu=1,mem=16G,node=1", 1),
        ("cpu=8,gres/gpumem=10G,gres/gpuutil=50,gres/gpu=1", 1),
        ("cpu=8,gres/shard=4", 0),
        ("billing=1,cpu=1,mem=4096M,node=1", 0),
        ("gres/gpu:a100=0,gres/gpu=0", 0),
    ],
)
def test_generic_and_typed_counts_are_the_same_gpus(text, gpus):
    assert tres.parse(text).gpus == gpus


@pytest.mark.parametrize(
    ("amount", "mib"),
    [("4096M", 4096), ("4G", 4096), ("62.50G", 64000), ("1T", 1 << 20), ("2048K", 2), ("512", 512)],
)
def test_memory_in_any_unit_is_mib(amount, mib):
    assert tres.parse(f"mem={amount}").mem_mib == mib


def test_what_is_not_named_is_not_known():
    found = tres.parse("cpu=4")
    assert (found.cpus, found.mem_mib, found.nodes, found.gpus_generic) == (4, None, None, None)
    assert tres.parse("") is None


@pytest.mark.parametrize(
    "text",
    [
        *("cpu", "cpu=", "=4", "cpu=x", "cpu=1,cpu=2", "cpu=1,,mem=1M", "gres/gpu=-1", "mem=1X"),
        *("gres/gpu=1.5", "cpu=1,", "mem=999999999999999E", "cpu=99999999999999999999"),
    ],
)
def test_a_broken_list_is_malformed(text):
    with pytest.raises(MalformedError):
        tres.parse(text)


counts = st.integers(0, 100_000)
resources = st.builds(
    tres.Tres,
    cpus=st.none() | counts,
    mem_mib=st.none() | counts,
    nodes=st.none() | counts,
    gpus_generic=st.none() | counts,
    gpus_by_type=st.dictionaries(
        st.sampled_from(["a100", "h100_1g.10gb", "nvidia_h200_nvl_4g.71gb"]), counts
    ),
    shared_gpus=st.booleans(),
)


@given(resources)
def test_rendering_and_parsing_gives_the_same_resources(held):
    assert (tres.parse(tres.render(held)) or tres.Tres()) == held


@given(st.text(alphabet="cpumegs/:=,0123456789.MG", max_size=40))
def test_any_text_is_either_read_or_malformed(text):
    try:
        found = tres.parse(text)
    except MalformedError:
        return
    assert found is None or found.gpus >= 0


@pytest.mark.parametrize(
    ("text", "gpus"),
    [
        ("gpu:h100:8(S:0-1)", {"h100": 8}),
        ("gpu:8", {None: 8}),
        ("gpu", {None: 1}),
        ("gpu:A100", {"a100": 1}),
        ("gpu:a100:4(S:0),gpu:a100:4(S:1)", {"a100": 8}),
        ("gpu:a100:3(IDX:0-2),gpu:t4:0(IDX:N/A),shard:12", {"a100": 3}),
        ("gpu:h100_1g.10gb:14,mps:400", {"h100_1g.10gb": 14}),
        ("gpu:(null):4(IDX:0-3)", {None: 4}),
        ("gres:gpu:a100:8", {"a100": 8}),
        ("gres/gpu:8", {None: 8}),
        ("gpu:x:0", {}),
        ("(null)", {}),
        ("N/A", {}),
        ("", {}),
    ],
)
def test_gpus_of_a_node_by_type(text, gpus):
    assert gpus_by_type(text) == gpus


@pytest.mark.parametrize("text", ["gpu:a100:x", "gpu:a100:8(S:0", "gpu:1:2:3"])
def test_a_broken_gres_is_malformed(text):
    with pytest.raises(MalformedError, match="Gres"):
        gpus_by_type(text)
