"""Settings of the scheduler: what is kept, and since when each value has been so."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from collector.slurm.settings import settings, write_settings

T0 = datetime(2026, 10, 5, tzinfo=UTC)
PARTITIONS = (
    "PartitionName=low Default=YES MaxTime=01:00:00 Nodes=gpu[1-4] PriorityTier=1 LLN=NO State=UP\n"
)
QOS = "Name|Priority|Preempt|MaxTRESPU\nurgent|100|normal|gres/gpu=8\nnormal|0||\n"


def shown(**config):
    return settings({"SchedulerType": "sched/backfill", **config}, PARTITIONS, QOS)


def test_settings_of_configuration_partitions_and_qos_have_one_name_each():
    found = shown(PriorityType="priority/basic", BootTime="today")
    assert found["SchedulerType"] == "sched/backfill"
    assert "BootTime" not in found
    assert found["partition.low.MaxTime"] == "01:00:00"
    assert found["qos.urgent.MaxTRESPU"] == "gres/gpu=8"
    assert "qos.normal.Preempt" not in found


def test_a_changed_value_ends_when_the_new_one_is_seen_and_the_same_changes_nothing(store):
    with store.work() as work:
        assert write_settings(work, "c", shown(PreemptMode="OFF"), T0) == len(shown()) + 1
        assert write_settings(work, "c", shown(PreemptMode="OFF"), T0 + timedelta(hours=1)) == 0
        later = T0 + timedelta(hours=2)
        assert write_settings(work, "c", shown(PreemptMode="REQUEUE"), later) == 1
        rows = work.rows(
            "SELECT value, valid_from, valid_to FROM scheduler_setting "
            "WHERE key = 'PreemptMode' ORDER BY valid_from"
        )
    assert [(row["value"], row["valid_from"], row["valid_to"]) for row in rows] == [
        ("OFF", T0, later),
        ("REQUEUE", later, None),
    ]
