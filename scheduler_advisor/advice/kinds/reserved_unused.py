"""Reservations and node leases that were kept and not used."""

from __future__ import annotations

from collections.abc import Iterator

from scheduler_advisor.advice.amount import Part
from scheduler_advisor.advice.draft import Draft, Duty, Owner
from scheduler_advisor.advice.rule import Threshold, rule
from scheduler_advisor.advice.site import Site
from scheduler_advisor.figure import Unit, observed

RULE = rule(
    "reserved_unused",
    risk=1,
    effort="low",
    needs=("scheduler",),
    unused_ratio=Threshold(0.5, "ratio", "half used is a reservation that was needed"),
    min_gpu_hours=Threshold(24, "GPU-h", "a GPU-day: less is not worth a meeting"),
)

# One row = a reservation that touched the window, with what its accounts held on its nodes.
_RESERVATIONS = """
SELECT v.cluster, v.name, list(DISTINCT v.node ORDER BY v.node) AS nodes,
  any_value(v.accounts) AS accounts, min(v.since) AS since, max(coalesce(v.until, $1)) AS until,
  bool_or(coalesce(v.until, $1) >= $1) AS still
FROM reservation v
WHERE v.since < $1 AND coalesce(v.until, $1) > $2 AND ($3::VARCHAR IS NULL OR v.cluster = $3)
GROUP BY v.cluster, v.name
ORDER BY v.cluster, v.name
"""


def find(site: Site) -> Iterator[Draft]:
    """One finding per reservation."""
    rules = RULE.values(site.goals)
    span = [site.window.until, site.window.since, site.cluster]
    for row in site.rows(_RESERVATIONS, span):
        unused: list[Part] = []
        held: list[Part] = []
        for node in row["nodes"]:
            end = min(row["until"], site.window.until)
            unused += site.node_parts(row["cluster"], node, ("reserved",), row["since"], end)
            held += site.node_parts(row["cluster"], node, ("held",), row["since"], end)
        empty, busy = (sum(part.micro_gpu_s for part in parts) for parts in (unused, held))
        if empty < rules["min_gpu_hours"] * 3.6e9:
            continue
        if empty / (empty + busy) < rules["unused_ratio"]:
            continue
        team = site.team_of(row["cluster"], row["accounts"])
        command = site.command("report", "ledger --by node,class")
        yield Draft(
            kind=RULE.kind, cluster=row["cluster"], subject=f"reservation {row['name']}",
            owner=Owner(team=team), duty=Duty.TEAM if team else Duty.PLATFORM,
            params={"name": row["name"], "team": team or "-", "nodes": ", ".join(row["nodes"]),
                    "unused_ratio": empty / (empty + busy), "unused_gpu_hours": empty / 3.6e9,
                    "still": int(row["still"])},
            parts=unused,
            figures=(
                observed("reserved_unused_gpu_hours", empty / 3.6e9, Unit.GPU_HOURS, command),
                observed("reserved_used_gpu_hours", busy / 3.6e9, Unit.GPU_HOURS, command),
            ),
            samples=len(unused),
            commands={"apply": f"scontrol delete reservationname={row['name']}",
                      "verify": f"scontrol show reservation {row['name']}",
                      "rollback": f"scontrol create reservation reservationname={row['name']} "
                                  f"nodes={','.join(row['nodes'])} starttime=now "
                                  "duration=UNLIMITED "
                                  f"accounts={','.join(row['accounts'] or ['...'])}"},
        )  # fmt: skip
