"""``scontrol show partition -o``: which nodes a partition has and how long its jobs may run."""

from __future__ import annotations

from dataclasses import dataclass

from collector.slurm import duration, hostlist, key_values
from collector.slurm.refusal import MalformedError, refusal

REMEDY = "Write the file with `scontrol show partition -o`"


@dataclass(frozen=True, slots=True)
class SlurmPartition:
    """One partition; ``max_time_s`` None = no limit."""

    name: str
    nodes: tuple[str, ...]
    max_time_s: int | None
    default_time_s: int | None
    state: str


def parse(source: str, text: str) -> list[SlurmPartition]:
    """Every partition of the file. Raises ImportRefusedError."""
    found = []
    for line, record in key_values.records(source, text, "PartitionName", REMEDY):
        values = key_values.fields(record)
        try:
            found.append(
                SlurmPartition(
                    name=values["PartitionName"],
                    nodes=tuple(hostlist.expand(values.get("Nodes", ""))),
                    max_time_s=duration.limit_seconds(values.get("MaxTime", "")),
                    default_time_s=duration.limit_seconds(values.get("DefaultTime", "")),
                    state=values.get("State", "UP"),
                )
            )
        except MalformedError as error:
            raise refusal(source, line, str(error), REMEDY) from error
    if not found:
        raise refusal(source, None, "no partition in it", REMEDY)
    return found
