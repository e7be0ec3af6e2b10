"""Drained nodes that nobody has come back to.

Break-even: repair pays as soon as it takes fewer GPU-hours of staff cost than the node loses.
"""

from __future__ import annotations

from collections.abc import Iterator

from scheduler_advisor.advice.draft import Draft, Duty, Horizon, Owner
from scheduler_advisor.advice.rule import Threshold, rule
from scheduler_advisor.advice.site import Site
from scheduler_advisor.figure import Unit, observed

RULE = rule(
    "drained_nodes",
    risk=1,
    effort="medium",
    needs=("scheduler",),
    days=Threshold(3, "d", "a planned repair is over by then; what is left has been forgotten"),
)

# One row = a node that is out of service at the end of the window, and since when.
_DRAINED = """
SELECT cluster, node, min(since) AS since, arg_max(reason, since) AS reason,
  arg_max(state, since) AS state, arg_max(user_name, since) AS user_name
FROM node_state
WHERE state IN ('drained', 'maintenance', 'down', 'failed') AND since < $1
  AND coalesce(until, $1) >= $1 AND ($2::VARCHAR IS NULL OR cluster = $2)
GROUP BY cluster, node
HAVING epoch($1 - min(since)) >= $3
ORDER BY cluster, node
"""


def find(site: Site) -> Iterator[Draft]:
    """One finding per node."""
    days = RULE.values(site.goals)["days"]
    for row in site.rows(_DRAINED, [site.window.until, site.cluster, days * 86400]):
        parts = site.node_parts(row["cluster"], row["node"], ("drained", "failed"), row["since"])
        if not parts:
            continue
        out_days = (site.window.until - row["since"]).total_seconds() / 86400
        gpus = site.node_gpus(row["cluster"], row["node"])
        command = site.command("report", "ledger --by node,class")
        yield Draft(
            kind=RULE.kind, cluster=row["cluster"], subject=f"node {row['node']}",
            owner=Owner(), duty=Duty.PLATFORM, horizon=Horizon.ONGOING,
            params={"node": row["node"], "gpus": gpus, "days": out_days,
                    "gpu_model": parts[0].gpu_model or "GPU", "reason": row["reason"] or "-",
                    "state": row["state"], "user": row["user_name"] or "-"},
            parts=parts,
            figures=(
                observed("out_days", out_days, Unit.DAYS, command),
                observed("gpus_out", gpus, Unit.GPUS, command),
            ),
            samples=len(parts),
            commands={
                "apply": f"scontrol update nodename={row['node']} state=resume",
                "verify": f"scontrol show node {row['node']}",
                "rollback": f"scontrol update nodename={row['node']} state=drain "
                            f'reason="{row["reason"] or "repair"}"',
            },
        )  # fmt: skip
