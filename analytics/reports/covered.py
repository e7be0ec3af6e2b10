"""GPU time whose price a commitment replaces."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from analytics.reports.commitments import Cover
from analytics.reports.identity import PER_UNIT, Installed, installed_by_model
from analytics.reports.rates import Rates
from analytics.window import Window, from_us
from collector.store import Work

_ACTUAL = ("contracted", "amortized")


@dataclass(frozen=True, slots=True)
class Committed:
    """GPU time at a commitment's price from an instant (us) on."""

    gpu_us: int
    at: int
    commitment: dict[str, Any]

    def money(self, unit: str, rates: Rates) -> Fraction:
        """Its cost in ``unit``, by the rate of its first instant."""
        rate = rates.rate(self.commitment["currency"], unit, from_us(self.at))
        return self.gpu_us * int(self.commitment["amount"] * 10**6) * PER_UNIT * rate


def replace_by_commitments(
    work: Work,
    window: Window,
    real: dict[tuple[str, str], Installed],
    covers: Sequence[Cover],
) -> dict[str, list[Committed]]:
    """Take covered GPU time out of ``real`` (what is installed, priced); returns it by model.

    Which GPUs of a model a commitment covers is said by nobody: they are as dear as the model's
    mean at that time.
    """
    found: dict[str, list[Committed]] = defaultdict(list)
    priced: dict[tuple[int, int, str], dict[tuple[str, str], Installed]] = {}
    for cover in covers:
        found[cover.gpu_model].append(Committed(cover.gpu_us, cover.t0, cover.commitment))
        key = (cover.t0, cover.t1, cover.cluster)
        if key not in priced:
            since, until = from_us(cover.t0), from_us(cover.t1)
            part = Window(since, until, window.time_zone)
            priced[key] = installed_by_model(work, [cover.cluster], part, [(since, until)], _ACTUAL)
        place = (cover.cluster, cover.gpu_model)
        _take_out(real[place], priced[key][place], Fraction(cover.gpu_us))
    return dict(found)


def _take_out(whole: Installed, part: Installed, gpu_us: Fraction) -> None:
    share = gpu_us / part.gpu_us
    whole.unpriced_us -= int(share * part.unpriced_us)
    for key, amount in part.cost.items():
        whole.cost[key] = whole.cost.get(key, 0) - share * amount
