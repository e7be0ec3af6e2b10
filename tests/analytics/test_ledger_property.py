"""The ledger against a slow reference, on histories that nobody would think of."""

# ruff: noqa: C901, PLR0915 - one history, one story

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal

import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from analytics.ledger.build import build
from analytics.ledger.settings import put_setting
from analytics.prices import Price, load_prices
from analytics.reports import cost_report, ledger_report, stranding_report
from analytics.window import EPOCH, Window, from_us, to_us
from collector.model import (
    Allocation,
    Event,
    FactWindow,
    Job,
    JobRun,
    NodeState,
    Reservation,
)
from collector.model import Node as NodeFact
from collector.store import Store

T0 = from_us(1_790_000_000_000_000 // 3_600_000_000 * 3_600_000_000)
MINUTE = 60_000_000
SPAN = 180
ZERO = to_us(T0)


INSTANCES = [None, None, None, (1, 0), (1, 6), (2, 2), (3, 0), (3, 4), (4, 0)]
"""MIG instances of a board: compute slices and where they begin; a layout changes with its runs."""


def minutes(low=-30, high=SPAN + 20):
    """Instants, mostly on thirds of a minute, now and then anywhere."""
    grid = st.integers(low * 3, high * 3).map(lambda n: ZERO + n * MINUTE // 3)
    return st.one_of(
        grid, grid, grid, st.integers(low, high).map(lambda n: ZERO + n * MINUTE + 123_457)
    )


def spans(**bounds):
    return st.tuples(minutes(**bounds), minutes(**bounds)).map(sorted).filter(lambda p: p[0] < p[1])


@st.composite
def histories(draw, ref):
    names = [f"n{i}" for i in range(draw(st.integers(1, 3)))]
    nodes = []
    for name in names:
        cpus = draw(st.none() | st.integers(2, 12))
        mem = draw(st.none() | st.integers(10, 100))
        leaf = draw(st.sampled_from([None, "l1", "l2"]))
        owned = draw(st.booleans())
        first = draw(
            st.sampled_from([ZERO - 3600 * MINUTE, ZERO - 3600 * MINUTE, ZERO + 7 * MINUTE])
        )
        gpus = draw(st.integers(1, 4))
        nodes.append(ref.Node(name, gpus, first, ref.INF, cpus, mem, leaf, owned))
        if draw(st.integers(0, 5)) == 0:
            later = draw(minutes(low=10))
            more = draw(st.integers(1, 5))
            nodes.append(ref.Node(name, more, later, ref.INF, cpus, mem, leaf, owned))
    node = st.sampled_from(names)
    runs = []
    for i in range(draw(st.integers(0, 5))):
        t0, t1 = draw(spans())
        named = draw(st.integers(0, 3)) == 0
        mig = draw(st.sampled_from(INSTANCES)) if named else None
        where = [draw(node)] if named else draw(st.lists(node, min_size=1, max_size=2, unique=True))
        runs.append(
            ref.Run(
                f"r{i}",
                where,
                t0,
                t1,
                gpus=1 if named else draw(st.integers(1, 3)),
                cpus=draw(st.integers(0, 8)),
                mem=draw(st.integers(0, 60)),
                gpu=f"{where[0]}-g{draw(st.integers(0, 1))}" if named else None,
                mig=mig,
                share=ref.F(mig[0], 7)
                if mig
                else draw(st.sampled_from([ref.F(1), ref.F(1, 2), ref.F(1, 3), ref.F(2, 7)]))
                if named
                else ref.F(1),
                state=draw(st.sampled_from(["COMPLETED", "PREEMPTED"])),
                account=draw(st.sampled_from(["a", "b"])),
                marks=[draw(minutes())] if draw(st.integers(0, 3)) == 0 else [],
                limit=draw(st.sampled_from([None, 24 * 60 * MINUTE, 48 * 60 * MINUTE])),
            )
        )
    waits = []
    for i in range(draw(st.sampled_from([0, 1, 2, 4, 6]))):
        t0, t1 = draw(spans())
        gpus = draw(st.sampled_from([1, 1, 2, 3, 4, 6, 8]))
        waits.append(
            ref.Wait(
                f"w{i}",
                t0,
                t1,
                gpus,
                nodes=draw(st.integers(1, min(2, gpus))),
                cpus=draw(st.sampled_from([0, 1, 2, 5, 8])),
                mem=draw(st.sampled_from([0, 0, 5, 30, 60])),
                leaf=draw(st.integers(0, 3)) == 0,
                # Apart from runs' limits by more than a history lasts.
                limit=draw(st.sampled_from([None, 12 * 60 * MINUTE, 36 * 60 * MINUTE])),
            )
        )
    states = [
        (
            draw(node),
            draw(st.sampled_from(["down", "drained", "powered_down", "maintenance"])),
            *draw(spans()),
        )
        for _ in range(draw(st.integers(0, 2)))
    ]
    kept = [
        (
            draw(node),
            draw(st.none() | st.integers(1, 3)),
            draw(st.sampled_from([None, "a"])),
            *draw(spans()),
        )
        for _ in range(draw(st.integers(0, 2)))
    ]
    broken = []
    for _ in range(draw(st.integers(0, 2))):
        where = draw(node)
        run = draw(st.sampled_from([None, *(r.name for r in runs)]))
        gpu = f"{where}-{run}-0" if run else draw(st.sampled_from([f"{where}-g0", f"{where}-x"]))
        broken.append((where, gpu, run, draw(minutes())))
    samples = []
    for run in runs:
        if draw(st.booleans()):
            continue
        step = draw(st.sampled_from([MINUTE, 7 * MINUTE]))
        for where in run.nodes:
            for n in range(run.gpus):
                device = run.instance or run.gpu or f"{where}-{run.name}-{n}"
                ppm = draw(st.sampled_from([0, 333_333, 500_000, 1_000_000]))
                start = run.t0 - 3 * step
                ticks = [start + k * step for k in range(min((run.t1 - start) // step + 3, 30))]
                gap = draw(st.integers(0, max(len(ticks) - 1, 0)))
                samples += [
                    (where, device, run.name, t, step, ppm) for t in ticks[:gap] + ticks[gap + 3 :]
                ]
    if draw(st.booleans()):  # a site with a queue: a gang in front, limits on what runs
        states, kept = [], []
        runs = [replace(run, limit=24 * 60 * MINUTE) for run in runs]
        waits = [replace(wait, t0=wait.t0 + nth) for nth, wait in enumerate(waits)]
        waits = [
            ref.Wait("g0", ZERO - MINUTE, ZERO + 150 * MINUTE, draw(st.integers(2, 8))),
            *waits,
        ]
    known = draw(st.lists(spans(), min_size=1, max_size=2))
    if draw(st.booleans()):
        known = [[ZERO - 1000 * MINUTE, ZERO + 1000 * MINUTE]]
    return ref.History(
        nodes=nodes,
        known=[tuple(k) for k in known],
        runs=runs,
        waits=waits,
        states=states,
        kept=kept,
        broken=broken,
        samples=samples,
        price_changes=[draw(minutes(low=1, high=SPAN - 1))] if draw(st.booleans()) else [],
        headroom=draw(st.sampled_from([0, 0, 0, 1, 3])),
        profile=draw(st.sampled_from([(None, None), (2000, 10), (0, 30)])),
    )


def when(us):
    return from_us(us)


def until(us, ref):
    return None if us >= ref.INF else from_us(us)


def facts_of(h, ref):
    base = {"cluster": "c", "source": "test"}
    for n in h.nodes:
        yield NodeFact(
            node=n.name,
            gpu_model="m",
            gpus=n.gpus,
            cpus=n.cpus,
            mem_mib=n.mem,
            leaf=n.leaf,
            owned=n.owned,
            valid_from=when(n.t0),
            valid_to=until(n.t1, ref),
            **base,
        )
    for a, b in h.known:
        yield FactWindow(kind="scheduler", since=when(a), until=when(b), **base)
    for r in h.runs:
        yield JobRun(
            run_id=r.name,
            job_id=r.name,
            account=r.account,
            submit_at=when(r.t0),
            eligible_at=when(r.t0),
            start_at=when(r.t0),
            end_at=when(r.t1),
            state=r.state,
            limit_s=None if r.limit is None else r.limit // 1_000_000,
            **base,
        )
        for node in r.nodes:
            yield Allocation(
                run_id=r.name,
                node=node,
                gpu_uuid=r.gpu,
                mig_uuid=r.instance,
                gpus=r.gpus,
                share_num=r.share.numerator,
                share_den=r.share.denominator,
                cpus=r.cpus,
                mem_mib=r.mem,
                start_at=when(r.t0),
                end_at=when(r.t1),
                **base,
            )
        for mark in r.marks:
            yield Event(ts=when(mark), kind="checkpoint_end", run_id=r.name, **base)
    for w in h.waits:
        yield Job(
            job_id=w.name,
            submit_at=when(w.t0),
            req_nodes=w.nodes,
            req_gpus=w.gpus,
            req_cpus=w.cpus,
            req_mem_mib=w.mem,
            topology="leaf" if w.leaf else None,
            limit_s=None if w.limit is None else w.limit // 1_000_000,
            **base,
        )
        yield JobRun(
            run_id=w.name,
            job_id=w.name,
            submit_at=when(w.t0),
            eligible_at=when(w.t0),
            end_at=when(w.t1),
            state="CANCELLED",
            gpus=w.gpus,
            **base,
        )
    for node, state, a, b in h.states:
        yield NodeState(node=node, since=when(a), until=when(b), state=state, **base)
    for i, (node, gpus, account, a, b) in enumerate(h.kept):
        yield Reservation(
            name=f"k{i}",
            node=node,
            gpus=gpus,
            accounts=(account,) if account else None,
            since=when(a),
            until=when(b),
            **base,
        )
    for node, gpu, run, t in h.broken:
        yield Event(ts=when(t), kind="xid", node=node, gpu_uuid=gpu, run_id=run, fatal=True, **base)


def save(store, h, ref, shuffle=None):
    facts = list(facts_of(h, ref))
    samples = list(h.samples)
    if shuffle is not None:
        shuffle.shuffle(facts)
        shuffle.shuffle(samples)
        facts += shuffle.sample(facts, min(3, len(facts)))  # an importer may come twice
        samples += shuffle.sample(samples, min(3, len(samples)))
    with store.work() as work:
        work.append_facts(facts)
        if samples:
            columns = dict(
                zip(
                    ("node", "gpu_uuid", "mig_uuid", "run_id", "ts", "step_s", "util_ratio"),
                    zip(
                        *(
                            (n, d, d if d.startswith("MIG") else None, r, when(t), s / 1e6, p / 1e6)
                            for n, d, r, t, s, p in samples
                        ),
                        strict=True,
                    ),
                    strict=True,
                )
            )
            size = len(samples)
            work.append("sample", {**columns, "cluster": ["c"] * size, "source": ["test"] * size})
        for gpu, mig, name in {(r.gpu, r.mig, r.instance) for r in h.runs if r.mig}:
            work.append(
                "mig_instance",
                {
                    "cluster": ["c"], "node": [gpu[:2]], "gpu_uuid": [gpu], "mig_uuid": [name],
                    "gpu_slices": [mig[0]], "placement_start": [mig[1]], "valid_from": [EPOCH],
                    "source": ["test"],
                },
            )  # fmt: skip
        changes = [EPOCH, *(when(t) for t in h.price_changes)]
        rows = [
            Price(
                gpu_model="m",
                amount=Decimal("6.88") + n,
                currency="USD",
                kind="contracted",
                source="test",
                effective_from=t,
            )
            for n, t in enumerate(changes)
        ]
        load_prices(work, rows, at=T0, actor="test")
        values = {
            "headroom_gpus": h.headroom or None,
            "demand_cpu_milli_per_gpu": h.profile[0],
            "demand_mem_mib_per_gpu": h.profile[1],
        }
        for key, value in values.items():
            if value is not None:
                put_setting(work, key, value, since=EPOCH, actor="test")


CLASSES = (
    "used",
    "lost",
    "allocated_idle",
    "allocated_unmeasured",
    "failed_held",
    "unattributed",
    "failed",
    "drained",
    "unknown",
    "reserved",
    "gang_wait",
    "stranded_cpu",
    "stranded_mem",
    "stranded_shape",
    "stranded_topology",
    "policy_blocked",
    "free",
    "fillable",
)


def causes_of(store):
    rows = store.rows(
        "SELECT p.node, epoch_us(c.since) AS since, class, role, rule, run_id, gpu_us "
        "FROM ledger_cause c JOIN ledger_pool p USING (pool_key) "
        "LEFT JOIN ledger_run USING (run_key)"
    )
    return {tuple(row[n] for n in list(row)[:-1]): row["gpu_us"] for row in rows}


def rows_of(store):
    rows = store.rows(
        "SELECT p.node, h.gpu_uuid, r.run_id, epoch_us(h.since) AS since, h.* EXCLUDE (since) "
        "FROM ledger_hour h JOIN ledger_pool p USING (pool_key) "
        "LEFT JOIN ledger_run r USING (run_key)"
    )
    found = {
        (row["node"], row["gpu_uuid"], row["run_id"], row["since"]): {
            name: row[name] for name in CLASSES if row[name]
        }
        for row in rows
    }
    # A pool whose time all stands on its boards' rows may keep the bounds of its stranded time.
    return {key: classes for key, classes in found.items() if classes}


def over_booked(ref, h, since, last):
    """Whether somewhere more is claimed than there is."""
    oracle = ref.Reference(h)
    for t in oracle.cuts(since, last):
        for name in oracle.names:
            live = [r for r in h.runs if name in r.nodes and r.t0 <= t < r.t1]
            boards = {r.gpu for r in live if r.gpu}
            whole = sum(r.gpus for r in live if r.gpu is None)
            if whole + len(boards) > oracle.installed(name, t):
                return True
            if any(sum(r.share for r in live if r.gpu == gpu) > 1 for gpu in boards):
                return True
    return False


PARTS = 10
MET: Counter[str] = Counter()  # classes and reasons of every part that ran in this process


@pytest.mark.prove
@pytest.mark.slow
@pytest.mark.timeout(36_000)
@pytest.mark.parametrize("part", range(PARTS))
def test_the_ledger_is_the_reference_on_random_histories(reference, proof_size, record_proof, part):
    window = Window(T0, T0 + timedelta(minutes=SPAN))
    met = MET

    @seed(part)
    @settings(
        max_examples=proof_size(10_000) // PARTS,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
        phases=(Phase.generate,),
    )
    @given(h=histories(reference), luck=st.integers(0, 2**32))
    def check(h, luck):
        if over_booked(reference, h, window.since_us, window.until_us):
            # Whose GPU broke where too much is claimed?
            h = replace(
                h, broken=[], samples=[s for s in h.samples if s[1][-2:] in ("-0", "g0", "g1")]
            )
        oracle = reference.Reference(h)
        expected = oracle.ledger(window.since_us, window.until_us)
        blamed = oracle.causes(window.since_us, window.until_us)
        order = random.Random(luck)
        met.update(name for row in expected.values() for name in row)
        met.update({key[4] for key in blamed})
        with Store.open(":memory:", clock=lambda: T0) as store:
            # Facts come in any order, and an importer may come twice.
            save(store, h, reference, order if order.random() < 0.7 else None)
            build(store, "c", window)
            assert rows_of(store) == expected
            assert causes_of(store) == blamed
            if order.random() < 0.3:  # an hour built alone is the same hour
                build(store, "c", Window(T0 + timedelta(hours=1), T0 + timedelta(hours=2)))
                assert rows_of(store) == expected
                assert causes_of(store) == blamed
            if order.random() < 0.3:
                check_views(store, window)

    check()
    record_proof(f"ledger_histories_{part}", cases=proof_size(10_000) // PARTS, met=dict(met))


@pytest.mark.prove
@pytest.mark.slow
def test_the_random_histories_met_what_is_rare():
    """After the parts above, in the same run; alone it has met nothing and says so."""
    if not MET:
        pytest.skip("no part of the random histories ran in this process")
    rare = ("gang_wait", "stranded_cpu", "stranded_mem", "stranded_shape", "policy_blocked")
    assert [name for name in rare if not MET[name]] == []


def check_views(store, window):
    """The identity holds, and views of one window agree to the last digit."""
    report = ledger_report(store, window)
    assert report.identity.holds
    nodes = cost_report(store, window, ("node", "hour"))
    assert sum(row["cost"] for row in nodes.rows) == report.total["cost"]
    assert stranding_report(store, window).identity.gpu_seconds_difference == 0
