"""Where jobs ran, by the stated rule; and never two holders of one thousandth."""

from __future__ import annotations

from collections import defaultdict

from hypothesis import given, settings
from hypothesis import strategies as st

from collector.traces.inventory import NodeSpec
from collector.traces.named_nodes import named_nodes
from collector.traces.placement import place
from collector.traces.trace import Trace, jobs_table

COLUMNS = ("start_s", "end_s", "gpus", "gpu_milli", "cpu_milli", "mem_mib", "gpu_models")


def trace_of(*jobs, **more):
    columns = dict(zip(COLUMNS, zip(*jobs, strict=True), strict=True)) | more
    names = [str(i) for i in range(len(jobs))]
    return Trace(
        jobs=jobs_table({"job_id": names, "submit_s": [0] * len(jobs), **columns}), format="t"
    )


def job(start=0, end=10, gpus=1, milli=None, cpu=None, mem=None, models=None):
    return (start, end, gpus, milli, cpu, mem, models)


def node(name, gpus=4, model="A", cpu=None, mem=None):
    return NodeSpec(name=name, gpus=gpus, gpu_model=model, cpu_milli=cpu, mem_mib=mem)


def where(trace, *nodes):
    return [(held.job, held.node, held.gpus) for held in place(trace, nodes).held]


def test_a_job_goes_to_the_fullest_node_that_fits_and_the_lowest_name_on_ties():
    trace = trace_of(job(gpus=2), job(gpus=1), job(gpus=3))
    assert where(trace, node("b"), node("a")) == [(0, 0, (0, 1)), (1, 0, (2,)), (2, 1, (0, 1, 2))]


def test_an_end_frees_its_gpus_for_a_start_at_the_same_second():
    trace = trace_of(job(0, 5, gpus=4), job(5, 9, gpus=4))
    assert where(trace, node("a")) == [(0, 0, (0, 1, 2, 3)), (1, 0, (0, 1, 2, 3))]


def test_shares_pack_onto_one_gpu():
    trace = trace_of(*[job(milli=400)] * 3)
    assert where(trace, node("a")) == [(0, 0, (0,)), (1, 0, (0,)), (2, 0, (1,))]


def test_a_wide_job_fills_the_emptiest_nodes_first():
    trace = trace_of(job(gpus=1), job(gpus=6))
    assert where(trace, node("a"), node("b")) == [
        (0, 0, (0,)),
        (1, 1, (0, 1, 2, 3)),
        (1, 0, (1, 2)),
    ]


def test_cpu_and_memory_of_a_wide_job_add_up_over_its_nodes():
    held = place(trace_of(job(gpus=7, cpu=1000, mem=99)), [node("a"), node("b")]).held
    assert [sum(getattr(h, name) for h in held) for name in ("cpu_milli", "mem_mib")] == [1000, 99]


def test_a_cpu_only_job_leaves_gpu_nodes_alone_where_it_can():
    trace = trace_of(job(gpus=0, cpu=8))
    assert where(trace, node("a", cpu=9), node("z", gpus=0, cpu=9)) == [(0, 1, ())]


def test_model_and_cpu_decide_and_a_lack_of_cpu_everywhere_is_counted():
    nodes = (node("a", model="A", cpu=4), node("b", model="B", cpu=8))
    assert where(trace_of(job(models="B|C"), job(cpu=6)), *nodes) == [(0, 1, (0,)), (1, 1, (1,))]
    found = place(trace_of(job(cpu=9)), nodes)
    assert (len(found.held), found.over_cpu_or_memory) == (1, 1)


def test_a_job_without_room_is_told_and_holds_nothing():
    found = place(trace_of(job(gpus=9), job(gpus=4)), [node("a")])
    assert found.without_room == [0]
    assert [held.job for held in found.held] == [1]


def test_named_nodes_are_obeyed_and_sized_by_what_they_held_at_once():
    trace = trace_of(
        job(0, 9, 3), job(2, 5, 1), job(5, 7, 2), node_names=[["x", "x", "y"], ["y"], ["y", "x"]]
    )
    nodes = named_nodes(trace)
    assert [(spec.name, spec.gpus) for spec in nodes] == [("x", 3), ("y", 2)]
    assert sorted(where(trace, *nodes)) == [
        (0, 0, (0, 1)), (0, 1, (0,)), (1, 1, (1,)), (2, 0, (2,)), (2, 1, (1,)),
    ]  # fmt: skip


JOB = st.builds(
    job,
    start=st.one_of(st.none(), st.integers(0, 20)),
    end=st.one_of(st.none(), st.integers(0, 30)),
    gpus=st.integers(0, 9),
    cpu=st.one_of(st.none(), st.integers(0, 4000)),
    models=st.sampled_from([None, "A", "A|B", "C"]),
)
SHARE = st.builds(job, start=st.integers(0, 20), end=st.integers(0, 30), milli=st.integers(1, 999))


@settings(max_examples=200)
@given(
    jobs=st.lists(st.one_of(JOB, SHARE), min_size=1, max_size=15),
    sizes=st.lists(st.integers(0, 4), min_size=1, max_size=4),
)
def test_no_gpu_is_ever_held_beyond_itself_and_every_holder_gets_what_it_asked(jobs, sizes):
    trace = trace_of(*jobs)
    nodes = [node(f"n{i}", gpus=size, cpu=4000) for i, size in enumerate(sizes)]
    found = place(trace, nodes)
    got = defaultdict(int)
    for held in found.held:
        got[held.job] += len(held.gpus)
    for index, (start, end, gpus, *_) in enumerate(jobs):
        holds = start is not None and (end is None or end > start)
        assert (index in found.without_room or index in got) == holds
        if index in got:
            assert got[index] == gpus
    for moment in range(31):
        used = defaultdict(int)
        for held in found.held:
            start, end = jobs[held.job][:2]
            if start <= moment and (end is None or moment < end):
                for gpu in held.gpus:
                    used[held.node, gpu] += held.milli
        assert all(milli <= 1000 for milli in used.values())
