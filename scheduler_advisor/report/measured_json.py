"""The measurements as JSON; every block says which kind of number it holds."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from scheduler_advisor.measurements.bundle import Measurements
from scheduler_advisor.measurements.waits import BUCKETS_S
from scheduler_advisor.window import Window

MOST_ROWS = 50  # the command prints all of them


def measurements_json(found: Measurements, window: Window) -> dict[str, Any]:
    """Tables shortened to `MOST_ROWS`; ``command`` prints the whole."""
    since, until = (f"{at:%Y-%m-%dT%H:%MZ}" for at in (window.since, window.until))
    span = f"--since {since} --until {until}"
    return {
        "waits": {
            "kind": "observed", "command": f"unstrand report waits --rows {span}",
            "summary": asdict(found.wait_summary),
            "by_queue_and_size": [asdict(group) for group in found.wait_groups],
            "by_hour": [asdict(group) for group in found.wait_hours],
            "distribution": {"edges_s": list(BUCKETS_S), "counts": found.wait_counts},
        },
        "spread": {
            "kind": "observed", "command": f"unstrand report spread --rows {span}",
            "runs": len(found.spreads), "spread_runs": sum(run.spread for run in found.spreads),
            "rows": [
                {**asdict(run), "gpu_hours": run.gpu_hours}
                for run in sorted(found.spreads, key=lambda r: -r.gpu_hours) if run.spread
            ][:MOST_ROWS],
        },
        "breakers": {
            "kind": "observed", "split_kind": "modelled",
            "command": f"unstrand report breakers --rows {span}",
            "broken_gpu_hours": found.breakers.broken_gpu_hours,
            "hurt_gpu_hours": found.breakers.hurt_gpu_hours,
            "by_node": found.breakers.by_node,
            "by_hour": {str(hour): gpu for hour, gpu in found.breakers.by_hour.items()},
            "rows": [asdict(row) for row in found.breakers.breakers[:MOST_ROWS]],
        },
        "checkpoints": {
            "kind": "observed", "command": f"unstrand report checkpoints {span}",
            "rows": [
                {**{k: v for k, v in asdict(entry).items() if k != "run_ids"},
                 "optimum_interval_s": entry.optimum_interval_s}
                for entry in found.checkpoints if entry.long_runs or entry.checkpoints
            ][:MOST_ROWS],
        },
        "repeats": {
            "kind": "observed",
            "rows": [
                {**asdict(repeat), "ratio": repeat.ratio,
                 "placement_explains": repeat.placement_explains}
                for repeat in found.repeats[:MOST_ROWS]
            ],
        },
        "activity": {"kind": "observed", "buckets": [asdict(share) for share in found.activity]},
    }  # fmt: skip
