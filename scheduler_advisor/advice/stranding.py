"""Stranded GPU time with the run that caused it, from the ledger's causes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from scheduler_advisor.advice.amount import Part
from scheduler_advisor.advice.site import Site

# One row = stranded GPU time that one run caused on one node's pool on one day, at one price.
_CAUSED = """
SELECT p.cluster, p.node, p.gpu_model, r.run_id, c.class, c.hour::DATE AS day, c.rule,
  CASE WHEN d.currency = w.currency THEN d.amount END AS price,
  bool_or(list_contains(g.models, p.gpu_model)
    OR (NOT coalesce(o.owned, true) AND d.purchase_type IN ('on_demand', 'spot'))) AS cash,
  sum(c.gpu_us)::BIGINT AS micro, max(c.release_cpu_milli) AS release_cpu_milli,
  max(c.release_mem_mib) AS release_mem_mib
FROM ledger_cause c JOIN ledger_pool p ON p.pool_key = c.pool_key
JOIN ledger_run r ON r.run_key = c.run_key CROSS JOIN advice_window w CROSS JOIN advice_give_back g
LEFT JOIN price d ON d.price_key = c.price_key
LEFT JOIN advice_owned o ON o.cluster = p.cluster AND o.node = p.node
WHERE c.role = 'causer' AND list_contains($1::VARCHAR[], c.class)
  AND c.hour >= w.since AND c.hour < w.until AND (w.cluster IS NULL OR p.cluster = w.cluster)
GROUP BY p.cluster, p.node, p.gpu_model, r.run_id, c.class, day, c.rule, price
ORDER BY p.cluster, r.run_id, p.node, day, c.class, price
"""


@dataclass(frozen=True, slots=True)
class NodeShape:
    """What a node has in all."""

    gpus: int
    cpus: int
    mem_mib: int


def caused(site: Site, classes: tuple[str, ...]) -> list[dict[str, Any]]:
    """Rows of `_CAUSED` for ``classes``."""
    return site.rows(_CAUSED, [list(classes)])


def stranded_part(site: Site, row: dict[str, Any]) -> Part:
    """One row of `caused` as a part; the same node, class and causer are won back once."""
    claim = f"{row['class']}:{row['cluster']}/{row['node']}/{row['run_id']}"
    return site.part(row, row["micro"], claim=claim)


def node_shapes(site: Site) -> dict[tuple[str, str], NodeShape]:
    """Every node's newest totals."""
    rows = site.rows(
        "SELECT cluster, node, sum(gpus)::INTEGER AS gpus, max(cpus) AS cpus, "
        "max(mem_mib) AS mem_mib "
        "FROM node WHERE valid_from < $1 AND coalesce(valid_to, $1) >= $1 GROUP BY cluster, node",
        [site.window.until],
    )
    return {
        (r["cluster"], r["node"]): NodeShape(r["gpus"], r["cpus"] or 0, r["mem_mib"] or 0)
        for r in rows
    }
