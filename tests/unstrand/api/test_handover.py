"""POST /handover over an open store."""

from __future__ import annotations


def test_a_change_is_answered_with_the_nodes_of_the_cluster(api, site):
    wish = {"scheduler": "slurm", "after": '[backfill]\nkind = "easy"', "cluster": site.CLUSTER,
            "files": {"slurm.conf": "SchedulerType=sched/builtin\n"}}  # fmt: skip
    answer = api.post("/handover", json=wish)
    assert answer.status_code == 200, answer.text
    edit = answer.json()["apply"][0]
    assert edit["before"] == wish["files"]["slurm.conf"]
    assert "SchedulerType=sched/backfill" in edit["after"]
    assert answer.json()["complete"] is True


def test_what_makes_no_sense_is_refused_with_where_and_what_to_do(api):
    for wish, said in (
        ({"scheduler": "pbs"}, "no scheduler 'pbs'"),
        ({"scheduler": "slurm", "after": "order = 'x'"}, "order = x is not one of"),
        ({"scheduler": "slurm", "mem_mib_per_gpu": 0}, "must be 1 or more"),
        ({"scheduler": "slurm", "mig": {"T4": ["1g.5gb"]}}, "has no MIG"),
    ):
        answer = api.post("/handover", json=wish)
        assert answer.status_code in (400, 422)
        assert said in answer.text
