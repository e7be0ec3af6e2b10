"""Small jobs that hold a whole GPU each and could share one, by measured memory and activity.

Hour by hour, the small jobs of one owner that run at the same time are packed (first fit, most
active first) on as few GPUs as memory and activity allow; what the others held is the saving.
Interference is not measured here: the room kept free for it is stated, and the risk is said.
Break-even: sharing pays while the jobs slow down by less than what they save, 1 - 1/n.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from scheduler_advisor.advice.amount import Part
from scheduler_advisor.advice.draft import Assumption, Draft, Duty
from scheduler_advisor.advice.rule import Threshold, rule
from scheduler_advisor.advice.run import Run
from scheduler_advisor.advice.site import Site
from scheduler_advisor.figure import Unit, limit, modelled, observed
from scheduler_advisor.handover.kubernetes.slice_policy import FILE as POLICY_FILE
from scheduler_advisor.handover.kubernetes.slice_policy import slice_policy
from scheduler_advisor.handover.slice_rule import FILE, slice_for, slice_rule

RULE = rule(
    "share_gpu",
    risk=3,
    effort="medium",
    needs=("activity", "memory"),
    activity_ratio=Threshold(0.4, "ratio", "two busier jobs would take turns, not share"),
    memory_ratio=Threshold(0.45, "ratio", "two must fit with room for their peaks"),
    fill_activity=Threshold(0.9, "ratio", "a tenth of the GPU stays free for interference"),
    fill_memory=Threshold(0.9, "ratio", "a tenth stays free for contexts and fragmentation"),
    min_run_minutes=Threshold(30, "min", "shorter runs are start-up"),
    min_gpu_hours=Threshold(24, "GPU-h", "a GPU-day: less is not worth the risk"),
    most_per_gpu=Threshold(7, "count", "a MIG-capable GPU has seven slices at most"),
)

# One row = a run on one whole GPU with its largest memory use, mean activity and its GPU's size.
_SMALL = """
WITH used AS (
  SELECT s.cluster, s.run_id, max(s.mem_used_mib) AS mem_mib, max(s.mem_total_mib) AS total_mib,
    avg(s.util_ratio) AS activity, count(s.util_ratio) AS samples
  FROM sample s SEMI JOIN advice_run r ON r.cluster = s.cluster AND r.run_id = s.run_id
    AND r.gpus = 1
  WHERE s.mig_uuid IS NULL GROUP BY s.cluster, s.run_id)
SELECT u.* FROM used u JOIN advice_run r ON r.cluster = u.cluster AND r.run_id = u.run_id
WHERE epoch(least(coalesce(r.end_at, $4), $4) - r.start_at) >= $3 AND u.mem_mib IS NOT NULL
  AND u.activity > 0.01 AND u.activity <= $1 AND u.mem_mib <= $2 * u.total_mib
ORDER BY u.cluster, u.run_id
"""
# One row = one small run's held time in one hour.
_HOURS = """
SELECT cluster, run_id, hour, hour::DATE AS day, node, gpu_model, price, cash,
  sum(used + lost + allocated_idle + allocated_unmeasured)::BIGINT AS held
FROM advice_cell c WHERE run_id IS NOT NULL
  AND EXISTS (SELECT 1 FROM advice_small s WHERE s.cluster = c.cluster AND s.run_id = c.run_id)
