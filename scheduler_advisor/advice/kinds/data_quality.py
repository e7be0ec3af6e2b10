"""Data quality first: gaps, unmapped holders and unpriced models under every other number."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from scheduler_advisor.advice.amount import MICRO_GPU_S_PER_HOUR, Part
from scheduler_advisor.advice.draft import Draft, Duty, Owner
from scheduler_advisor.advice.rule import Threshold, rule
from scheduler_advisor.advice.run import Run
from scheduler_advisor.advice.site import Site
from scheduler_advisor.figure import Unit, observed

RULE = rule(
    "data_quality",
    risk=0,
    effort="low",
    gap_hours=Threshold(2, "h", "a shorter silence of a node is a restart"),
    scheduler_gap_minutes=Threshold(30, "min", "without a scheduler nobody is known to hold"),
    unmapped_gpu_hours=Threshold(8, "GPU-h", "an hour of a whole node that no team pays for"),
    unpriced_gpu_hours=Threshold(1, "GPU-h", "a model without a price makes every sum too small"),
)

MOST_GAPS = 5  # more gaps of one kind than these are one finding: it happens all the time
MOST_NAMED = 3  # more unmapped accounts or unpriced models are one finding: the list is missing
UNKNOWN_MODEL = "unknown"  # the ledger's name for GPUs whose node says no model
NOBODY = "?"  # where a run names neither account nor user

# One row = one row of unmeasured or unknown hours of one node without a break.
_GAPS = """
WITH hourly AS (
  SELECT cluster, node, hour, sum(allocated_unmeasured)::BIGINT AS unmeasured,
    sum(unknown)::BIGINT AS unknown,
    sum(used + lost + allocated_idle + allocated_unmeasured)::BIGINT AS held
  FROM advice_cell GROUP BY cluster, node, hour),
bad AS (
  SELECT *, CASE WHEN unknown > 0 THEN 'scheduler' ELSE 'telemetry' END AS kind
  FROM hourly WHERE unknown > 0 OR (unmeasured > 0 AND unmeasured * 2 > held)),
island AS (
  SELECT *, hour - INTERVAL 1 HOUR * row_number()
    OVER (PARTITION BY cluster, node, kind ORDER BY hour) AS start FROM bad)
SELECT cluster, kind, node, min(hour) AS since, max(hour) + INTERVAL 1 HOUR AS until,
  count(*) AS hours, sum(unmeasured + unknown)::BIGINT AS micro
FROM island GROUP BY cluster, kind, node, start ORDER BY cluster, kind, since, node
"""
_CELLS = """
SELECT cluster, node, gpu_model, hour::DATE AS day, price, cash,
  sum(allocated_unmeasured + unknown)::BIGINT AS micro
FROM advice_cell WHERE cluster = $1 AND list_contains($2::VARCHAR[], node)
  AND hour >= $3 AND hour < $4 GROUP BY ALL HAVING micro > 0 ORDER BY ALL
"""
# One row = a cluster of whose held GPU time not an hour was measured.
_NEVER = """
SELECT cluster, sum(allocated_unmeasured)::BIGINT AS held FROM advice_cell GROUP BY cluster
HAVING sum(allocated_unmeasured) > 0 AND sum(used + lost + allocated_idle) = 0 ORDER BY cluster
"""
_SILENT_CELLS = """
SELECT cluster, node, gpu_model, hour::DATE AS day, price, cash,
  sum(allocated_unmeasured)::BIGINT AS micro
FROM advice_cell WHERE cluster = $1 GROUP BY ALL HAVING micro > 0 ORDER BY ALL
"""
_UNPRICED = """
SELECT cluster, gpu_model, node, hour::DATE AS day, price, cash,
  sum(used + lost + allocated_idle + allocated_unmeasured + failed_held + unattributed + failed
    + drained + unknown + reserved + gang_wait + stranded_cpu + stranded_mem + stranded_shape
    + stranded_topology + policy_blocked + free)::BIGINT AS micro
