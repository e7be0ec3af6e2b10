"""Does placement by the network cut all-reduce time by more than 30%, as is claimed? On the real
Clos of 847 hosts, with the jobs of two real gang-heavy clusters: where it does and where not."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from scheduler_advisor.engine import Cluster, Jobs, Policy, simulate
from scheduler_advisor.engine.parts.communication import communication, saving, uplink_load
from scheduler_advisor.readers.fleet import read_fleet
from scheduler_advisor.readers.jobs import read_jobs

pytestmark = pytest.mark.prove

HOSTS = 847


@pytest.fixture
def clos(shared_data):
    """The network, its hosts as eight H100 with NVLink in one island each."""
    path = shared_data / "traces" / "topology" / "lingjun_topo.csv"
    if not path.exists():
        pytest.skip(f"{path} is not here")
    cluster = read_fleet(str(path))
    assert len(cluster) == HOSTS
    return replace(cluster, gpu_model=("H100",) * len(cluster))


@pytest.fixture
def gangs(shared_data):
    """The jobs of ITP clusters 03 and 06, arrivals pressed together to a load of the network's."""
    paths = [shared_data / "traces" / "itp" / f"cluster{name}.csv" for name in ("03", "06")]
    for path in paths:
        if not path.exists():
            pytest.skip(f"{path} is not here")
    read = [read_jobs(path).jobs for path in paths]

    def make(count, total_gpus, load, least_gpus=1):
        submit = np.concatenate([jobs.submit - jobs.submit.min() for jobs in read])
        run = np.concatenate([jobs.run for jobs in read])
        gpus = np.concatenate([jobs.gpus for jobs in read])
        kept = np.flatnonzero(gpus >= least_gpus)
        kept = kept[:: max(1, len(kept) // count)][:count]
        submit, run, gpus = submit[kept], run[kept], gpus[kept]
        span = float((gpus * run).sum()) / (total_gpus * load)
        return Jobs.build(
            submit=(submit * (span / submit.max())).astype(np.int64), run=run, gpus=gpus
        )

    return make


def replayed(jobs, cluster, **keys):
    keys = {key.replace("__", "."): value for key, value in keys.items()}
    policy = Policy().with_values({"topology.slowdown": "true", "backfill": "greedy"} | keys)
    outcome = simulate(jobs, cluster, policy)
    assert outcome.started.all()
    span = outcome.last_instant - outcome.first_instant
    held = outcome.held_gpu_s + outcome.free_gpu_s + outcome.down_gpu_s
    assert held == pytest.approx(cluster.total_gpus * span)
    return outcome


def cut(jobs, cluster, before, **keys):
    one = replayed(jobs, cluster, placement=before, **keys)
    other = replayed(jobs, cluster, placement="topology", **keys)
    return saving(one, other)


def test_all_reduce_time_falls_by_over_30_percent_on_shared_uplinks_and_hardly_on_others(
    clos, gangs, proof_size, record_proof
):
    count = proof_size(5_400)
    jobs = gangs(count, clos.total_gpus, 0.85)
    rows = []
    for before in ("random", "worst-fit", "first-fit", "best-fit"):
        for oversubscription in (1, 2, 4, 8):
            won = cut(jobs, clos, before, topology__oversubscription=oversubscription)
            rows.append(
                {
                    "before": before,
                    "oversubscription": oversubscription,
                    "cut_ratio": round(won.cut_ratio, 4),
                    "on_defaults_ratio": round(won.on_defaults_ratio, 4),
                }
            )
    by = {(row["before"], row["oversubscription"]): row["cut_ratio"] for row in rows}
    little = {
        "uplinks that carry everything, messages of 1 GiB": by["random", 1],
        "uplinks that carry everything, messages of 64 MiB": cut(
            jobs, clos, "random", topology__message_mib=64
        ).cut_ratio,
        "jobs of at most one host, uplinks 4:1": cut(
            _at_most(jobs, 8), clos, "random", topology__oversubscription=4
        ).cut_ratio,
    }
    in_order = _along_the_network(clos)
    between = {
        f"{before}, hosts named along the network, uplinks 4:1": cut(
            jobs, in_order, before, topology__oversubscription=4
        ).cut_ratio
        for before in ("first-fit", "best-fit")
    }
    record_proof(
        "network_placement",
        hosts=len(clos),
        jobs=len(jobs),
        load=0.85,
        message_mib=1024,
        rows=rows,
        little={name: round(value, 4) for name, value in little.items()},
        between={name: round(value, 4) for name, value in between.items()},
    )
    assert by["random", 4] > 0.30
    assert by["worst-fit", 4] > 0.30
    assert by["random", 1] < by["random", 2] < by["random", 4] < by["random", 8]
    assert all(value < 0.05 for value in little.values()), little
    assert max(between.values()) < by["random", 4]


def _along_the_network(cluster):
    """The same hosts in the order of their leaves: what a site has that names hosts by rack."""
    order = np.lexsort((np.array(cluster.names), np.array(cluster.leaf)))
    return Cluster.build(
        gpus=cluster.gpus[order],
        leaf=[cluster.leaf[node] for node in order],
        spine=[cluster.spine[node] for node in order],
        rack=[cluster.rack[node] for node in order],
        gpu_model=[cluster.gpu_model[node] for node in order],
    )


def _at_most(jobs, gpus):
    return jobs.take(np.flatnonzero(jobs.gpus <= gpus))


def test_what_the_cut_is_worth_depends_on_the_share_of_time_in_communication(
    clos, gangs, proof_size, record_proof
):
    """The same gangs at 4:1, with 2 to 50% of their time in communication: GPU-hours won."""
    jobs = gangs(proof_size(5_400), clos.total_gpus, 0.85)
    rows = []
    for milli in (20, 100, 300, 500):
        told = jobs.changed(comm_milli=np.where(jobs.gpus > 1, milli, 0))
        one = replayed(told, clos, placement="random", topology__oversubscription=4)
        other = replayed(told, clos, placement="topology", topology__oversubscription=4)
        held = one.held_gpu_s
        rows.append(
            {
                "comm_ratio": milli / 1000,
                "cut_ratio": round(saving(one, other).cut_ratio, 4),
                "gpu_hours_won_ratio": round((held - other.held_gpu_s) / held, 4),
            }
        )
        assert communication(one).on_defaults_gpu_s == pytest.approx(0, abs=1)
    record_proof("network_worth", rows=rows)
    won = [row["gpu_hours_won_ratio"] for row in rows]
    assert won == sorted(won)
    assert won[0] < 0.05  # compute-bound: the network does not matter


def test_uplinks_carry_less_where_gangs_stay_in_their_leaves(clos, gangs, proof_size):
    jobs = gangs(proof_size(2_000), clos.total_gpus, 0.85, least_gpus=16)
    loads = {}
    for placement in ("random", "topology"):
        outcome = replayed(jobs, clos, placement=placement, topology__oversubscription=4)
        leaves, load, capacity = uplink_load(outcome)
        assert len(leaves) == 119
        assert load.shape[0] == len(capacity) == 119
        assert (load >= 0).all()
        loads[placement] = float(load.sum())
    assert loads["topology"] < loads["random"] / 2
