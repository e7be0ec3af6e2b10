"""Owners by labels: Kubernetes labels and the comments of Slurm jobs, with history."""

from __future__ import annotations

from decimal import Decimal

import pytest

from analytics.adjustments import known_teams
from analytics.errors import OrgMapError
from analytics.job_labels import put_labels, read_labels
from analytics.labels import kept, labels_of
from analytics.ledger import ensure_built
from analytics.org import load_mappings, read_mappings
from analytics.reports import coverage_report
from collector.model import Job

HEADER = "key_kind,key_value,team,valid_from,ratio\n"


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ('{"Team": "NLP", "app.kubernetes.io/name": "x", "deep": {"a": 1}}',
         {"team": "NLP", "app.kubernetes.io/name": "x"}),
        ("team=nlp, stage=train;owner:ann", {"team": "nlp", "stage": "train", "owner": "ann"}),
        ("just a remark, nothing more", {}), ("", {}), (None, {}), ("{broken", {}),
    ],
    ids=["kubernetes", "comment", "prose", "empty", "none", "broken"],
)  # fmt: skip
def test_labels_are_read_from_json_and_from_comments(text, found):
    assert labels_of(text) == found


def test_only_labels_that_the_map_is_about_are_kept():
    assert kept('{"team": "a", "pod-hash": "77"}', frozenset({"team"})) == "team=a"
    assert kept('{"pod-hash": "77"}', frozenset({"team"})) is None


@pytest.fixture
def day(site):
    """Four runs of one account in four hours, labelled or not, on a node of eight."""
    site.hours = 4
    site.node().known().price("6.88")
    for run, labels in (
        ("a", '{"team": "NLP"}'), ("b", "team=vision stage=x"), ("c", "team=robots"), ("d", None)
    ):  # fmt: skip
        site.run(gpus=1, until=4, run_id=run, account="lab")
        site.facts.append(
            Job(
                cluster="c",
                job_id=f"j-{run}",
                submit_at=site.window.since,
                labels=labels,
                source="test",
            )
        )
    return site.built()


def mapped(site, text):
    with site.store.work() as work:
        load_mappings(
            work, read_mappings(HEADER + text, "org.csv"), at=site.window.since, actor="t"
        )
    ensure_built(site.store, site.window)


def held(site, **more):
    rows = site.by("team", **more)
    return {key[0]: float(row["held_gpu_hours"]) for key, row in rows.items() if key[0]}


def test_a_label_decides_before_account_and_user(day):
    mapped(day, "label:team,nlp,Language,,\naccount,lab,Lab,,\nuser,ann,Users,,\n")
    assert held(day) == {"Language": 4.0, "Lab": 12.0}


def test_a_rule_for_any_value_takes_the_team_from_the_label(day):
    mapped(day, "label:team,*,*,,\nlabel:team,nlp,Language,,\naccount,lab,Lab,,\n")
    assert held(day) == {"Language": 4.0, "vision": 4.0, "robots": 4.0, "Lab": 4.0}
    with day.store.work() as work:
        assert known_teams(work) == ["Lab", "Language", "NLP", "robots", "vision", "unmapped"]


def test_labels_of_two_keys_are_asked_in_the_order_of_their_keys(day):
    mapped(day, "label:team,vision,V,,\nlabel:stage,x,S,,\n")
    assert held(day) == {"S": 4.0, "unmapped": 12.0}


def test_a_label_that_moves_is_reported_as_it_was_and_as_it_is(day):
    mapped(day, "label:team,vision,old,,\nlabel:team,vision,new,2026-10-05T01:30:00Z,\n")
    assert held(day) == {"old": 1.5, "new": 2.5, "unmapped": 12.0}
    assert held(day, as_of="now") == {"new": 4.0, "unmapped": 12.0}


def test_a_label_may_be_split_and_every_grouping_adds_up_to_the_same(day):
    mapped(day, "label:team,vision,x,,0.25\nlabel:team,vision,y,,0.75\naccount,lab,Lab,,\n")
    assert held(day) == {"x": 1.0, "y": 3.0, "Lab": 12.0}
    total = {key: sum(row["cost"] for row in day.by(key).values()) for key in ("team", "user")}
    assert total["team"] == total["user"] == Decimal("220.16")


def test_labels_that_come_late_make_the_hours_stale(day):
    mapped(day, "label:team,late,Late,,\n")
    assert held(day) == {"unmapped": 16.0}
    with day.store.work() as work:
        work.execute("UPDATE job SET labels = 'team=late' WHERE job_id = 'j-d'")
    assert ensure_built(day.store, day.window) == 4
    assert held(day) == {"Late": 4.0, "unmapped": 12.0}


def test_unmapped_holders_are_told_which_row_would_map_them(day):
    (row,) = coverage_report(day.store, day.window).unmapped
    # One user and account, three labels: the first by name of those that are as frequent.
    assert row.hint == "key_kind label:team, key_value NLP: on 1 of its jobs"
    with day.store.work() as work:
        work.execute("UPDATE job SET labels = NULL")
    (row,) = coverage_report(day.store, day.window).unmapped
    assert row.hint == "key_kind account, key_value lab"


@pytest.mark.parametrize(
    ("text", "word"),
    [("label,team,a,,\n", "label:KEY"), ("label:,x,a,,\n", "label:KEY"),
     ("account,lab,*,,\n", "value of a label")],
)  # fmt: skip
def test_rules_that_would_do_nothing_are_refused(text, word):
    with pytest.raises(OrgMapError, match=word):
        read_mappings(HEADER + text, "org.csv")


PODS = """{"items": [
  {"metadata": {"namespace": "ml", "name": "train-0", "labels": {"team": "NLP", "hash": "7"}}},
  {"metadata": {"namespace": "ml", "name": "gone", "labels": {"team": "x"}}},
  {"metadata": {"namespace": "ml", "name": "bare"}}]}"""


def test_pods_from_kubectl_bring_their_labels(day):
    with day.store.work() as work:
        work.execute("UPDATE job SET job_id = 'pod:ml/train-0' WHERE job_id = 'j-d'")
        work.execute("UPDATE job_run SET job_id = 'pod:ml/train-0' WHERE job_id = 'j-d'")
        found = read_labels(PODS, "pods.json")
        assert put_labels(work, "c", found, at=day.window.since, actor="ann") == (1, 1)
        audit = work.rows("SELECT action, after_value FROM audit ORDER BY ts")
    assert {"action": "org.labels", "after_value": "labels of 1 jobs"} in audit
    mapped(day, "label:team,nlp,Language,,\n")
    assert held(day) == {"Language": 8.0, "unmapped": 8.0}


@pytest.mark.parametrize(
    ("text", "word"),
    [("{1", "kubectl"), ("{}", "kubectl"), ("job_id,labels\n7,prose only\n", "team=nlp"),
     ("job,labels\n7,a=b\n", "job_id")],
)  # fmt: skip
def test_labels_that_cannot_be_read_are_refused(text, word):
    with pytest.raises(OrgMapError, match=word):
        read_labels(text, "f")
