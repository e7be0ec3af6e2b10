"""Energy of boards that several runs shared, split once: modelled; parts add up to the board.

What a board draws idle goes by the share of it that each holds, what it draws beyond goes by active
time (share x activity); unassigned slices have their part of the idle draw under no run.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from analytics.gpu_models import ModelNames
from analytics.ledger.boardpower import board_watts
from analytics.ledger.classes import LedgerClass
from analytics.ledger.split import split
from analytics.window import Window
from collector.store import Work

IDLE_RATIO_PPM = 140_000
"""Idle draw of a board as a part of its greatest, in parts per million: 56 W of an A100's 400, 10 W
of a T4's 70 (nvidia-smi without a process)."""
METHOD = "split"
_HELD_BOARDS = """-- an hour of a board that somebody holds and whose energy is nobody's alone
CREATE OR REPLACE TEMP TABLE held_board AS
SELECT DISTINCT e.hour, e.gpu_uuid FROM energy_hour e JOIN ledger_hour h USING (hour, gpu_uuid)
WHERE e.cluster = $1 AND e.hour >= $2 AND e.hour < $3 AND e.run_id IS NULL
  AND h.hour >= $2 AND h.hour < $3 AND h.run_key IS NOT NULL"""
_SHARES = f"""-- a run's share (or nobody's) of such a board
SELECT h.hour, p.node, p.gpu_model, h.gpu_uuid, r.run_id,
  CAST(sum(h.used + h.lost) AS BIGINT) AS active,
  CAST(sum({" + ".join(f"h.{name.value}" for name in LedgerClass)}) AS BIGINT) AS share
FROM ledger_hour h SEMI JOIN held_board USING (hour, gpu_uuid)
JOIN ledger_pool p USING (pool_key) LEFT JOIN ledger_run r USING (run_key)
WHERE p.cluster = $1 AND h.hour >= $2 AND h.hour < $3
GROUP BY ALL ORDER BY ALL"""  # noqa: S608 - our own names
_BOARDS = """-- such a board with its energy
SELECT hour, node, gpu_uuid, gpu_index, energy_mj, measured_us
FROM energy_hour SEMI JOIN held_board USING (hour, gpu_uuid)
WHERE cluster = ? AND hour >= ? AND hour < ? AND run_id IS NULL
ORDER BY ALL"""
_WHOLE = """
INSERT INTO board_energy SELECT * FROM energy_hour WHERE cluster = ? AND hour >= ? AND hour < ?
  AND NOT (run_id IS NULL AND gpu_uuid IS NOT NULL AND (hour, gpu_uuid) IN (
    SELECT (hour, gpu_uuid) FROM board_energy WHERE cluster = ?))"""


def start_boards(work: Work) -> None:
    """An empty table ``board_energy`` like ``energy_hour``, for one report."""
    work.execute("CREATE OR REPLACE TEMP TABLE board_energy AS SELECT * FROM energy_hour LIMIT 0")


def add_boards(work: Work, cluster: str, window: Window) -> None:
    """The cluster's rows of ``energy_hour``, those of shared boards split over their runs.

    The hours must stand in the ledger; a board that is not in it by name is taken as it is.
    """
    asked = [cluster, window.since, window.until]
    shares: dict[tuple[Any, str], list[dict[str, Any]]] = defaultdict(list)
    work.execute(_HELD_BOARDS, asked)
    for row in work.rows(_SHARES, asked):
        shares[row["hour"], row["gpu_uuid"]].append(row)
    names = ModelNames.load(work)
    columns: dict[str, list[Any]] = defaultdict(list)
    for board in work.rows(_BOARDS, asked):
        parts = shares.get((board["hour"], board["gpu_uuid"]), [])
        if not any(part["run_id"] for part in parts):
            continue
        idle = _idle_mj(board, parts[0]["gpu_model"], names)
        for run_id, mj, us in _parts(board, parts, idle):
            for name, value in (
                ("cluster", cluster), ("hour", board["hour"]), ("node", board["node"]),
                ("gpu_uuid", board["gpu_uuid"]), ("gpu_index", board["gpu_index"]),
                ("run_id", run_id), ("energy_mj", mj), ("measured_us", us), ("method", METHOD),
            ):  # fmt: skip
                columns[name].append(value)
    if columns:
        work.append("board_energy", columns)
    work.execute(_WHOLE, [*asked, cluster])


def _idle_mj(board: dict[str, Any], model: str, names: ModelNames) -> int:
    """What the board would have drawn doing nothing, at most what it drew."""
    watts = next((board_watts()[n] for n in names.candidates(model) if n in board_watts()), 0)
    idle = watts * board["measured_us"] * IDLE_RATIO_PPM // 1_000_000_000
    return int(min(idle, board["energy_mj"]))


def _parts(
    board: dict[str, Any], parts: list[dict[str, Any]], idle: int
) -> list[tuple[str | None, int, int]]:
    """(run, energy, measured time); both add up to the board's."""
    held = [(part["run_id"], part["share"]) for part in parts]
    active = [(part["run_id"], part["active"]) for part in parts if part["active"]]
    energy: dict[str | None, int] = defaultdict(int)
    for run_id, amount in split(idle, held):
        energy[run_id] += amount
    for run_id, amount in split(board["energy_mj"] - idle, active or held):
        energy[run_id] += amount
    time = dict(split(board["measured_us"], held))
    return [(run_id, energy[run_id], time.get(run_id, 0)) for run_id, _ in held]
