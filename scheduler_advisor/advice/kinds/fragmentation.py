"""Small jobs spread over big nodes, so that none is left whole for the jobs that need one.

Counted while such a job waited: the free GPUs beside small jobs on nodes that could have held it.
Of that, the share of small starts for which a fuller node had room is what packing would win, and
in every hour no more than what those jobs would have taken that waited for GPUs in one piece.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from datetime import datetime, timedelta
from decimal import Decimal

from scheduler_advisor.advice.amount import MICRO_GPU_S_PER_HOUR, Part
from scheduler_advisor.advice.cut_up import pool_hours, queues_of_nodes, read_queues, wanted
from scheduler_advisor.advice.draft import Assumption, Draft, Duty, Owner
from scheduler_advisor.advice.rule import Threshold, rule
from scheduler_advisor.advice.run import Run
from scheduler_advisor.advice.site import Site
from scheduler_advisor.figure import Unit, modelled, observed
from scheduler_advisor.measurements.breakers import Breaker, BreakerReport, breakers
from scheduler_advisor.measurements.packing import Packing, packing

RULE = rule(
    "fragmentation",
    risk=2,
    effort="low",
    needs=("scheduler",),
    avoidable_ratio=Threshold(0.3, "ratio", "below, small jobs are packed about as well as can be"),
    min_gpu_hours=Threshold(100, "GPU-h", "half a node for a day: a single queue jam is chance"),
    min_starts=Threshold(20, "count", "with fewer starts the share is noise"),
)


def find(site: Site) -> Iterator[Draft]:
    """At most one finding per cluster; the owner is the team that breaks up most."""
    rules = RULE.values(site.goals)
    for cluster, placed in packing(site.work, site.window, site.cluster).items():
        if placed.starts < rules["min_starts"] or placed.avoidable_ratio < rules["avoidable_ratio"]:
            continue
        report = breakers(site.work, site.window, cluster)
        cells = _hurt(report)
        hurt = list(_parts(site, cells))
        read_queues(site)
        share = _won(site, cluster, cells, placed.avoidable_ratio)
        won = [part.scaled(share[cell]) for part, cell in zip(hurt, cells, strict=True)]
        if sum(part.micro_gpu_s for part in won) >= rules["min_gpu_hours"] * 3.6e9:
            yield _draft(site, cluster, report, placed, (hurt, won))


_Cell = tuple[str, str, datetime]  # cluster, node, hour


def _hurt(report: BreakerReport) -> dict[_Cell, float]:
    """The hurt time in GPU-seconds by node and hour."""
    cells: dict[_Cell, float] = defaultdict(float)
    for hurt in report.hurt:
        start = hurt.since
        while start < hurt.until:
            full = start.replace(minute=0, second=0, microsecond=0)
            stop = min(full + timedelta(hours=1), hurt.until)
            cells[hurt.cluster, hurt.node, full] += hurt.free * (stop - start).total_seconds()
            start = stop
    return dict(sorted(cells.items()))


def _won(
    site: Site, cluster: str, cells: dict[_Cell, float], avoidable: float
) -> dict[_Cell, float]:
    """The share of each cell that packing wins: what could be avoided, as far as jobs of the
    queues that its node serves, and of all queues together, would have taken it."""
    runs: dict[str | None, list[Run]] = defaultdict(list)
    for run in site.runs():
        if run.cluster == cluster:
            runs[run.queue].append(run)
    serves = queues_of_nodes(site, cluster)
    asked = {
        queue: wanted(site, pool_hours(site, cluster, queue), own) for queue, own in runs.items()
    }
    share = dict.fromkeys(cells, avoidable)
    for pool in sorted({serves.get(node, frozenset()) for _, node, _ in cells}, key=sorted):
        own = {
            queue: by_hour
            for queue, by_hour in asked.items()
            if queue is None or not pool or queue in pool
        }
        _cap(share, {c: s for c, s in cells.items() if serves.get(c[1]) == pool}, own)
    _cap(share, cells, asked)
    return share


def _cap(
    share: dict[_Cell, float],
    cells: dict[_Cell, float],
    asked: dict[str | None, dict[datetime, float]],
) -> None:
    """Lower the shares of ``cells`` until no hour wins more than was asked for in it."""
    won: dict[datetime, float] = defaultdict(float)
    for cell, seconds in cells.items():
        won[cell[2]] += seconds * share[cell]
    for cell in cells:
        most = sum(by_hour.get(cell[2], 0.0) for by_hour in asked.values())
        if won[cell[2]] > most:
            share[cell] *= most / won[cell[2]]


def _parts(site: Site, cells: dict[_Cell, float]) -> Iterator[Part]:
    """The cells at their nodes' models' latest prices."""
    models = {
        (r["cluster"], r["node"]): r["gpu_model"]
        for r in site.rows("SELECT DISTINCT cluster, node, gpu_model FROM ledger_pool")
    }
    for (cluster, node, hour), seconds in cells.items():
        model = models.get((cluster, node))
        price = site.prices().get(model or "")
        micro = round(seconds * 1_000_000)
        yield Part(
            claim=site.free_claim(cluster, node, hour), day=hour.date(), micro_gpu_s=micro,
            cost=None if price is None else price * Decimal(micro) / MICRO_GPU_S_PER_HOUR,
            cluster=cluster, node=node, gpu_model=model,
        )  # fmt: skip


def _team(site: Site, found: Breaker) -> str | None:
    run = site.run(found.cluster, found.run_id)
    return None if run is None else run.owner.team


def _draft(
    site: Site,
    cluster: str,
    report: BreakerReport,
    placed: Packing,
    parts: tuple[list[Part], list[Part]],
) -> Draft:
    by_team: dict[str, float] = defaultdict(float)
    for found in report.breakers:
        by_team[_team(site, found) or "?"] += found.hurt_gpu_hours
    team, most = max(by_team.items(), key=lambda item: (item[1], item[0]))
    hour = max(report.by_hour, key=lambda h: (report.by_hour[h], -h))
    command = site.command("report", "breakers")
    return Draft(
        kind=RULE.kind, cluster=cluster, subject="placement of small jobs",
        owner=Owner(team=team), duty=Duty.PLATFORM,
        params={"team": team, "share": most / (sum(by_team.values()) or 1.0),
                "avoidable": placed.avoidable_ratio, "starts": placed.starts, "hour": hour,
                "time_zone": site.window.time_zone, "hurt_gpu_hours": report.hurt_gpu_hours},
        parts=parts[1], current=parts[0],
        at_most=[part.scaled(placed.avoidable_ratio) for part in parts[0]],
        figures=(
            observed("broken_gpu_hours", report.broken_gpu_hours, Unit.GPU_HOURS, command),
            observed("hurt_gpu_hours", report.hurt_gpu_hours, Unit.GPU_HOURS, command),
            modelled("avoidable_starts", placed.avoidable_ratio, Unit.RATIO, command),
        ),
        examples=[b.job_id for b in report.breakers[:3] if b.job_id is not None],
        samples=placed.starts,
        assumptions=(Assumption("packing_only_gpus", "1", default=True),),
        break_even=modelled("avoidable_ratio", placed.avoidable_ratio, Unit.RATIO),
        alternatives=("gang_wait",),
        commands={
            "apply": "PartitionName=... LLN=NO    # and SelectTypeParameters without CR_LLN; "
                     "Kubernetes: NodeResourcesFit strategy MostAllocated",
            "verify": command,
            "rollback": "PartitionName=... LLN=YES",
        },
    )  # fmt: skip
