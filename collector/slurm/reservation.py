"""``scontrol show reservation -o``: nodes that are kept for somebody."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, tzinfo

from collector.slurm import hostlist, key_values, stamp
from collector.slurm.refusal import MalformedError, refusal

REMEDY = "Write the file with `SLURM_TIME_FORMAT=%s scontrol show reservation -o`"
_NO_RESERVATION = "No reservations in the system"
_GPUS = re.compile(r"(?:^|,)gres/gpu=(\d+)(?:,|\Z)")


@dataclass(frozen=True, slots=True)
class SlurmReservation:
    """Nodes kept over ``[since, until)``, epoch seconds; ``gpus`` None = the whole nodes."""

    name: str
    nodes: tuple[str, ...]
    since: int
    until: int | None
    gpus: int | None
    accounts: tuple[str, ...]
    maintenance: bool


def parse(source: str, text: str, zone: tzinfo = UTC) -> list[SlurmReservation]:
    """Every reservation of the output. Raises ImportRefusedError."""
    if not text.strip() or text.strip().startswith(_NO_RESERVATION):
        return []
    found = []
    for line, record in key_values.records(source, text, "ReservationName", REMEDY):
        values = key_values.fields(record)
        try:
            since = stamp.epoch(values.get("StartTime", ""), zone)
            if since is None:
                raise MalformedError("the reservation has no StartTime")
            found.append(
                SlurmReservation(
                    name=values["ReservationName"],
                    nodes=tuple(hostlist.expand(values.get("Nodes", ""))),
                    since=since,
                    until=stamp.epoch(values.get("EndTime", ""), zone),
                    gpus=_gpus(values),
                    accounts=_names(values.get("Accounts", "")),
                    maintenance="MAINT" in values.get("Flags", "").split(","),
                )
            )
        except MalformedError as error:
            raise refusal(source, line, str(error), REMEDY) from error
    return found


def _gpus(values: dict[str, str]) -> int | None:
    """A number of GPUs where the reservation is for less than its nodes and names them."""
    match = _GPUS.search(values.get("TRES", ""))
    return int(match.group(1)) if match else None


def _names(text: str) -> tuple[str, ...]:
    return tuple(name for name in text.split(",") if name and name != "(null)")
