"""The scheduler's default that hands a job the memory of the whole node.

Seen as jobs that hold a part of a node's GPUs and (nearly) all of its memory, from several people:
one such job is somebody's choice, many are a default. Stranded memory with such a causer counts.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from scheduler_advisor.advice.draft import Draft, Duty, Owner
from scheduler_advisor.advice.rule import Threshold, rule
from scheduler_advisor.advice.site import Site
from scheduler_advisor.advice.stranding import NodeShape, caused, node_shapes, stranded_part
from scheduler_advisor.figure import Unit, observed

RULE = rule(
    "whole_node_memory",
    risk=2,
    effort="low",
    needs=("scheduler",),
    whole_ratio=Threshold(
        0.95, "ratio", "the rest is what the node keeps for its operating system"
    ),
    min_jobs=Threshold(3, "count", "one or two can be meant"),
    min_share=Threshold(0.5, "ratio", "of part-node jobs: a default touches most of them"),
    min_gpu_hours=Threshold(1, "GPU-h", "a wrong default is worth fixing before it costs"),
)

# One row = one run's part of a node where it does not hold all GPUs.
_PARTIAL = """
SELECT a.cluster, a.run_id, a.node, sum(a.gpus)::INTEGER AS gpus, sum(a.mem_mib)::BIGINT AS mem_mib
FROM allocation a SEMI JOIN advice_run r ON r.cluster = a.cluster AND r.run_id = a.run_id
WHERE a.mem_mib IS NOT NULL GROUP BY a.cluster, a.run_id, a.node ORDER BY ALL
"""


def find(site: Site) -> Iterator[Draft]:
    """At most one finding per cluster."""
    rules = RULE.values(site.goals)
    shapes = node_shapes(site)
    partial = [
        row
        for row in site.rows(_PARTIAL)
        if (shape := shapes.get((row["cluster"], row["node"]))) and row["gpus"] < shape.gpus
    ]
    for cluster in sorted({row["cluster"] for row in partial}):
        own = [row for row in partial if row["cluster"] == cluster]
        whole = [row for row in own if _whole(row, shapes, rules["whole_ratio"])]
        runs = {row["run_id"] for row in whole}
        if len(runs) < max(rules["min_jobs"], rules["min_share"] * len(own)):
            continue
        rows = [row for row in caused(site, ("stranded_mem",)) if row["run_id"] in runs]
        if sum(row["micro"] for row in rows) >= rules["min_gpu_hours"] * 3.6e9:
            yield _draft(site, cluster, whole, rows, shapes)


def _whole(row: dict[str, Any], shapes: dict[tuple[str, str], NodeShape], ratio: float) -> bool:
    total = shapes[row["cluster"], row["node"]].mem_mib
    return bool(total and row["mem_mib"] >= ratio * total)


def _draft(
    site: Site,
    cluster: str,
    whole: list[dict[str, Any]],
    rows: list[dict[str, Any]],
    shapes: dict[tuple[str, str], NodeShape],
) -> Draft:
    # The hand-over knows policies, whose module loads the simulator: only where it is needed.
    from scheduler_advisor.handover.memory_default import memory_default

    shape = shapes[cluster, whole[0]["node"]]
    per_gpu_gib = int(shape.mem_mib * 0.95 / shape.gpus / 1024)
    stranded: dict[str, int] = {}
    for row in rows:
        stranded[row["run_id"]] = stranded.get(row["run_id"], 0) + row["micro"]
    worst = sorted(stranded, key=lambda run_id: (-stranded[run_id], run_id))
    named = [run for run_id in worst if (run := site.run(cluster, run_id)) is not None]
    users = sorted({run.user_name for run in named if run.user_name})
    command = site.command("report", "stranding")
    return Draft(
        kind=RULE.kind, cluster=cluster, subject="memory default", owner=Owner(),
        duty=Duty.PLATFORM,
        params={"jobs": len({row["run_id"] for row in whole}), "users": ", ".join(users[:3]) or "-",
                "mem_gib": shape.mem_mib / 1024, "per_gpu_gib": per_gpu_gib,
                "stranded_gpu_hours": sum(stranded.values()) / 3.6e9},
        parts=[stranded_part(site, row) for row in rows],
        figures=(
            observed("whole_memory_jobs", len({r["run_id"] for r in whole}), Unit.COUNT, command),
        ),
        examples=[run.job_id for run in named[:3]], samples=len(whole),
        commands=memory_default(site.work, cluster, site.window.until, per_gpu_gib * 1024),
        alternatives=("over_request",),
    )  # fmt: skip
