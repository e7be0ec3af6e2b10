"""How the collection stands and what it costs; there also when no GPU is."""

from __future__ import annotations

from collections.abc import Iterator

from collector.agent.picture import Picture
from collector.agent.reader import ReaderState
from collector.exporter.family import Family, labels
from collector.exporter.own import Labels


def collector_families(picture: Picture, kept: Labels, age_s: float) -> Iterator[Family]:
    """What the collection costs and how it is; always there, also when no GPU is."""
    node = labels({"node": kept.node})
    state = Family("unstrand_collector_state", "gauge", "1 for the state that the reader is in.")
    for one in ReaderState:
        state.add(labels({"node": kept.node, "state": str(one)}), float(one is picture.state))
    yield state
    for name, text, value in (
        ("ticks_total", "Ticks read.", picture.ticks),
        ("reader_starts_total", "Times the reader process was started.", picture.starts),
        ("reader_hangs_total", "Times a driver call did not return.", picture.hangs),
        ("undelivered_batches_total", "Batches that nobody could take.", picture.undelivered),
    ):
        yield Family(f"unstrand_collector_{name}", "counter", text, [(node, float(value))])
    if picture.tick is not None:
        age = Family("unstrand_collector_tick_age_seconds", "gauge", "Age of the newest tick.")
        age.add(node, age_s)
        yield age
    calls = Family(
        "unstrand_collector_driver_calls_total", "counter", "Calls of a driver function."
    )
    spent = Family(
        "unstrand_collector_driver_call_seconds_total", "counter", "Time in a driver function."
    )
    worst = Family(
        "unstrand_collector_driver_call_worst_seconds",
        "gauge",
        "Longest call of a driver function.",
    )
    for function, (count, total_s, worst_s) in picture.costs.items():
        text = kept.of_function(function)
        calls.samples.append((text, float(count)))
        spent.samples.append((text, total_s))
        worst.samples.append((text, worst_s))
    failed = Family(
        "unstrand_collector_mapping_failed", "gauge", "1 per mapping source that fails now."
    )
    for source in picture.attribution.errors:
        failed.add(labels({"node": kept.node, "mapping": source}), 1.0)
    apart = Family(
        "unstrand_gpu_energy_disagreement_ratio",
        "gauge",
        "How far energy counter and power are apart, over an hour.",
    )
    for gpu_uuid, ratio in picture.energy_disagreement.items():
        apart.add(labels({"node": kept.node, "gpu_uuid": gpu_uuid}), ratio)
    yield from (calls, spent, worst, failed, apart)
    yield from _xids(picture, kept)


def _xids(picture: Picture, kept: Labels) -> Iterator[Family]:
    total = Family(
        "unstrand_gpu_xid_errors_total", "counter", "Xid errors since the collector began."
    )
    seen = Family(
        "unstrand_gpu_xid_last_seen_timestamp_seconds", "gauge", "When an Xid was last seen."
    )
    for (gpu_uuid, code), (count, at) in picture.xids.items():
        text = labels({"node": kept.node, "gpu_uuid": gpu_uuid, "xid": code})
        total.add(text, float(count))
        seen.add(text, at.timestamp())
    yield from (total, seen)
