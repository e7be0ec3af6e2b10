"""The settings that decide who runs when and where: configuration, partitions and QoS as shown."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from collector.slurm import key_values
from collector.slurm.inventory import SOURCE
from collector.slurm.partition import REMEDY
from collector.store import Work

CONFIG = (
    "SchedulerType", "SchedulerParameters", "SelectType", "SelectTypeParameters", "PriorityType",
    "PriorityDecayHalfLife", "PriorityCalcPeriod", "PriorityFlags", "PriorityWeightAge",
    "PriorityWeightAssoc", "PriorityWeightFairShare",
    "PriorityWeightJobSize", "PriorityWeightPartition", "PriorityWeightQOS",
    "PriorityWeightTRES", "PriorityFavorSmall",
    "PriorityMaxAge", "PreemptType", "PreemptMode", "PreemptExemptTime", "TopologyPlugin",
    "TopologyParam", "DefMemPerCPU", "DefMemPerNode", "DefMemPerGPU", "JobDefaults",
    "MaxMemPerNode", "OverTimeLimit", "EnforcePartLimits", "AccountingStorageEnforce",
    "AccountingStorageTRES", "SLURM_VERSION",
)  # fmt: skip
PARTITION = (
    "Default", "MaxTime", "DefaultTime", "MaxNodes", "PriorityTier", "PriorityJobFactor",
    "PreemptMode", "LLN", "QoS",
    "OverSubscribe", "DefMemPerCPU", "DefMemPerNode", "JobDefaults", "State",
    "Nodes", "AllowAccounts", "AllowQos",
)  # fmt: skip
QOS = (
    "Priority", "Preempt", "PreemptMode", "PreemptExemptTime", "GraceTime", "GrpTRES", "GrpJobs",
    "MaxTRES", "MaxTRESPU", "MaxTRESPA", "MaxJobsPU", "MaxJobsPA", "MaxWall", "Flags",
)  # fmt: skip
QOS_COMMAND = ("sacctmgr", "-P", "show", "qos")


def settings(config: Mapping[str, str], partitions: str, qos: str) -> dict[str, str]:
    """Settings by name: as in ``scontrol show config``, ``partition.NAME.KEY``, ``qos.NAME.KEY``.

    ``partitions``: ``scontrol show partition -o``; ``qos``: ``sacctmgr -P show qos``, where a QoS
    without a limit leaves the column empty, and so is left out here.
    """
    found = {key: config[key] for key in CONFIG if key in config}
    for _, record in key_values.records("scontrol show partition", partitions, "PartitionName",
                                        REMEDY):  # fmt: skip
        values = key_values.fields(record)
        name = values["PartitionName"]
        found |= {f"partition.{name}.{key}": values[key] for key in PARTITION if key in values}
    return found | _qos(qos)


def _qos(text: str) -> dict[str, str]:
    lines = [line.split("|") for line in text.splitlines() if line.strip()]
    if not lines or "Name" not in lines[0]:
        return {}  # a version that shows no such table
    found: dict[str, str] = {}
    for line in lines[1:]:
        row = dict(zip(lines[0], line, strict=False))
        found |= {f"qos.{row['Name']}.{key}": row[key] for key in QOS if row.get(key)}
    return found


def write_settings(work: Work, cluster: str, shown: Mapping[str, str], now: datetime) -> int:
    """Settings as they are ``now``; what changed ends the old value now. Returns the changes."""
    rows = work.rows(
        "SELECT key, value FROM scheduler_setting "
        "WHERE cluster = ? AND source = ? AND valid_to IS NULL",
        [cluster, SOURCE],
    )
    before = {row["key"]: row["value"] for row in rows}
    over = [key for key, value in before.items() if shown.get(key) != value]
    fresh = [key for key, value in shown.items() if before.get(key) != value]
    if over:
        work.execute(
            "UPDATE scheduler_setting SET valid_to = ? WHERE cluster = ? AND source = ? "
            "AND valid_to IS NULL AND list_contains(?::VARCHAR[], key)",
            [now, cluster, SOURCE, over],
        )
    work.append(
        "scheduler_setting",
        {
            "cluster": [cluster] * len(fresh),
            "scheduler": ["slurm"] * len(fresh),
            "key": fresh,
            "value": [shown[key] for key in fresh],
            "valid_from": [now] * len(fresh),
            "valid_to": [None] * len(fresh),
            "source": [SOURCE] * len(fresh),
        },
    )
    return len(fresh)
