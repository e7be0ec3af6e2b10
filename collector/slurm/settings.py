"""The settings that decide who runs when and where: configuration, partitions, QoS, accounts."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import datetime

from collector.slurm import key_values
from collector.slurm.associations import associations
from collector.slurm.inventory import SOURCE
from collector.slurm.partition import REMEDY
from collector.slurm.refusal import refusal
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
FAMILIES = ("config", "partition", "qos", "accounts")
QOS_COMMAND = ("sacctmgr", "-P", "show", "qos")


QOS_REMEDY = f"Write the file with `{' '.join(QOS_COMMAND)}`"
CONFIG_REMEDY = "Write the file with `scontrol show config`"


def settings(
    config: Mapping[str, str], partitions: str, qos: str, accounts: str = "", cluster: str = ""
) -> dict[str, str]:
    """Settings by name: as in ``scontrol show config``, ``partition.NAME.KEY``, ``qos.NAME.KEY``,
    ``account.NAME.KEY``, ``user.ACCOUNT/USER.KEY``.

    ``partitions``: ``scontrol show partition -o``; ``qos``: ``sacctmgr -P show qos``, where a QoS
    without a limit leaves the column empty, and so is left out here; ``accounts``: ``sacctmgr -P
    show assoc``, of which the rows of ``cluster`` count.
    """
    found = {key: config[key] for key in CONFIG if key in config}
    for _, record in key_values.records("scontrol show partition", partitions, "PartitionName",
                                        REMEDY):  # fmt: skip
        values = key_values.fields(record)
        name = values["PartitionName"]
        found |= {f"partition.{name}.{key}": values[key] for key in PARTITION if key in values}
    return found | _qos(qos) | associations(accounts, cluster)


def config_of(text: str) -> dict[str, str]:
    """What ``scontrol show config`` says, by name."""
    pairs = (line.partition("=") for line in text.splitlines() if "=" in line)
    return {name.strip(): value.strip() for name, _, value in pairs}


def checked_config(source: str, text: str) -> dict[str, str]:
    """The settings of a file. Raises ImportRefusedError where it is no such list."""
    config = config_of(text)
    if "SchedulerType" not in config:
        raise refusal(source, None, "it does not say SchedulerType", CONFIG_REMEDY)
    return settings(config, "", "")


def checked_qos(source: str, text: str) -> dict[str, str]:
    """The QoS of a file. Raises ImportRefusedError where it is no such table."""
    if "Name" not in text.partition("\n")[0].strip().split("|"):
        raise refusal(source, 1, "no column Name", QOS_REMEDY)
    return _qos(text)


def _qos(text: str) -> dict[str, str]:
    lines = [line.split("|") for line in text.splitlines() if line.strip()]
    if not lines or "Name" not in lines[0]:
        return {}  # a version that shows no such table
    found: dict[str, str] = {}
    for line in lines[1:]:
        row = dict(zip(lines[0], line, strict=False))
        found |= {f"qos.{row['Name']}.{key}": row[key] for key in QOS if row.get(key)}
    return found


def family_of(key: str) -> str:
    """Which question a setting answers: config, partition, qos or accounts."""
    head, dot, _ = key.partition(".")
    if not dot:
        return "config"
    return "accounts" if head in ("account", "user") else head


def write_settings(
    work: Work,
    cluster: str,
    shown: Mapping[str, str],
    now: datetime,
    families: Collection[str] = FAMILIES,
) -> int:
    """Settings as they are ``now``; what changed ends the old value now. Returns the changes.

    ``families``: what ``shown`` is whole of; settings of other ones stay as they are.
    """
    rows = work.rows(
        "SELECT key, value FROM scheduler_setting "
        "WHERE cluster = ? AND source = ? AND valid_to IS NULL",
        [cluster, SOURCE],
    )
    before = {row["key"]: row["value"] for row in rows if family_of(row["key"]) in families}
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
