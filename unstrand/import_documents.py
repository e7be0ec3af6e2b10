"""What an import did, as JSON for the API and `--json`, with the lines for people beside it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collector.slurm.summary import ImportSummary
    from collector.traces.importer import TraceSummary


def slurm_document(summary: ImportSummary) -> dict[str, Any]:
    """Rows kept and dropped of an import of Slurm's accounting."""
    return {
        "cluster": summary.cluster,
        "since": summary.since,
        "until": summary.until,
        "rows": [{"table": name, "kept": count} for name, count in summary.kept.items()],
        "dropped": dict(summary.dropped),
        "remarks": list(summary.remarks),
        "gpu_seconds": summary.gpu_seconds,
        "lines": summary.lines(),
    }


def trace_document(summary: TraceSummary) -> dict[str, Any]:
    """Jobs kept and dropped of a trace, and what they held."""
    return {
        "cluster": summary.cluster,
        "format": summary.format,
        "since": summary.since,
        "until": summary.until,
        "rows": [{"table": "job", "kept": summary.kept}],
        "dropped": dict(summary.dropped),
        "remarks": list(summary.remarks),
        "nodes": summary.nodes,
        "gpus": summary.gpus,
        "held_gpu_hours": summary.held_gpu_hours,
        "lines": summary.lines(),
    }
