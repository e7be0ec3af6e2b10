"""A small cluster with hand-made facts: every amount in these tests can be worked out on paper."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest

from analytics.ledger import build
from analytics.org import Mapping, load_mappings
from analytics.prices import Price, load_prices
from analytics.window import Window as LedgerWindow
from collector.model import (
    Allocation,
    Event,
    FactWindow,
    Job,
    JobRun,
    Node,
    NodeState,
    Reservation,
)
from scheduler_advisor.advice.advise import advise
from scheduler_advisor.advice.site import Site
from scheduler_advisor.goals import Goals
from scheduler_advisor.report.make import make_report
from scheduler_advisor.window import Window

T0 = datetime(2026, 10, 5, tzinfo=UTC)  # a Monday
DAYS = 7
STEP_S = 600
PRICES = {"A100": "2.00", "T4": "0.50"}
MEM_MIB = {"A100": 40960, "T4": 15360}
IDLE_MW, BUSY_MW = 50_000.0, 350_000.0


def at(hours: float) -> datetime:
    """An instant, in hours since the beginning of the window."""
    return T0 + timedelta(hours=hours)


@dataclass
class Lab:
    """Facts in the making; `built` writes them and builds the ledger of the window once."""

    store: object
    days: int = DAYS
    facts: list = field(default_factory=list)
    samples: list = field(default_factory=list)
    hosts: list = field(default_factory=list)
    models: dict = field(default_factory=dict)
    done: bool = False

    @property
    def until(self) -> datetime:
        return at(24 * self.days)

    @property
    def window(self) -> Window:
        return Window(T0, self.until)

    def node(self, name="n1", *, gpus=8, model="A100", cpus=64, mem_gib=512, leaf="leaf1",
             partitions=("batch",), owned=True, telemetry=True):  # fmt: skip
        self.models[name] = (model, gpus)
        self.facts.append(
            Node(cluster="c", node=name, gpu_model=model, gpus=gpus, cpus=cpus,
                 mem_mib=mem_gib * 1024, leaf=leaf, partitions=partitions, owned=owned,
                 valid_from=T0, source="test")
        )  # fmt: skip
        if telemetry:
            self.covered("telemetry", node=name)

    def covered(self, kind, since=0.0, until=None, node=None):
        end = self.until if until is None else at(until)
        self.facts.append(
            FactWindow(cluster="c", kind=kind, node=node, since=at(since), until=end, source="test")
        )

    def run(self, job="1", *, start=0.0, end=None, node="n1", gpus=1, first=0, activity=0.9,
            user="ann", account="red", name=None, state=None, attempt=1, cpus=None, mem_gib=None,
            submit=None, queue="batch", mem_used=None, power=None, measured=True, reason=None,
            qos="normal", topology=None, mib_asked=None):  # fmt: skip
        """One run; ``node`` may be several of (name, gpus, start); ``activity`` f(hour, gpu)."""
        places = [(node, gpus, start)] if isinstance(node, str) else list(node)
        total = sum(count for _, count, _ in places)
        begin = None if start is None else at(start)
        over = end is not None and at(end) <= self.until
        known = state or ("COMPLETED" if over else "PENDING" if start is None else "RUNNING")
        submitted = at(submit if submit is not None else start or 0.0)
        if attempt == 1:
            self.facts.append(
                Job(cluster="c", job_id=job, name=name or f"job-{job}", account=account,
                    user_name=user, submit_at=submitted, req_gpus=total, req_nodes=len(places),
                    req_cpus=cpus, req_mem_mib=mib_asked, partitions=(queue,), topology=topology,
                    source="test")
            )  # fmt: skip
        run_id = f"{job}:{attempt}"
        self.facts.append(
            JobRun(cluster="c", run_id=run_id, job_id=job, attempt=attempt, account=account,
                   user_name=user, partition=queue, qos=qos, submit_at=submitted,
                   eligible_at=submitted, start_at=begin, end_at=at(end) if over else None,
                   state=known, reason=reason, gpus=total, cpus=cpus,
                   mem_mib=mem_gib * 1024 if mem_gib else None, nodes=len(places),
                   last_known_at=None if over else self.until, source="test")
        )  # fmt: skip
        if start is None:
            return run_id
        for place, count, from_hour in places:
            for index in range(first, first + count):
                part = (index - first) == 0
                self.facts.append(
                    Allocation(cluster="c", run_id=run_id, node=place, gpus=1,
                               gpu_model=self.models[place][0], gpu_uuid=f"{place}-{index}",
                               cpus=(cpus if part else 0) if cpus is not None else None,
                               mem_mib=(mem_gib * 1024 if part else 0) if mem_gib else None,
                               start_at=at(from_hour), end_at=at(end) if over else None,
                               source="test")
                )  # fmt: skip
                if measured:
                    self._sample(run_id, place, index, (from_hour, end), activity, mem_used, power)
        return run_id

    def _sample(self, run_id, node, index, span, activity, mem_used, power):
        model = self.models[node][0]
        last = 24 * self.days if span[1] is None else min(span[1], 24 * self.days)
        tick = span[0] + STEP_S / 3600
        while tick <= last + 1e-9:
            begun = round(tick - STEP_S / 3600, 6)
            busy = activity(begun, index) if callable(activity) else activity
            self.samples.append({
                "node": node, "gpu_uuid": f"{node}-{index}", "gpu_index": index, "run_id": run_id,
                "ts": at(tick), "util_ratio": busy,
                "mem_used_mib": float(mem_used or MEM_MIB[model] * 0.7),
                "mem_total_mib": float(MEM_MIB[model]),
                "power_mw": power if power is not None else IDLE_MW + (BUSY_MW - IDLE_MW) * busy,
            })  # fmt: skip
            tick += STEP_S / 3600

    def idle_gpu(self, node, index, hours=24.0):
        """A GPU that nobody holds, under samples."""
        self._sample(None, node, index, (0.0, hours), 0.0, 100.0, IDLE_MW)

    def host(self, run_id, *, cpu=0.5, io=None, node="n1", start=0.0, end=24.0, cpus=16):
        tick = start + 0.25
        while tick <= end:
            self.hosts.append({"node": node, "run_id": run_id, "ts": at(tick), "cpus": cpus,
                               "cpu_used": cpu * cpus, "io_pressure_ratio": io})  # fmt: skip
            tick += 0.25

    def state(self, node="n1", *, since, until=None, state="drained", reason="fan"):
        self.facts.append(
            NodeState(cluster="c", node=node, since=at(since), state=state, reason=reason,
                      until=None if until is None else at(until), user_name="root", source="test")
        )  # fmt: skip

    def reserve(self, node="n1", *, gpus=None, since=0.0, until=None, account="red"):
        self.facts.append(
            Reservation(cluster="c", name="course", node=node, gpus=gpus, accounts=(account,),
                        since=at(since), until=None if until is None else at(until), source="test")
        )  # fmt: skip

    def event(self, kind, hour, **more):
        self.facts.append(Event(cluster="c", ts=at(hour), kind=kind, source="test", **more))

    def built(self):
        if self.done:
            return self
        self.done = True
        if not any(isinstance(f, FactWindow) and f.kind == "scheduler" for f in self.facts):
            self.covered("scheduler")
        with self.store.work() as work:
            work.append_facts(self.facts)
            for table, rows, step in (("sample", self.samples, STEP_S),
                                      ("host_sample", self.hosts, 900)):  # fmt: skip
                if rows:
                    columns = {name: [row[name] for row in rows] for name in rows[0]}
                    work.append(table, {**columns, "cluster": ["c"] * len(rows),
                                        "step_s": [float(step)] * len(rows),
                                        "source": ["test"] * len(rows)})  # fmt: skip
            load_prices(
                work,
                [Price(gpu_model=model, amount=Decimal(amount), currency="USD", kind="contracted",
                       source="contract 7") for model, amount in PRICES.items()],
                at=T0, actor="test",
            )  # fmt: skip
            load_mappings(
                work,
                [Mapping(key_kind="account", key_value=name, team=f"team-{name}")
                 for name in ("red", "blue")],
                at=T0, actor="test",
            )  # fmt: skip
        build(self.store, "c", LedgerWindow(T0, self.until))
        return self

    def advice(self, goals: Goals | None = None, at_time: datetime | None = None):
        """Everything that is advised on these facts."""
        self.built()
        with self.store.work() as work:
            site = Site(work, self.window, goals or Goals(), "c")
            return advise(site, at_time or self.until)

    def find(self, kind: str, goals: Goals | None = None):
        """The recommendations of one kind."""
        return [rec for rec in self.advice(goals).recommendations if rec.kind == kind]

    def the(self, kind: str, goals: Goals | None = None):
        """The only recommendation of one kind."""
        found = self.find(kind, goals)
        assert len(found) == 1, [(rec.kind, rec.draft.subject) for rec in found]
        return found[0]

    def report(self, goals: Goals | None = None, made: datetime | None = None):
        self.built()
        return make_report(
            self.store, self.window, goals or Goals(), at=made or self.until, cluster="c"
        )


@pytest.fixture
def lab(store) -> Lab:
    """An empty cluster; one week, A100 at 2.00 and T4 at 0.50 USD per GPU-hour."""
    return Lab(store)


@pytest.fixture
def hour() -> Callable[[float], datetime]:
    """Hours since the beginning of the window as an instant."""
    return at
