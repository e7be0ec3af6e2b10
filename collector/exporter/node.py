"""The exporter of one node, for its own HTTP answer and as a collector of prometheus_client."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Iterator

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from collector.agent.picture import Picture
from collector.exporter import dcgm, health, own
from collector.exporter.dcgm import HostnameLabel
from collector.exporter.family import Family, exposition

# A picture older than this many steps says nothing about now: its series are left out.
_STALE_STEPS = 4
_ESCAPED = re.compile(r"\\(.)")


class NodeExporter(Collector):
    """Builds every series at each scrape from the newest picture; keeps no series of its own."""

    def __init__(
        self,
        picture: Callable[[], Picture],
        node: str,
        *,
        step_s: float = 15.0,
        compatible: bool = False,
        casing: HostnameLabel = HostnameLabel.UPPER,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        """``compatible``: also the DCGM set; leave it off where a dcgm-exporter runs."""
        self._picture = picture
        self._kept = own.Labels(node)
        self._stale_s = max(_STALE_STEPS * step_s, 30.0)
        self._compatible = compatible
        self._casing = casing
        self._monotonic = monotonic

    def families(self) -> Iterator[Family]:
        """Everything that is known now."""
        picture = self._picture()
        age_s = self._monotonic() - picture.taken_mono_s
        yield from health.collector_families(picture, self._kept, age_s)
        if age_s > self._stale_s:
            return
        yield from own.inventory_families(picture, self._kept)
        yield from own.device_families(picture, self._kept)
        if self._compatible:
            yield from dcgm.families(picture, self._kept.node, self._casing)

    def exposition(self, accept: str | None) -> tuple[bytes, str]:
        """Body and content type of a scrape: the fast way, without an object per sample."""
        return exposition(self.families(), accept)

    def describe(self) -> Iterable[Metric]:
        """Nothing: names depend on what the GPUs have, and registering must not read them."""
        return ()

    def collect(self) -> Iterator[Metric]:
        """For a registry that holds other collectors, too."""
        for family in self.families():
            if family.samples:
                yield _metric(family)


def _metric(family: Family) -> Metric:
    made: Metric
    if family.kind == "counter" and family.name.endswith("_total"):
        made = CounterMetricFamily(family.name, family.help)
    else:
        made = GaugeMetricFamily(family.name, family.help)
    for text, value in family.samples:
        made.add_sample(family.name, parse_labels(text), value)
    return made


def parse_labels(text: str) -> dict[str, str]:
    """The labels that `family.labels` wrote."""
    found, rest = {}, text[1:-1]
    while rest:
        name, _, rest = rest.partition('="')
        end = 0
        while rest[end] != '"':
            end += 2 if rest[end] == "\\" else 1
        raw = rest[:end]
        found[name] = _ESCAPED.sub(lambda m: "\n" if m[1] == "n" else m[1], raw)
        rest = rest[end + 1 :].removeprefix(",")
    return found
