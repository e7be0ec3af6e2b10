"""The default that hands out whole nodes' memory: advised, fixed by its own snippet, and measured
again: what the fix really won back lies in the interval that was promised."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from analytics.ledger import build
from analytics.window import Window as LedgerWindow
from collector.slurm.importer import import_files
from collector.slurm.sacct import FIELDS
from scheduler_advisor.advice.advise import advise
from scheduler_advisor.advice.site import Site
from scheduler_advisor.advice.stranding import caused
from scheduler_advisor.engine.policy import Policy
from scheduler_advisor.goals import Goals
from scheduler_advisor.handover.make import for_change
from scheduler_advisor.handover.site import Beside, site_of
from scheduler_advisor.handover.steps import Scheduler
from scheduler_advisor.window import Window

pytestmark = [pytest.mark.real, pytest.mark.slow]
# The lab's jobs run for seconds, so the threshold in GPU-hours is the operator's: none.
GOALS = Goals(thresholds={"whole_node_memory": {"min_gpu_hours": 0}})


@pytest.fixture(scope="module")
def lab(make_slurm_lab):
    """A Slurm in which nobody has set a memory default."""
    return make_slurm_lab(DefMemPerCPU=None)


def three_small_jobs(lab):
    """Jobs of one GPU, each alone on a node of eight; their ids."""
    ids = [
        lab.submit(account, "-w", node, "--gpus=1", "-c1", script="sleep 8")
        for account, node in (("nlp", "gpu1"), ("vision", "gpu2"), ("nlp", "gpu3"))
    ]
    lab.wait_until_done(*ids)
    return ids


def facts_of(store, lab, folder):
    """The store with everything that the scheduler knows now, and its ledger; the window."""
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
    first = store.value("SELECT min(submit_at) FROM job_run").replace(minute=0, second=0)
    until = now.replace(minute=0, second=0, microsecond=0) + timedelta(hours=1)
    build(store, "lab", LedgerWindow(first, until))
    return now, Window(first, until)


def stranded_per_held(site, ids):
    """GPU time that these jobs stranded by memory, over the GPU time that they held."""
    rows = site.rows("SELECT run_id, job_id, start_at, end_at FROM job_run")
    runs = {row["run_id"]: row for row in rows if row["job_id"] in ids}
    held = sum((row["end_at"] - row["start_at"]).total_seconds() for row in runs.values())
    micro = sum(r["micro"] for r in caused(site, ("stranded_mem",)) if r["run_id"] in runs)
    return micro / 1e6 / held


def test_the_snippet_of_the_advice_wins_back_what_the_advice_promised(
    store, lab, apply_steps, tmp_path
):
    before = three_small_jobs(lab)
    now, window = facts_of(store, lab, tmp_path)
    with store.work() as work:
        site = Site(work, window, GOALS, "lab")
        [rec] = [r for r in advise(site, now).recommendations if r.kind == "whole_node_memory"]
        lost = stranded_per_held(site, before)
        facts = site_of(work, "lab", now, {"slurm.conf": (lab.folder / "slurm.conf").read_text()})
    assert lost == pytest.approx(7)
    mib = rec.draft.params["per_gpu_gib"] * 1024
    made = for_change(Scheduler.SLURM, Policy(), Policy(), facts, Beside(mem_mib_per_gpu=mib))
    assert f"+DefMemPerGPU={mib}" in rec.draft.commands["apply"]
    apply_steps(lab, made)
    after = three_small_jobs(lab)
    _, window = facts_of(store, lab, tmp_path)
    with store.work() as work:
        left = stranded_per_held(Site(work, window, GOALS, "lab"), after)
    realised = rec.saving.gpu_hours * (lost - left) / lost  # of the same work, so of the same load
    assert left == 0
    assert rec.saving.gpu_hours_low <= realised <= rec.saving.gpu_hours_high
    assert rec.saving.gpu_hours > 0
