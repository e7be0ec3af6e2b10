"""GPU time that a process used and no allocation explains: work around the scheduler, or a gap."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from scheduler_advisor.advice.amount import Part
from scheduler_advisor.advice.draft import Draft, Duty, Owner
from scheduler_advisor.advice.rule import Threshold, rule
from scheduler_advisor.advice.site import Site
from scheduler_advisor.figure import Unit, observed

RULE = rule(
    "unattributed",
    risk=1,
    effort="medium",
    needs=("activity",),
    min_gpu_hours=Threshold(4, "GPU-h", "shorter use is a health check or an administrator's test"),
)

_CELLS = """
SELECT cluster, node, gpu_model, hour::DATE AS day, price, cash, sum(unattributed)::BIGINT AS micro
FROM advice_cell WHERE unattributed > 0 GROUP BY ALL ORDER BY ALL
"""
# One row = a user whose processes ran on a node outside of every run.
_USERS = """
SELECT node, user_name, count(*) AS samples FROM process_sample
WHERE run_id IS NULL AND user_name IS NOT NULL AND cluster = $1 AND ts >= $2 AND ts < $3
GROUP BY node, user_name ORDER BY samples DESC, user_name
"""


def find(site: Site) -> Iterator[Draft]:
    """One finding per node."""
    limit = RULE.values(site.goals)["min_gpu_hours"] * 3.6e9
    nodes: dict[tuple[str, str], list[Part]] = defaultdict(list)
    for row in site.rows(_CELLS):
        claim = f"unattributed:{row['cluster']}/{row['node']}"
        nodes[row["cluster"], row["node"]].append(site.part(row, row["micro"], claim=claim))
    for (cluster, node), parts in sorted(nodes.items()):
        hours = sum(part.micro_gpu_s for part in parts) / 3.6e9
        if hours * 3.6e9 < limit:
            continue
        span = [cluster, site.window.since, site.window.until]
        users = [row["user_name"] for row in site.rows(_USERS, span) if row["node"] == node]
        command = site.command("report", "ledger --by node,class")
        yield Draft(
            kind=RULE.kind, cluster=cluster, subject=f"node {node}",
            owner=Owner(user=users[0] if users else None), duty=Duty.PLATFORM,
            params={"node": node, "hours": hours, "users": ", ".join(users[:3]) or "-"},
            parts=(), current=parts,  # knowing the owner wins no GPU-hour back, it bills it
            figures=(observed("unattributed_gpu_hours", hours, Unit.GPU_HOURS, command),),
            samples=len(parts), commands={"verify": command},
        )  # fmt: skip
