"""Settings of the scheduler: what is kept, and since when each value has been so."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from collector.slurm.associations import associations
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


ACCOUNTS = (
    "Cluster|Account|User|Partition|Par Name|Share|GrpJobs|GrpTRES|MaxJobs\n"
    "c|root||||1|||\n"
    "c|root|root|||1|||\n"
    "c|science|||root|4||gres/gpu=48|\n"
    "c|bio|||science|1|20|cpu=512,gres/gpu=16|5\n"
    "c|bio|ada|||1|||5\n"
    "c|bio|bo|||1||gres/gpu=4|2\n"
    "c|bio|bo|low||1||gres/gpu=2|\n"
    "c|bio|eve|||parent|||5\n"
    "other|bio|||root|1||gres/gpu=99|\n"
)


def test_what_accounts_and_users_may_hold_is_kept_and_what_is_handed_down_is_not():
    assert associations(ACCOUNTS, "c") == {
        "account.science.GrpTRES": "gres/gpu=48",
        "account.science.Share": "4",
        "account.science.Parent": "root",
        "account.bio.GrpTRES": "cpu=512,gres/gpu=16",
        "account.bio.GrpJobs": "20",
        "account.bio.MaxJobs": "5",
        "account.bio.Parent": "science",
        "user.bio/bo.GrpTRES": "gres/gpu=4",
        "user.bio/bo.MaxJobs": "2",
        "user.bio/bo@low.GrpTRES": "gres/gpu=2",
    }


def test_a_limit_that_is_taken_away_ends_and_other_families_stay(store):
    later = T0 + timedelta(hours=2)
    with store.work() as work:
        write_settings(work, "c", shown() | associations(ACCOUNTS, "c"), T0)
        without = associations(ACCOUNTS.replace("gres/gpu=48", ""), "c")
        assert write_settings(work, "c", without, later, ["accounts"]) == 0
        rows = work.rows("SELECT key FROM scheduler_setting WHERE valid_to IS NOT NULL")
    assert [row["key"] for row in rows] == ["account.science.GrpTRES"]
