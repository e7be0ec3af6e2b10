"""The fast packing makes every decision of the slow reference, for every score and tie rule."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scheduler_advisor.engine.packing import PackPolicy, Score, Ties, pack
from scheduler_advisor.engine.packing.compiled import sources_digest
from scheduler_advisor.engine.packing.kernel import pack_all

MODELS = st.sampled_from(["", "", "A", "B", "A|B", "C"])
POD = st.one_of(
    st.tuples(st.integers(0, 8), st.integers(0, 4), st.just(0), st.just(0), st.just("")),
    st.tuples(
        st.integers(0, 8),
        st.integers(0, 4),
        st.just(1),
        st.sampled_from([1, 250, 300, 500, 700, 999]),
        MODELS,
    ),
    st.tuples(st.integers(0, 8), st.integers(0, 4), st.integers(1, 4), st.just(1000), MODELS),
)
NODE = st.tuples(
    st.integers(0, 32), st.integers(0, 16), st.integers(0, 4), st.sampled_from(["", "A", "B"])
)
TIES = [ties for ties in Ties if ties is not Ties.LISTED]


def decisions(packing):
    return [
        (
            None if node < 0 else packing.nodes.name[node],
            [g for g in range(8) if mask >> g & 1],
            pytest.approx(after, abs=1e-9),
        )
        for node, mask, after in zip(
            packing.node,
            (int(mask) for mask in packing.gpu_mask),
            packing.fragmentation_milli_after[1:],
            strict=True,
        )
    ]


@pytest.mark.prove
@pytest.mark.parametrize("score", list(Score))
@pytest.mark.parametrize("ties", TIES)
@settings(max_examples=500 if os.environ.get("UNSTRAND_PROVE") == "1" else 25)
@given(
    pods=st.lists(POD, min_size=1, max_size=25),
    nodes=st.lists(NODE, min_size=1, max_size=7),
    seed=st.integers(0, 3),
)
def test_every_decision_equals_the_reference(
    build_pods, build_nodes, reference_packing, score, ties, pods, nodes, seed
):
    pods, nodes = build_pods(*pods), build_nodes(*nodes)
    if nodes.capacity_milli == 0:
        return
    fast = pack(pods, nodes, PackPolicy(score, ties), seed=seed)
    assert reference_packing(pods, nodes, score, ties, seed) == decisions(fast)


@settings(max_examples=100)
@given(
    pods=st.lists(POD, min_size=1, max_size=40),
    nodes=st.lists(NODE, min_size=1, max_size=12),
    score=st.sampled_from(list(Score)),
)
def test_no_node_ever_holds_more_than_it_has(build_pods, build_nodes, pods, nodes, score):
    pods, nodes = build_pods(*pods), build_nodes(*nodes)
    if nodes.capacity_milli == 0:
        return
    packing = pack(pods, nodes, PackPolicy(score), seed=1)
    for n in range(len(packing.nodes)):
        here = np.flatnonzero(packing.node == n)
        assert packing.pods.cpu_milli[here].sum() <= packing.nodes.cpu_milli[n]
        assert packing.pods.mem_mib[here].sum() <= packing.nodes.mem_mib[n]
        for g in range(int(packing.nodes.gpus[n])):
            held = [packing.pods.gpu_milli[p] for p in here if packing.gpu_mask[p] >> g & 1]
            assert sum(held) <= 1000
        assert all(packing.gpu_mask[p] < 1 << packing.nodes.gpus[n] for p in here)
    gpus_held = [int(mask).bit_count() for mask in packing.gpu_mask]
    wanted = np.where(packing.node >= 0, packing.pods.gpus, 0)
    assert gpus_held == wanted.tolist()


PLAIN = """
import json, numpy as np
from scheduler_advisor.engine.packing import Nodes, PackPolicy, Pods, Score, Ties, pack
rng = np.random.default_rng(7)
gpus = rng.integers(0, 3, 60)
milli = np.where(gpus == 1, rng.integers(1, 1001, 60), 1000)
pods = Pods([str(i) for i in range(60)], rng.integers(0, 9, 60), rng.integers(0, 9, 60), gpus,
            milli, ["A" if i % 5 == 0 else "" for i in range(60)])
nodes = Nodes([str(i) for i in range(9)], rng.integers(8, 30, 9), rng.integers(8, 30, 9),
              rng.integers(1, 5, 9), ["A" if i % 2 else "B" for i in range(9)])
out = []
for score in Score:
    for ties in Ties:
        if ties is not Ties.LISTED:
            result = pack(pods, nodes, PackPolicy(score, ties), seed=3)
            out.append([result.node.tolist(), result.gpu_mask.tolist(),
                        result.fragmentation_milli_after.tolist()])
print(json.dumps(out))
"""


def test_plain_python_gives_the_same_bytes_as_the_compiled_kernel():
    def run(**environment):
        command = [sys.executable, "-W", "error", "-c", PLAIN]
        done = subprocess.run(
            command, env=os.environ | environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    assert run(NUMBA_DISABLE_JIT="1") == run()


def test_an_edited_leaf_is_never_run_from_an_old_cache(tmp_path):
    if not hasattr(pack_all, "_cache"):
        pytest.skip("the compiler is switched off (NUMBA_DISABLE_JIT)")
    import scheduler_advisor.engine.packing as package

    folder = tmp_path / "copy"
    folder.mkdir()
    for path in package.__path__:
        from pathlib import Path

        for source in Path(path).glob("*.py"):
            (folder / source.name).write_bytes(source.read_bytes())
    before = sources_digest(folder)
    assert pack_all._cache._cache_file._source_stamp == before
    with (folder / "scores.py").open("a") as leaf:
        leaf.write("# changed\n")
    sources_digest.cache_clear()
    assert sources_digest(folder) != before
