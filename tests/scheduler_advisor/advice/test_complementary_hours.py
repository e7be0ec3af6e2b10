"""Two small jobs that work at different hours, each on a GPU of its own."""

from __future__ import annotations

from decimal import Decimal

import pytest

from scheduler_advisor.advice.draft import Duty
from scheduler_advisor.advice.working_hours import spans
from scheduler_advisor.goals import Goals
from scheduler_advisor.messages import Words
from scheduler_advisor.report.forms import rendered
from scheduler_advisor.report.wording import sentence


def between(since, until):
    """Active from one hour of the day to another, over midnight where that comes first."""

    def activity(hour, _gpu):
        of_day = hour % 24
        inside = since <= of_day < until if since < until else of_day >= since or of_day < until
        return 0.8 if inside else 0.0

    return activity


def day_and_night(lab, *, night=(20, 4), held=None, memory=(9000, 12_000), until=168, **second):
    """A notebook that is held for the week and works from 8 to 18; a batch of its own GPU."""
    lab.node()
    lab.run("nb", end=until, name="notebook", user="ann", activity=between(8, 18),
            mem_used=memory[0])  # fmt: skip
    more = {"user": "bob", "mem_used": memory[1], "activity": between(*night), **second}
    if held is None:
        lab.run("svc", end=168, first=1, name="index", **more)
        return
    for day in range(7):
        lab.run(f"b{day}", start=24 * day + held[0], end=24 * day + held[1], first=1,
                name=f"index-{day}", **more)  # fmt: skip


def test_two_gpus_are_held_where_one_would_do(lab):
    day_and_night(lab)
    rec = lab.the("complementary_hours")
    # Over 7 days the notebook is idle in the batch's 8 hours, the batch in the notebook's 10.
    assert rec.saving.gpu_hours == pytest.approx(7 * (8 + 10))
    assert rec.saving.cost.quantize(Decimal("0.01")) == Decimal(252)
    assert rec.current_gpu_hours == pytest.approx(2 * 168)
    params = rec.draft.params
    sides = {params["first"]: (params["first_user"], params["first_hours"]),
             params["second"]: (params["second_user"], params["second_hours"])}  # fmt: skip
    assert sides == {"notebook": ("ann", "08-18"), "index": ("bob", "20-04")}
    assert rec.draft.owner.team == "team-red"
    assert rec.draft.owner.user is None  # two people: their team is asked
    assert rec.draft.duty is Duty.TEAM
    assert params["mem_gib"] == pytest.approx(21_000 / 1024)
    assert "shard" in rec.draft.commands["apply"]
    why = sentence(rec, "why", "USD", Words("en"))
    assert "08-18 UTC" in why
    assert "20-04 UTC" in why


def test_the_report_says_it_in_every_language(lab):
    day_and_night(lab)
    report = lab.report()
    for language, said in (("en", "take turns by the hour"), ("ko", "시간대로 교대")):
        page = rendered(report, "html", language).decode()
        assert "08-18 UTC" in page
        assert said in page
        assert "Name=shard Count=2" in page


def test_a_batch_that_lets_go_by_day_could_have_had_the_notebooks_gpu_at_night(lab):
    day_and_night(lab, night=(20, 23), held=(20, 23))
    rec = lab.the("complementary_hours", Goals.model_validate(
        {"thresholds": {"complementary_hours": {"min_gpu_hours": 12}}}))  # fmt: skip
    assert rec.saving.gpu_hours == pytest.approx(7 * 3)  # seven runs of one name but its number
    assert {part.run_id for part in rec.draft.parts} == {"nb:1"}


def test_the_idle_session_and_the_pair_win_the_same_hours_once(lab):
    day_and_night(lab, until=None)
    advice = lab.advice()
    kinds = {(rec.kind, rec.draft.owner.user): rec for rec in advice.recommendations}
    pair, idle = kinds["complementary_hours", None], kinds["held_idle", "ann"]
    # Since 18:00 of the last day nothing runs in it; four of these hours are the batch's too.
    assert idle.saving.gpu_hours == pytest.approx(6)
    assert pair.saving.gpu_hours == pytest.approx(7 * (8 + 10))
    assert idle.exclusive_group == pair.exclusive_group is not None
    assert advice.joint.gpu_hours == pytest.approx(7 * (8 + 10))


