"""A QoS with a group limit of its own lets its jobs exceed their account's; they count against it.

What this said is kept in `recorded/limits`, where tests of the advisor read it.
"""

from __future__ import annotations

import os

import pytest

pytestmark = [pytest.mark.real, pytest.mark.slow, pytest.mark.prove]


@pytest.fixture
def lab(make_slurm_lab, configuration):
    """A Slurm that enforces limits: nlp may hold 4 GPUs, its user 3; QoS burst 10, each user 9."""
    lab = make_slurm_lab(AccountingStorageEnforce="associations,limits,qos")
    user = configuration.ACCOUNTS["nlp"]
    for command in (
        ("add", "qos", "burst"),
        ("modify", "qos", "burst", "set", "GrpTRES=gres/gpu=10", "MaxTRESPU=gres/gpu=9"),
        ("modify", "account", "nlp", "set", "GrpTRES=gres/gpu=4", "qos+=burst"),
        ("modify", "user", user, "where", "account=nlp", "set", "GrpTRES=gres/gpu=3"),
    ):
        lab.run("sacctmgr", "-i", *command)
    return lab


@pytest.mark.skipif(
    os.environ.get("UNSTRAND_PROVE") != "1", reason="`make prove` starts a Slurm of its own for it"
)
def test_a_qos_goes_before_the_account_and_counts_against_it(lab):
    def queue():
        rows = [line.split() for line in lab.run("squeue", "-h", "-o", "%i %T %r").splitlines()]
        return {job: reason if state == "PENDING" else "runs" for job, state, reason in rows}

    def asked(gpus, *options):
        return lab.submit("nlp", f"--gres=gpu:a100:{gpus}", "-N1", *options, script="sleep 600")

    first = asked(8, "--qos=burst")
    lab.wait_for(first, "RUNNING")
    second, other = asked(3, "--qos=burst"), asked(2)
    lab.until(
        lambda: queue() == {first: "runs", second: "QOSGrpGRES", other: "AssocGrpGRES"},
        f"what was recorded, not {queue()}",
    )
    lab.run("scancel", first, second)
    lab.until(lambda: queue() == {other: "runs"}, f"the other job alone, not {queue()}")
    third = asked(8, "--qos=burst")
    lab.until(lambda: queue() == {other: "runs", third: "runs"}, f"both, not {queue()}")
