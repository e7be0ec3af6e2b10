"""A small site in one store, made of facts with defaults."""

from __future__ import annotations

import importlib
import sys
import types
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import pytest

from analytics.ledger import build, ensure_built
from analytics.ledger.settings import put_setting
from analytics.org import Mapping, load_mappings
from analytics.prices import Price, load_prices
from analytics.reports import cost_report, ledger_report
from analytics.window import EPOCH, Window
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
from collector.store import Store

T0 = datetime(2026, 10, 5, tzinfo=UTC)
GIB = 1024


def at(hours: float) -> datetime:
    """So many hours after the site's first instant."""
    return T0 + timedelta(hours=hours)


@dataclass
class Site:
    """Facts of cluster ``c``; times are hours after ``T0``; ``hours`` is the known window."""

    store: Store
    hours: float = 1
    cluster: str = "c"
    facts: list = field(default_factory=list)
    samples: list = field(default_factory=list)
    runs: int = 0

    def node(
        self, name="n1", gpus=8, model="h100", cpus=64, mem_gib=512, since=0.0, until=None, **more
    ):
        self.facts.append(
            Node(
                cluster=self.cluster, node=name, gpu_model=model, gpus=gpus, cpus=cpus,
                mem_mib=None if mem_gib is None else mem_gib * GIB, valid_from=at(since),
                valid_to=None if until is None else at(until), source="test", **more,
            )
        )  # fmt: skip
        return self

    def known(self, since=0.0, until=None, kind="scheduler", node=None):
        """The scheduler's facts cover this time."""
        end = at(self.hours if until is None else until)
        self.facts.append(
            FactWindow(
                cluster=self.cluster,
                kind=kind,
                node=node,
                since=at(since),
                until=end,
                source="test",
            )
        )
        return self

    def run(
        self, gpus=1, node="n1", since=0.0, until=None, cpus=0, mem_gib=0, user="ann",
        account="lab",
        state="COMPLETED", util=None, run_id=None, known_until=None, queue="main", uuids=None,
        share=(1, 1), mig=None, limit_h=None,
    ):  # fmt: skip
        """A run that holds ``gpus`` of each of its nodes; ``util`` gives each GPU samples by the
        minute."""
        self.runs += 1
        run_id = run_id or f"r{self.runs}"
        nodes = [node] if isinstance(node, str) else list(node)
        start, end = at(since), None if until is None else at(until)
        self.facts.append(
            JobRun(
                cluster=self.cluster, run_id=run_id, job_id=f"j-{run_id}", user_name=user,
                account=account, partition=queue, submit_at=start, eligible_at=start,
                start_at=start,
                end_at=end, state=state if end else "RUNNING", gpus=gpus * len(nodes), cpus=cpus,
                mem_mib=mem_gib * GIB, last_known_at=None if known_until is None else
                at(known_until),
                limit_s=None if limit_h is None else int(limit_h * 3600), source="test",
            )
        )  # fmt: skip
        for name in nodes:
            for uuid in uuids or [None]:
                self.facts.append(
                    Allocation(
                        cluster=self.cluster, run_id=run_id, node=name, gpu_uuid=uuid, mig_uuid=mig,
                        gpus=1 if uuid else gpus, share_num=share[0], share_den=share[1], cpus=cpus,
                        mem_mib=mem_gib * GIB, start_at=start, end_at=end, source="test",
                    )
                )  # fmt: skip
            if util is not None:
                for gpu in range(gpus):
                    name_ = (uuids or [f"{name}-{run_id}-{n}" for n in range(gpus)])[gpu]
                    last = self.hours if until is None else until
                    self.measure(util, since, last, name, name_, run_id)
        return run_id

    def measure(self, util, since, until, node, uuid, run_id=None, step_s=60.0, mig=None):
        """Samples of one device at each step over ``(since, until]``."""
        ticks = round((until - since) * 3600 / step_s)
        for tick in range(1, ticks + 1):
            self.samples.append(
                (
                    node,
                    uuid,
                    mig,
                    run_id,
                    at(since) + timedelta(seconds=step_s * tick),
                    step_s,
                    util,
                )
            )
        return self

    def wait(
        self, gpus, nodes=1, since=0.0, until=None, cpus=None, mem_gib=None, user="wei",
        account="gang",
        run_id=None, topology=None, limit_h=None, queue="main", partitions=None, model=None,
        priority=None,
    ):  # fmt: skip
        """A job that is pending from ``since`` until it starts somewhere that the facts do not
        show."""
        self.runs += 1
        run_id = run_id or f"w{self.runs}"
        limit = None if limit_h is None else int(limit_h * 3600)
        mem = None if mem_gib is None else mem_gib * GIB
        self.facts.append(
            Job(
                cluster=self.cluster, job_id=f"j-{run_id}", account=account, user_name=user,
                partitions=partitions, submit_at=at(since), req_nodes=nodes, req_gpus=gpus,
                req_gpu_model=model, req_cpus=cpus, req_mem_mib=mem, limit_s=limit,
                topology=topology,
                source="test",
            )
        )  # fmt: skip
        self.facts.append(
            JobRun(
                cluster=self.cluster, run_id=run_id, job_id=f"j-{run_id}", user_name=user,
                account=account, partition=queue, submit_at=at(since), eligible_at=at(since),
                start_at=None, end_at=None if until is None else at(until),
                state="PENDING" if until is None else "CANCELLED", gpus=gpus, limit_s=limit,
                source="test",
            )
        )  # fmt: skip
        return self

    def queue_tick(self, when, run_id, reason=None, priority=None):
        """The scheduler's own listing of a waiting job at one instant."""
        row = {"cluster": self.cluster, "ts": at(when), "job_id": f"j-{run_id}", "reason": reason,
               "priority": priority, "source": "test"}  # fmt: skip
        with self.store.work() as work:
            work.append("queue_snapshot", {name: [value] for name, value in row.items()})
        return self

    def state(self, state, since=0.0, until=None, node="n1"):
        end = None if until is None else at(until)
        self.facts.append(
            NodeState(
                cluster=self.cluster,
                node=node,
                since=at(since),
                until=end,
                state=state,
                source="test",
            )
        )
        return self

    def xid(self, when, node="n1", uuid=None, run_id=None, code=79):
        self.facts.append(
            Event(cluster=self.cluster, ts=at(when), kind="xid", node=node, gpu_uuid=uuid,
            run_id=run_id,
                  code=code, fatal=True, source="test")
        )  # fmt: skip
        return self

    def checkpoint(self, when, run_id):
        self.facts.append(
            Event(
                cluster=self.cluster,
                ts=at(when),
                kind="checkpoint_end",
                run_id=run_id,
                source="test",
            )
        )
        return self

    def reserve(self, gpus, node="n1", since=0.0, until=None, accounts=None):
        self.facts.append(
            Reservation(cluster=self.cluster, name="resv", node=node, gpus=gpus, accounts=accounts,
                        since=at(since), until=None if until is None else at(until), source="test")
        )  # fmt: skip
        return self

    def price(self, amount, model="h100", since=None, until=None, currency="USD", **more):
        row = Price(
            gpu_model=model, amount=Decimal(str(amount)), currency=currency, kind="contracted",
            source="test", effective_from=EPOCH if since is None else at(since),
            effective_to=None if until is None else at(until), **more,
        )  # fmt: skip
        with self.store.work() as work:
            load_prices(work, [row], at=T0, actor="test")
        return self

    def team(self, team, since=None, **key):
        ((kind, value),) = key.items()
        row = Mapping(key_kind=kind, key_value=value, team=team,
                      valid_from=EPOCH if since is None else at(since))  # fmt: skip
        with self.store.work() as work:
            load_mappings(work, [row], at=T0, actor="test")
        return self

    def demand(self, cpu, mem):
        """The operator's own demand profile: CPUs and GiB per GPU; 0 never binds."""
        with self.store.work() as work:
            for key, value in (("cpu_milli", cpu * 1000), ("mem_mib", mem * GIB)):
                put_setting(work, f"demand_{key}_per_gpu", value, since=EPOCH, actor="test")
        return self

    def save(self):
        """Write what was said since the last save."""
        with self.store.work() as work:
            work.append_facts(self.facts)
            if self.samples:
                names = ("node", "gpu_uuid", "mig_uuid", "run_id", "ts", "step_s", "util_ratio")
                columns = {name: [row[i] for row in self.samples] for i, name in enumerate(names)}
                columns |= {"cluster": [self.cluster] * len(self.samples)}
                columns |= {"source": ["test"] * len(self.samples)}
                work.append("sample", columns)
        self.facts, self.samples = [], []
        return self

    @property
    def window(self):
        return Window(T0, at(self.hours))

    def built(self):
        """Save and build the known window."""
        self.save()
        build(self.store, self.cluster, self.window)
        return self

    def refreshed(self):
        """Save and build what is stale; returns the number of hours built."""
        self.save()
        return ensure_built(self.store, self.window)

    def hours_of(self, window=None):
        """Class -> GPU-hours, without zeros; the identity is checked on the way."""
        report = ledger_report(self.store, window or self.window)
        assert report.identity.holds, report.identity
        return {row["class"]: float(row["gpu_hours"]) for row in report.rows if row["gpu_hours"]}

    def cost_of(self, window=None):
        """Class -> cost, without zeros."""
        report = ledger_report(self.store, window or self.window)
        return {row["class"]: row["cost"] for row in report.rows if row["cost"]}

    def by(self, *keys, **more):
        """A cost report's rows by their keys."""
        report = cost_report(self.store, self.window, keys, **more)
        assert report.identity.holds, report.identity
        return {tuple(row[key] for key in keys): row for row in report.rows}

    def ledger_rows(self):
        """Every row of the ledger by natural keys, in a fixed order."""
        return self.store.rows(
            "SELECT p.node, p.gpu_model, r.run_id, h.* EXCLUDE (pool_key, run_key, holder_key, "
            "price_key), pr.price_id FROM ledger_hour h JOIN ledger_pool p USING (pool_key) "
            "LEFT JOIN ledger_run r USING (run_key) LEFT JOIN price pr USING (price_key) "
            "ORDER BY ALL"
        )


@pytest.fixture
def site(store):
    return Site(store)


@pytest.fixture(scope="session")
def reference():
    """The slow reference ledger, which shares no code with the real one."""
    package = types.ModuleType("reference")
    package.__path__ = [str(Path(__file__).with_name("reference"))]
    sys.modules["reference"] = package
    for name in ("history", "ledger"):
        vars(package).update(vars(importlib.import_module(f"reference.{name}")))
    return package
