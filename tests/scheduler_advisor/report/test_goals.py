from __future__ import annotations

from datetime import timedelta
from decimal import Decimal

import pytest

from scheduler_advisor.advice.advise import check_thresholds
from scheduler_advisor.errors import GoalsError
from scheduler_advisor.goals import DEFAULT_TOML, Goals, load_goals, parse_goals


def test_the_documented_default_means_the_same_as_no_file():
    from_file = load_goals(DEFAULT_TOML)
    assert from_file.given
    assert from_file.model_dump() == Goals().model_dump()


def test_every_line_of_the_default_that_is_commented_out_can_be_taken_in():
    text = DEFAULT_TOML.read_text(encoding="utf-8")
    lines = [
        line.removeprefix("# ") if line.startswith("# ") and ("=" in line or "[" in line) else ""
        for line in text.splitlines()
    ]
    goals = parse_goals("\n".join(lines).replace("[[class]]", "[[class]]", 1), "default")
    assert goals.work_class[0].max_wait_p95 == timedelta(minutes=10)
    assert goals.work_class[0].waiting_cost_per_hour == Decimal("25.00")
    assert goals.capacity.give_back == ("A100",)
    assert goals.threshold("held_idle", "idle_hours", 2) == 4
    assert goals.never_shared(team="clinic")
    assert not goals.never_shared(team="other")


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("first = 'luck'", "first: .*money"),
        ("headroom = 3", "headroom: unknown key"),
        ("headroom_gpus = -1", "headroom_gpus: "),
        ("[[class]]\nname = 'a'\nmatch = {}", "class.0.match: name at least one"),
        ("[[class]]\nname = 'a'\nmatch = {team = 'x'}\nmax_wait_p95 = 'soon'", "'soon' is no dur"),
        ("[[class]]\nname = 'a'\nmatch = {team = 'x'}\nwaiting_cost_per_hour = 1.5", "as a string"),
        ("[report]\ntime_zone = 'Mars/Base'", "report.time_zone: unknown time zone"),
        ("[nudges]\nmin_days_between = 1", "nudges.min_days_between"),
        ("given = true", "given: unknown key"),
        ("first = ", "not valid TOML"),
    ],
)
def test_goals_that_cannot_be_meant_are_refused_with_file_and_key(text, complaint):
    with pytest.raises(GoalsError, match=complaint) as refusal:
        parse_goals(text, "goals.toml")
    assert "goals.toml" in str(refusal.value)


def test_every_mistake_of_a_file_is_said_at_once():
    with pytest.raises(GoalsError) as refusal:
        parse_goals("first = 'luck'\nheadroom = 3", "goals.toml")
    assert len(str(refusal.value).splitlines()) == 2


def test_a_threshold_of_no_rule_is_refused_with_the_ones_there_are():
    with pytest.raises(GoalsError, match=r"no such kind.*held_idle"):
        check_thresholds({"idle": {}})
    with pytest.raises(GoalsError, match=r"held_idle\.idle: no such threshold: one of idle_hours"):
        check_thresholds({"held_idle": {"idle": 3}})


def test_a_missing_file_says_where_the_default_is(tmp_path):
    with pytest.raises(GoalsError, match="unstrand advise goals"):
        load_goals(tmp_path / "goals.toml")
