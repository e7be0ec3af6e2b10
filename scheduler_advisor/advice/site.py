"""The facts that the kinds of advice look at, over one window: the ledger's cells and the runs.

`advice_cell`: one row = GPU time of one run (or of nobody) on one node's pool in one hour at one
price, over [cell_since, cell_until); class columns in micro-GPU-seconds. `advice_run` (see `runs`):
one row = one GPU run.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from decimal import Decimal
from functools import cached_property
from typing import Any

from collector.store import Work
from scheduler_advisor.advice.amount import MICRO_GPU_S_PER_HOUR, Part
from scheduler_advisor.advice.run import Run
from scheduler_advisor.advice.runs import load_runs
from scheduler_advisor.advice.teams import Teams
from scheduler_advisor.goals import Goals
from scheduler_advisor.measurements.checkpoints import CheckpointClass, checkpoint_classes
from scheduler_advisor.window import Window

HELD = ("used", "lost", "allocated_idle", "allocated_unmeasured", "failed_held", "unattributed")
NOT_HELD = (
    "failed", "drained", "unknown", "reserved", "gang_wait", "stranded_cpu", "stranded_mem",
    "stranded_shape", "stranded_topology", "policy_blocked", "free",
)  # fmt: skip
CLASSES = HELD + NOT_HELD

# The window as a table, because a view takes no parameters.
_WINDOW = """
CREATE OR REPLACE TEMP TABLE advice_window AS
SELECT $1::TIMESTAMP AS since, $2::TIMESTAMP AS until, $3::VARCHAR AS cluster,
  $4::VARCHAR AS currency
"""
_OWNED = """
CREATE OR REPLACE TEMP TABLE advice_owned AS
SELECT cluster, node, arg_max(owned, valid_from) AS owned FROM node GROUP BY cluster, node
"""
_CELLS = """
CREATE OR REPLACE TEMP TABLE advice_cell AS
SELECT p.cluster, p.node, p.gpu_model, r.run_id, h.hour,
  CASE WHEN d.currency = w.currency THEN d.amount END AS price,
  list_contains(g.models, p.gpu_model)
    OR (NOT coalesce(o.owned, true) AND d.purchase_type IN ('on_demand', 'spot')) AS cash,
  min(h.since) AS cell_since, max(h.until) AS cell_until, {columns}
FROM ledger_hour h JOIN ledger_pool p ON p.pool_key = h.pool_key
CROSS JOIN advice_window w CROSS JOIN advice_give_back g
LEFT JOIN ledger_run r ON r.run_key = h.run_key
LEFT JOIN price d ON d.price_key = h.price_key
LEFT JOIN advice_owned o ON o.cluster = p.cluster AND o.node = p.node
WHERE h.hour >= w.since AND h.hour < w.until AND (w.cluster IS NULL OR p.cluster = w.cluster)
GROUP BY ALL
"""
_CURRENCY = """
SELECT d.currency FROM ledger_hour h JOIN price d ON d.price_key = h.price_key
WHERE h.hour >= $1 AND h.hour < $2 GROUP BY d.currency ORDER BY count(*) DESC, d.currency LIMIT 1
"""
# One row = one class of one run or node on one day; $1 = claim prefix is set by the caller.
_RUN_PARTS = """
SELECT cluster, run_id, node, gpu_model, hour::DATE AS day, price, cash, {columns}
FROM advice_cell WHERE cluster = $1 AND run_id = $2 AND hour >= $3 AND hour < $4
GROUP BY ALL ORDER BY ALL
"""
_HELD_PARTS = """
SELECT c.cluster, c.run_id, node, gpu_model, hour::DATE AS day, price, cash,
  sum({held})::BIGINT AS micro
FROM advice_cell c SEMI JOIN (
  SELECT unnest($1::VARCHAR[]) AS cluster, unnest($2::VARCHAR[]) AS run_id) r
  ON r.cluster = c.cluster AND r.run_id = c.run_id
