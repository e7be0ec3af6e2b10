"""How well GPU time was used: ratios over the rows of the cost report, on planted activity."""

from __future__ import annotations

from decimal import Decimal

import pytest

WINDOW = {"since": "2026-10-19", "until": "2026-11-02"}
HOURS = 14 * 24


@pytest.fixture
def efficiency(api):
    def ask(by, **more):
        answer = api.get("/report/efficiency", params=WINDOW | {"by": by} | more)
        assert answer.status_code == 200, answer.text
        return answer.json()

    return ask


def test_a_model_is_occupied_and_efficient_as_planted(efficiency):
    rows = {row["gpu_model"]: row for row in efficiency("gpu_model")["rows"]}
    dear, cheap = rows["A100-80"], rows["T4-16"]
    # Two of four held at 30%; three of four held at 95% and 50%. Of the gap of three hours the
    # sample after it covers one: twice its step and no more.
    assert dear["occupancy_ratio"] == pytest.approx(2 / 4)
    assert dear["efficiency_ratio"] == pytest.approx(0.30)
    assert dear["goodput_ratio"] == pytest.approx(0.30 * 2 * (HOURS - 2) / (4 * HOURS))
    assert cheap["occupancy_ratio"] == pytest.approx(3 / 4)
    assert cheap["efficiency_ratio"] == pytest.approx((2 * 0.95 + 0.5) / 3)
    assert cheap["goodput_ratio"] == pytest.approx((2 * 0.95 + 0.5) / 4)


def test_a_used_hour_costs_what_the_row_costs_over_its_used_hours(efficiency):
    rows = efficiency("user")["rows"]
    for row in (row for row in rows if row["user"] is not None):
        per_hour = Decimal(row["cost"]) / Decimal(str(row["used_gpu_hours"]))
        assert Decimal(row["used_gpu_hour_cost"]) == pytest.approx(per_hour, rel=Decimal("1e-6"))
    free = next(row for row in rows if row["user"] is None)
    assert free["used_gpu_hour_cost"] is None


def test_what_is_installed_belongs_to_no_holder(efficiency):
    document = efficiency("team")
    assert {row["occupancy_ratio"] for row in document["rows"]} == {None}
    assert {row["goodput_ratio"] for row in document["rows"]} == {None}
    assert document["total"]["occupancy_ratio"] == pytest.approx(5 / 8)


@pytest.mark.parametrize(
    ("by", "count", "first"),
    [("weekday", 7, "1 Mon"), ("hour_of_day", 24, "00"), ("day_of_month", 14, "01")],
)
def test_the_profile_of_a_week_a_day_and_a_month_adds_up(efficiency, by, count, first):
    document = efficiency(by)
    assert len(document["rows"]) == count
    assert document["rows"][0][by] == first
    assert sum(row["gpu_hours"] for row in document["rows"]) == pytest.approx(8 * HOURS)
    cost = sum((Decimal(row["cost"]) for row in document["rows"]), Decimal(0))
    assert cost == Decimal(document["total"]["cost"])


def test_the_hours_of_a_day_are_those_of_the_zone(efficiency):
    """Only 06:00 to 08:00 UTC of the A100 is not measured."""

    def dark(zone):
        rows = efficiency("hour_of_day,gpu_model", tz=zone)["rows"]
        return [
            row["hour_of_day"]
            for row in rows
            if row["gpu_model"] == "A100-80" and row["coverage_ratio"] < 1
        ]

    assert dark("UTC") == ["06", "07"]
    assert dark("Asia/Seoul") == ["15", "16"]


def test_a_class_is_no_group_of_a_ratio(efficiency):
    assert efficiency("gpu_model,class")["rows"] == efficiency("gpu_model")["rows"]


def test_jobs_are_told_with_what_they_held_and_cost_the_dearest_first(api, efficiency):
    document = api.get("/report/jobs", params=WINDOW).json()
    assert [row["job_id"] for row in document["rows"]] == ["101", "102", "103"]
    dear = document["rows"][0]
    assert (dear["user_name"], dear["gpus"], dear["held_gpu_hours"]) == ("ada", 2, 2.0 * HOURS)
    of_user = {row["user"]: row for row in efficiency("user")["rows"]}
    assert [row["cost"] for row in document["rows"]] == [
        of_user[user]["cost"] for user in ("ada", "bob", "eve")
    ]
    assert document["identity"] == {"gpu_seconds_difference": 0, "cost_difference": "0"}