FROM advice_cell WHERE price IS NULL GROUP BY ALL HAVING micro > 0 ORDER BY ALL
"""


def find(site: Site) -> Iterator[Draft]:
    """One finding per gap, per unmapped account and per unpriced model."""
    rules = RULE.values(site.goals)
    yield from _gaps(site, rules)
    yield from _unmapped(site, rules)
    yield from _unpriced(site, rules)


def _gaps(site: Site, rules: dict[str, float]) -> Iterator[Draft]:
    together: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for row in site.rows(_GAPS):
        least = rules["scheduler_gap_minutes"] / 60 if row["kind"] == "scheduler" else None
        if row["hours"] >= (least or rules["gap_hours"]):
            key = (row["cluster"], row["kind"], row["since"], row["until"])
            together.setdefault(key, []).append(row)
    silent = {row["cluster"]: row["held"] for row in site.rows(_NEVER)}
    yield from (_never(site, cluster) for cluster in sorted(silent))
    spans = [key for key in together if not (key[1] == "telemetry" and key[0] in silent)]
    often = Counter((cluster, kind) for cluster, kind, _, _ in spans)
    for cluster, kind in sorted(name for name, count in often.items() if count > MOST_GAPS):
        own = [key for key in spans if key[:2] == (cluster, kind)]
        yield _many(site, (cluster, kind), [(key, together[key]) for key in own])
    spans = [key for key in spans if often[key[:2]] <= MOST_GAPS]
    for cluster, kind, since, until in spans:
        nodes = [row["node"] for row in together[cluster, kind, since, until]]
        cells = site.rows(_CELLS, [cluster, nodes, since, until])
        claim = f"unknown:{cluster}"
        parts = [site.part(cell, cell["micro"], claim=claim) for cell in cells]
        hours = (until - since).total_seconds() / 3600
        named = ", ".join(nodes[:3]) + (f" +{len(nodes) - 3}" if len(nodes) > 3 else "")
        command = "unstrand doctor"
        yield Draft(
            kind=RULE.kind, cluster=cluster, owner=Owner(), duty=Duty.PLATFORM, first=True,
            subject=f"{kind} gap of {nodes[0] if len(nodes) == 1 else 'several'} {since:%m-%d %H}",
            variant=f"{kind}_gap",
            params={"nodes": named, "hours": hours,
                    "since": f"{site.window.local(since):%Y-%m-%d %H:%M}",
                    "gpu_hours": _hours(parts)},
            parts=(), current=parts,
            figures=(observed("gap_h", hours, Unit.HOURS, command),), samples=len(nodes),
            commands={"verify": command},
        )  # fmt: skip


def _never(site: Site, cluster: str) -> Draft:
    """No node has ever sent a sample in the window: one finding, not one for each job."""
    cells = site.rows(_SILENT_CELLS, [cluster])
    parts = [site.part(cell, cell["micro"], claim=f"unknown:{cluster}") for cell in cells]
    hours = _hours(parts)
    return Draft(
        kind=RULE.kind, cluster=cluster, owner=Owner(), duty=Duty.PLATFORM, first=True,
        subject="never measured", variant="never_measured",
        params={"cluster": cluster, "gpu_hours": hours}, parts=(), current=parts,
        figures=(observed("unmeasured_gpu_hours", hours, Unit.GPU_HOURS, "unstrand doctor"),),
        samples=len(cells), commands={"verify": "unstrand doctor"},
    )  # fmt: skip


def _many(
    site: Site, of: tuple[str, str], gaps: list[tuple[tuple[Any, ...], list[dict[str, Any]]]]
) -> Draft:
    """More gaps than a reader wants to see one by one: all of a kind together, longest named."""
    cluster, kind = of
    micro, nodes, hours = 0, Counter[str](), 0.0
    parts: list[Part] = []
    for (_, _, since, until), rows in gaps:
        names = [row["node"] for row in rows]
        cells = site.rows(_CELLS, [cluster, names, since, until])
        parts += [site.part(cell, cell["micro"], claim=f"unknown:{cluster}") for cell in cells]
        micro += sum(row["micro"] for row in rows)
        nodes.update({row["node"]: row["hours"] for row in rows})
        hours = max(hours, (until - since).total_seconds() / 3600)
    worst = ", ".join(name for name, _ in nodes.most_common(3))
    return Draft(
        kind=RULE.kind, cluster=cluster, owner=Owner(), duty=Duty.PLATFORM, first=True,
        subject=f"{kind} gaps", variant=f"{kind}_gaps",
        params={"count": len(gaps), "nodes": len(nodes), "worst": worst, "hours": hours,
                "gpu_hours": micro / MICRO_GPU_S_PER_HOUR},
        parts=(), current=parts,
        figures=(observed("gap_h", hours, Unit.HOURS, "unstrand doctor"),), samples=len(gaps),
        commands={"verify": "unstrand doctor"},
    )  # fmt: skip


def _unmapped(site: Site, rules: dict[str, float]) -> Iterator[Draft]:
    """One finding per account; where many are unmapped, one about all of them."""
    accounts: dict[tuple[str, str], list[Run]] = {}
    for run in site.runs():
        if run.team is None and run.start_at is not None:
            accounts.setdefault((run.cluster, run.account or run.user_name or NOBODY), []).append(
                run
            )
    for cluster in sorted({cluster for cluster, _ in accounts}):
        own = {account: runs for (name, account), runs in accounts.items() if name == cluster}
        if len(own) > MOST_NAMED:
            together = [run for runs in own.values() for run in runs]
            named = _named({account: len(runs) for account, runs in own.items()})
            yield from _unmapped_account(site, rules, cluster, named, together)
            continue
        for account, runs in sorted(own.items()):
            yield from _unmapped_account(site, rules, cluster, account, runs)


def _unmapped_account(
    site: Site, rules: dict[str, float], cluster: str, account: str, runs: list[Run]
) -> Iterator[Draft]:
    held = site.held_parts(runs)
    hours = _hours(held)
    if hours < rules["unmapped_gpu_hours"]:
        return
    users = sorted({run.user_name for run in runs if run.user_name})
    shown = ", ".join(users[:3]) + (f" +{len(users) - 3}" if len(users) > 3 else "")
    command = "unstrand org check"
    yield Draft(
        kind=RULE.kind, cluster=cluster, first=True,
        subject="unmapped accounts" if "+" in account else f"unmapped {account}",
        owner=Owner(user=users[0] if len(users) == 1 else None), duty=Duty.PLATFORM,
        variant="unnamed" if account == NOBODY else "unmapped",
        params={"account": account, "users": shown or "-", "gpu_hours": hours,
                "runs": len(runs)},
        parts=(), current=held,
        figures=(observed("unmapped_gpu_hours", hours, Unit.GPU_HOURS, command),),
        examples=[run.job_id for run in runs[:3]], samples=len(runs),
        commands={"apply": "unstrand org load org.csv", "verify": command},
    )  # fmt: skip


def _unpriced(site: Site, rules: dict[str, float]) -> Iterator[Draft]:
    """One finding per model; where many have no price, one about all of them."""
    clusters: dict[str, dict[str, list[Part]]] = {}
    for row in site.rows(_UNPRICED):
        claim = f"unpriced:{row['cluster']}/{row['gpu_model']}"
        part = site.part(row, row["micro"], claim=claim)
        clusters.setdefault(row["cluster"], {}).setdefault(row["gpu_model"], []).append(part)
    for cluster, models in sorted(clusters.items()):
        if len(models) > MOST_NAMED:
            named = _named({model: _hours(parts) for model, parts in models.items()})
            models = {named: [part for parts in models.values() for part in parts]}
        for model, parts in sorted(models.items()):
            if _hours(parts) >= rules["unpriced_gpu_hours"]:
                yield _unpriced_model(cluster, model, parts)


def _named(sizes: Mapping[str, float]) -> str:
    """The two largest by name, and how many more there are."""
    most = sorted(sizes, key=lambda name: (-sizes[name], name))
    return f"{', '.join(most[:2])} +{len(most) - 2}"


def _hours(parts: list[Part]) -> float:
    return sum(part.micro_gpu_s for part in parts) / MICRO_GPU_S_PER_HOUR


def _unpriced_model(cluster: str, model: str, parts: list[Part]) -> Draft:
    command = "unstrand price check"
    hours = _hours(parts)
    return Draft(
        kind=RULE.kind, cluster=cluster,
        subject="unpriced models" if "+" in model else f"unpriced {model}", first=True,
        owner=Owner(), duty=Duty.PLATFORM,
        variant="no_model" if model == UNKNOWN_MODEL else "unpriced",
        params={"gpu_model": model, "gpu_hours": hours},
        parts=(), current=parts,
        figures=(observed("unpriced_gpu_hours", hours, Unit.GPU_HOURS, command),),
        samples=len(parts),
        commands={"apply": "unstrand price load prices.csv", "verify": command},
    )  # fmt: skip
