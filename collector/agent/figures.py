"""What the agent itself costs and how its deliveries stand, as metrics."""

from __future__ import annotations

import os
import resource
from collections.abc import Iterator
from pathlib import Path

from collector.agent.sender import Sender
from collector.agent.spool import Spool
from collector.exporter.family import Family, labels


def agent_families(
    node: str, spool: Spool, sender: Sender, age_s: float | None
) -> Iterator[Family]:
    """Spool, deliveries and own cost; ``age_s``: since the last batch that was taken."""
    text = labels({"node": node})
    for name, help_text, value in (
        ("spool_batches", "Batches that wait to be sent.", spool.batches),
        ("spool_bytes", "Bytes of batches on disk.", spool.size_bytes),
    ):
        yield Family(f"unstrand_agent_{name}", "gauge", help_text, [(text, float(value))])
    if age_s is not None:
        age = [(text, age_s)]
        yield Family(
            "unstrand_agent_delivery_age_seconds", "gauge", "Since the last batch was taken.", age
        )
    figures = spool.figures
    sent = [(text, float(sender.figures.taken))]
    yield Family(
        "unstrand_agent_batches_delivered_total", "counter", "Batches that the service took.", sent
    )
    dropped = Family("unstrand_agent_batches_dropped_total", "counter", "Batches lost, by reason.")
    for reason, count in (
        ("spool_full", figures.dropped_full),
        ("torn", figures.dropped_torn),
        ("refused", figures.refused),
    ):
        dropped.add(labels({"node": node, "reason": reason}), float(count))
    failed = Family(
        "unstrand_agent_delivery_failures_total", "counter", "Deliveries that failed, by verdict."
    )
    for verdict, count in sender.figures.failed.items():
        failed.add(labels({"node": node, "verdict": str(verdict)}), float(count))
    errors = [(text, float(figures.disk_errors))]
    yield from (dropped, failed)
    yield Family(
        "unstrand_agent_spool_errors_total", "counter", "Writes that the disk refused.", errors
    )
    cpu = [(text, own_cpu_s())]
    yield Family(
        "unstrand_agent_cpu_seconds_total", "counter", "CPU time of the agent and its readers.", cpu
    )
    memory = Family("unstrand_agent_resident_memory_bytes", "gauge", "Memory of the agent itself.")
    memory.add(text, resident_bytes())
    yield memory


def own_cpu_s() -> float:
    """CPU seconds of this process and of the children that have ended."""
    used = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(one.ru_utime + one.ru_stime for one in used)


def resident_bytes() -> float | None:
    """Resident memory of this process; None where the kernel does not say."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
    except (OSError, ValueError, IndexError):
        return None
    return float(pages * os.sysconf("SC_PAGE_SIZE"))