@pytest.mark.parametrize(
    "change",
    [
        {"night": (9, 17)},  # the same hours
        {"night": (16, 22)},  # two of six together
        {"memory": (19_000, 19_000)},  # 38,000 of 40,960 MiB: no room is left
        {"account": "blue"},  # two teams are not asked to share
    ],
)
def test_jobs_that_meet_do_not_fit_or_are_strangers_are_left_alone(lab, change):
    day_and_night(lab, **change)
    assert lab.find("complementary_hours") == []


def test_two_teams_are_told_what_they_could_win_and_with_whom(lab):
    day_and_night(lab, account="blue")
    lab.run("x", end=168, first=2, name="tidy", user="kim", mem_used=9000,
            activity=between(22, 2))  # fmt: skip
    advice = lab.advice()
    # The notebook has a partner of its own team, so that blue's batch is left without one.
    kinds = [rec for rec in advice.recommendations if rec.kind == "complementary_hours"]
    assert [set(rec.draft.examples) for rec in kinds] == [{"nb", "x"}]
    assert [each for each in advice.not_recommended if each.reason == "two_teams"] == []


@pytest.mark.parametrize(
    ("language", "said"),
    [("en", "1 such pair of two teams would win 126 GPU-hours a week"),
     ("ko", "팀이 다른 1쌍이 GPU를 하나씩 함께 쓰면 주당 126 GPU시간")],
)  # fmt: skip
def test_a_pair_of_two_teams_is_told_and_not_counted(lab, language, said):
    day_and_night(lab, account="blue")
    report = lab.report()
    [told] = [each for each in report.advice.not_recommended if each.reason == "two_teams"]
    assert told.params["hours"] == pytest.approx(7 * (8 + 10))
    teams = {told.params["first"]: told.params["first_team"],
             told.params["second"]: told.params["second_team"]}  # fmt: skip
    assert teams == {"notebook": "team-red", "index": "team-blue"}
    assert said in rendered(report, "html", language).decode()


def test_jobs_on_gpus_of_two_kinds_of_node_are_not_paired(lab):
    lab.node("n2", partitions=("private",))
    day_and_night(lab, node="n2")
    assert lab.find("complementary_hours") == []


def test_four_days_are_no_habit(lab):
    lab.node()
    lab.run("nb", end=96, name="notebook", activity=between(8, 18), mem_used=9000)
    lab.run("svc", end=96, first=1, name="index", activity=between(20, 3), mem_used=9000)
    assert lab.find("complementary_hours") == []


def test_a_job_that_needs_two_gpus_at_once_is_not_put_on_a_half(lab):
    day_and_night(lab)
    lab.run("svc2", end=168, first=2, name="index", user="bob", mem_used=9000,
            activity=between(20, 4))  # fmt: skip
    assert lab.find("complementary_hours") == []


def test_a_job_is_in_one_pair(lab):
    day_and_night(lab)
    lab.run("x", end=168, first=2, name="tidy", user="kim", mem_used=9000,
            activity=between(22, 2))  # fmt: skip
    rec = lab.the("complementary_hours")  # the notebook's other choice would win less
    assert rec.draft.examples
    assert {part.run_id for part in rec.draft.parts} == {"nb:1", "svc:1"}


def test_work_that_must_never_share_has_no_pair(lab):
    day_and_night(lab)
    goals = Goals.model_validate({"never": {"share": [{"user": "bob"}]}})
    assert lab.find("complementary_hours", goals) == []


@pytest.mark.parametrize(
    ("hours", "said"),
    [({8, 9}, "08-10"), ({22, 23, 0, 1}, "22-02"), ({3, 7}, "03-04, 07-08"),
     (set(range(24)), "00-24")],
)  # fmt: skip
def test_working_hours_are_said_as_spans_over_midnight(hours, said):
    assert spans([5 * (hour in hours) for hour in range(24)]) == said
