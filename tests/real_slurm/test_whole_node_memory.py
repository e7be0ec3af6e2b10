"""A Slurm without a memory default hands each job its node's whole memory: found in its records."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from analytics.ledger import build
from analytics.window import Window as LedgerWindow
from collector.slurm.importer import import_files
from collector.slurm.sacct import FIELDS
from scheduler_advisor.advice.advise import advise
from scheduler_advisor.advice.site import Site
from scheduler_advisor.goals import Goals
from scheduler_advisor.window import Window

pytestmark = [pytest.mark.real, pytest.mark.slow]
# The lab's jobs run for seconds, so the threshold in GPU-hours is the operator's: none.
GOALS = Goals(thresholds={"whole_node_memory": {"min_gpu_hours": 0}})


@pytest.fixture(scope="module")
def lab(make_slurm_lab):
    """A Slurm in which nobody has set a memory default."""
    return make_slurm_lab(DefMemPerCPU=None)


@pytest.fixture(scope="module")
def jobs(lab):
    """Three one-GPU jobs of two people, each alone on a node of eight."""
    ids = [
        lab.submit(account, "-w", node, "--gpus=1", "-c1", script="sleep 8")
        for account, node in (("nlp", "gpu1"), ("vision", "gpu2"), ("nlp", "gpu3"))
    ]
    lab.wait_until_done(*ids)
    return ids


def imported(store, lab, folder):
    known = {name.lower() for name in lab.run("sacct", "--helpformat").split()}
    fields = ",".join(name for name in FIELDS.split(",") if name in known)
    texts = {
        "sacct": lab.sacct(fields, "--noconvert", SLURM_TIME_FORMAT="%s"),
        "nodes": lab.run("scontrol", "show", "node", "-d", "-o", SLURM_TIME_FORMAT="%s"),
        "partitions": lab.run("scontrol", "show", "partition", "-o", SLURM_TIME_FORMAT="%s"),
    }
    paths = {name: folder / f"{name}.txt" for name in texts}
    for name, text in texts.items():
        paths[name].write_text(text)
    now = datetime.now(UTC)
    import_files(store, "lab", **paths, now=now)
    return now


def test_the_default_is_found_its_jobs_named_and_the_amount_right(store, lab, jobs, tmp_path):
    now = imported(store, lab, tmp_path)
    first = store.value("SELECT min(submit_at) FROM job_run").replace(minute=0, second=0)
    until = now.replace(minute=0, second=0, microsecond=0) + timedelta(hours=1)
    build(store, "lab", LedgerWindow(first, until))
    with store.work() as work:
        advice = advise(Site(work, Window(first, until), GOALS, "lab"), now)
    [rec] = [rec for rec in advice.recommendations if rec.kind == "whole_node_memory"]
    # By hand: while each job ran, the other seven GPUs of its node had no memory left.
    elapsed = lab.sacct("jobid,elapsedraw", "-n", "-j", ",".join(jobs))
    seconds = sum(int(line.split("|")[1]) for line in elapsed.splitlines())
    assert seconds >= 3 * 8
    assert rec.current_gpu_hours == pytest.approx(7 * seconds / 3600, rel=1e-9)
    assert sorted(rec.draft.examples) == sorted(jobs)
    assert rec.draft.params["jobs"] == 3
    # 95% of 512,000 MiB over 8 GPUs.
    assert rec.draft.params["per_gpu_gib"] == 59