GROUP BY ALL ORDER BY ALL
"""
_NODE_PARTS = """
SELECT cluster, node, gpu_model, hour::DATE AS day, price, cash, {columns}
FROM advice_cell WHERE cluster = $1 AND node = $2 AND hour >= $3 AND hour < $4
GROUP BY ALL ORDER BY ALL
"""
_SUMS = ", ".join(f"sum({name})::BIGINT AS {name}" for name in CLASSES)


class Site:
    """One window of one store with everything that rules ask for; lives in one unit of work."""

    def __init__(
        self, work: Work, window: Window, goals: Goals, cluster: str | None = None
    ) -> None:
        self.work = work
        self.window = window
        self.goals = goals
        self.cluster = cluster
        self.currency: str | None = work.value(_CURRENCY, [window.since, window.until])
        work.execute(_WINDOW, [window.since, window.until, cluster, self.currency])
        work.execute(
            "CREATE OR REPLACE TEMP TABLE advice_give_back AS SELECT $1::VARCHAR[] AS models",
            [list(goals.capacity.give_back)],
        )
        work.execute(_OWNED)
        work.execute(_CELLS.format(columns=_SUMS.replace("sum(", "sum(h.")))
        self._teams = Teams(work)
        self._runs = load_runs(work, window, cluster, self._teams)
        self._parts: dict[tuple[Any, ...], list[dict[str, Any]]] = {}

    def rows(self, sql: str, params: Sequence[object] = ()) -> list[dict[str, Any]]:
        """Rows of one query over the site's tables."""
        return self.work.rows(sql, params)

    def runs(self) -> list[Run]:
        """Every GPU run that touched the window, by cluster, start and run id."""
        return list(self._runs.values())

    def run(self, cluster: str, run_id: str) -> Run | None:
        """One run, or None when its job record is not known."""
        return self._runs.get((cluster, run_id))

    def team_of(self, cluster: str, accounts: Sequence[str] | None) -> str | None:
        """The team of the first of ``accounts``, if there is one."""
        if not accounts:
            return None
        team = self._teams.of(cluster, self.window.until, account=accounts[0])
        return team or accounts[0]

    @cached_property
    def _prices(self) -> dict[str, Decimal]:
        found = self.rows(
            "SELECT gpu_model, arg_max(price, hour) AS price FROM advice_cell "
            "WHERE price IS NOT NULL GROUP BY gpu_model"
        )
        return {row["gpu_model"]: row["price"] for row in found}

    @cached_property
    def checkpoints(self) -> list[CheckpointClass]:
        """The checkpoint classes of the window; three kinds look at them."""
        return checkpoint_classes(self.work, self.window, self.cluster)

    def prices(self) -> dict[str, Decimal]:
        """The latest price per GPU-hour of each priced model in the window."""
        return self._prices

    def node_gpus(self, cluster: str, node: str) -> int:
        """Installed GPUs of a node at the end of the window."""
        return int(
            self.work.value(
                "SELECT coalesce(sum(gpus), 0) FROM node WHERE cluster = ? AND node = ? "
                "AND valid_from < ? AND coalesce(valid_to, ?) >= ?",
                [cluster, node, *([self.window.until] * 3)],
            )
        )

    def part(self, row: dict[str, Any], micro: int, *, claim: str) -> Part:
        """``micro`` GPU time of one row of cells at the row's price."""
        price = row["price"]
        return Part(
            claim=claim, day=row["day"], micro_gpu_s=micro,
            cost=None if price is None else price * micro / MICRO_GPU_S_PER_HOUR,
            cash=bool(row["cash"]), cluster=row["cluster"], run_id=row.get("run_id"),
            node=row["node"], gpu_model=row["gpu_model"],
        )  # fmt: skip

    def run_parts(
        self, run: Run, of: str, since: datetime | None = None, until: datetime | None = None
    ) -> list[Part]:
        """What a run held of a class (or ``held``: all of them), by node and day."""
        span = [run.cluster, run.run_id, since or self.window.since, until or self.window.until]
        rows = self.rows(_RUN_PARTS.format(columns=_SUMS), span)
        columns = HELD if of == "held" else (of,)
        sums = [(row, sum(row[name] for name in columns)) for row in rows]
        return [self.part(row, micro, claim=run.claim) for row, micro in sums if micro]

    def held_parts(self, runs: Sequence[Run]) -> list[Part]:
        """What many runs held, by run, node and day, in one question."""
        span = [[run.cluster for run in runs], [run.run_id for run in runs]]
        return [
            self.part(row, row["micro"], claim=f"run:{row['cluster']}/{row['run_id']}")
            for row in self.rows(_HELD_PARTS.format(held=" + ".join(HELD)), span)
            if row["micro"]
        ]

    def node_parts(
        self,
        cluster: str,
        node: str,
        classes: Sequence[str],
        since: datetime | None = None,
        until: datetime | None = None,
    ) -> list[Part]:
        """What a node spent in ``classes`` (or ``held``: all of those), by day."""
        span = [cluster, node, since or self.window.since, until or self.window.until]
        columns = HELD if tuple(classes) == ("held",) else classes
        parts = []
        for row in self.rows(_NODE_PARTS.format(columns=_SUMS), span):
            micro = sum(row[name] for name in columns)
            if micro:
                claim = f"{classes[0]}:{cluster}/{node}"
                parts.append(self.part(row, micro, claim=claim))
        return parts

    def free_claim(self, cluster: str, node: str, hour: datetime) -> str:
        """What advice about a node's free GPUs in one hour of the day wins back."""
        return f"free:{cluster}/{node}/{hour:%H}"

    def command(self, name: str, what: str) -> str:
        """The command that prints the rows behind a figure."""
        cluster = f" --cluster {self.cluster}" if self.cluster else ""
        if name == "job":
            return f"unstrand job {what}"
        since, until = (f"{at:%Y-%m-%dT%H:%MZ}" for at in (self.window.since, self.window.until))
        span = f"--since {since} --until {until}"
        return f"unstrand {name} {what} {span}{cluster}"