GROUP BY ALL HAVING held > 0 ORDER BY hour, held DESC, run_id
"""


@dataclass(slots=True)
class _Bin:
    """One GPU being filled."""

    memory: float = 0.0
    activity: float = 0.0
    rows: list[dict[str, Any]] = field(default_factory=list)


@dataclass(slots=True)
class _Found:
    parts: list[Part] = field(default_factory=list)
    runs: dict[str, Run] = field(default_factory=dict)
    together: int = 1


def find(site: Site) -> Iterator[Draft]:
    """One finding per owner whose small jobs overlap in time."""
    rules = RULE.values(site.goals)
    small = _candidates(site, rules)
    if not small:
        return
    groups: dict[tuple[str, str | None, str | None, str], _Found] = defaultdict(_Found)
    for key, rows in _together(site, small).items():
        *owner, _hour = key
        found = groups[tuple(owner)]
        for gpu in _packed(rows, small, rules):
            if len(gpu.rows) < 2:
                continue
            found.together = max(found.together, len(gpu.rows))
            found.parts += _won(site, gpu.rows)
            for row in gpu.rows:
                run = site.run(row["cluster"], row["run_id"])
                assert run is not None
                found.runs[run.run_id] = run
    for _, found in sorted(groups.items(), key=lambda item: str(item[0])):
        if sum(p.micro_gpu_s for p in found.parts) >= rules["min_gpu_hours"] * 3.6e9:
            yield _draft(site, found, small, rules)


_Small = dict[tuple[str, str], dict[str, Any]]


def _candidates(site: Site, rules: dict[str, float]) -> _Small:
    bounds = [rules["activity_ratio"], rules["memory_ratio"], rules["min_run_minutes"] * 60]
    small: _Small = {}
    for row in site.rows(_SMALL, [*bounds, site.window.until]):
        run = site.run(row["cluster"], row["run_id"])
        if run is not None and not site.goals.never_shared(**run.facts()):
            small[row["cluster"], row["run_id"]] = row
    clusters, runs = [key[0] for key in small], [key[1] for key in small]
    site.work.execute(
        "CREATE OR REPLACE TEMP TABLE advice_small AS "
        "SELECT unnest($1::VARCHAR[]) AS cluster, unnest($2::VARCHAR[]) AS run_id",
        [clusters, runs],
    )
    return small


def _together(site: Site, small: _Small) -> dict[tuple[Any, ...], list[dict[str, Any]]]:
    """Held rows by (cluster, team, user, model, hour): these share without asking others."""
    groups: dict[tuple[Any, ...], list[dict[str, Any]]] = defaultdict(list)
    for row in site.rows(_HOURS):
        run = site.run(row["cluster"], row["run_id"])
        assert run is not None
        owner = (row["cluster"], run.owner.team, run.user_name, row["gpu_model"])
        groups[*owner, row["hour"]].append(row)
    return groups


def _packed(rows: Sequence[dict[str, Any]], small: _Small, rules: dict[str, float]) -> list[_Bin]:
    bins: list[_Bin] = []
    for row in sorted(rows, key=lambda r: -small[r["cluster"], r["run_id"]]["activity"]):
        facts = small[row["cluster"], row["run_id"]]
        need = facts["mem_mib"] / facts["total_mib"]
        for gpu in bins:
            if (
                gpu.memory + need <= rules["fill_memory"]
                and gpu.activity + facts["activity"] <= rules["fill_activity"]
                and len(gpu.rows) < rules["most_per_gpu"]
            ):
                break
        else:
            gpu = _Bin()
            bins.append(gpu)
        gpu.memory += need
        gpu.activity += facts["activity"]
        gpu.rows.append(row)
    return bins


def _won(site: Site, rows: Sequence[dict[str, Any]]) -> list[Part]:
    """All that the GPU's runs held, less the longest of them, each by its share."""
    held = sum(row["held"] for row in rows)
    won = 1 - max(row["held"] for row in rows) / held
    return [
        site.part(row, round(row["held"] * won), claim=f"run:{row['cluster']}/{row['run_id']}")
        for row in rows
    ]


def _draft(site: Site, found: _Found, small: _Small, rules: dict[str, float]) -> Draft:
    runs = sorted(found.runs.values(), key=lambda run: (run.name or "", run.run_id))
    names = sorted({run.label for run in runs})
    facts = [small[run.cluster, run.run_id] for run in runs]
    held = site.held_parts(runs)
    command = site.command("job", runs[0].job_id)
    memory = max(f["mem_mib"] for f in facts) / 1024
    return Draft(
        kind=RULE.kind, cluster=runs[0].cluster,
        subject=f"small jobs of {runs[0].user_name} on {runs[0].gpu_model}",
        owner=runs[0].owner, duty=Duty.TEAM,
        params={"team": runs[0].owner.team or "?", "user": runs[0].user_name or "?",
                "names": ", ".join(names[:4]), "jobs": found.together, "runs": len(runs),
                "project": runs[0].project or runs[0].owner.team or "?",
                "gpu_model": runs[0].gpu_model or "GPU", "mem_gib": memory,
                "total_gib": facts[0]["total_mib"] / 1024,
                "activity": sum(f["activity"] for f in facts) / len(facts)},
        parts=found.parts, current=held,
        figures=(
            observed("largest_memory", max(f["mem_mib"] for f in facts), Unit.MIB, command),
            observed("mean_activity", sum(f["activity"] for f in facts) / len(facts), Unit.RATIO,
                     command),
            limit("gpu_memory", facts[0]["total_mib"], Unit.MIB, command),
            modelled("together", found.together, Unit.COUNT, command),
        ),
        examples=[run.job_id for run in runs[:3]], samples=sum(f["samples"] for f in facts),
        assumptions=(
            Assumption("interference", f"{1 - rules['fill_activity']:.0%}", default=True),
            Assumption("memory_room", f"{1 - rules['fill_memory']:.0%}", default=True),
        ),
        break_even=modelled("slowdown", 1 - 1 / found.together, Unit.RATIO),
        alternatives=("mig", "mps"),
        commands=_commands(runs, facts, command),
    )  # fmt: skip


def _commands(runs: Sequence[Run], facts: Sequence[dict[str, Any]], verify: str) -> dict[str, str]:
    """MPS at once; where a slice holds each of them, also the rules that give them one."""
    apply = (
        "nvidia-cuda-mps-control -d    # jobs then ask: --gres=mps:30 "
        "(gres.conf: Name=mps Count=100)"
    )
    rollback = "echo quit | nvidia-cuda-mps-control"
    used, total = max(f["mem_mib"] for f in facts), min(f["total_mib"] for f in facts)
    profile = slice_for(runs[0].gpu_model or "", total, used)
    named = {run.name for run in runs if run.name}
    if profile is not None and named:
        apply += "\n# or, on GPUs that are cut into slices, for all such jobs to come:\n"
        apply += slice_rule(named, profile).rstrip()
        apply += f"\n# on Kubernetes: kubectl apply -f {POLICY_FILE}, its feature gate must be on\n"
        apply += slice_policy(named, profile).rstrip()
        rollback += f"\n# take the rule out of {FILE}; kubectl delete -f {POLICY_FILE}"
    return {"apply": apply, "verify": verify, "rollback": rollback}
