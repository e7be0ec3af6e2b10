from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from collector.store import Store
from scheduler_advisor.errors import GoalsError
from scheduler_advisor.running.journal import past_runs
from scheduler_advisor.running.runs import runs_of
from unstrand.advice_metrics import AdviceCollector
from unstrand.schedule import WeeklyReports, last_planned

MONDAY = datetime(2026, 11, 2, 7, tzinfo=UTC)


class Clock:
    def __init__(self, now):
        self.now = now

    def __call__(self):
        return self.now


@pytest.fixture
def store(site_path):
    with Store.open(site_path, clock=lambda: MONDAY) as opened:
        yield opened
        with opened.work() as work:
            for table in ("watermark", "advice_report", "recommendation", "recommendation_part"):
                work.execute(f"DELETE FROM {table}")


def reports(store):
    return store.value("SELECT count(*) FROM advice_report")


def test_the_first_report_comes_with_the_first_facts_and_the_next_one_on_its_day(store):
    clock = Clock(MONDAY + timedelta(hours=3))
    weekly = WeeklyReports(store, clock)
    assert weekly.run_if_due() is not None
    assert weekly.run_if_due() is None
    clock.now = MONDAY + timedelta(days=6, hours=23)
    assert weekly.run_if_due() is None
    clock.now = MONDAY + timedelta(days=7)
    assert weekly.run_if_due() is not None
    assert reports(store) == 2


def test_after_weeks_of_downtime_there_is_one_catch_up(store):
    clock = Clock(MONDAY)
    assert WeeklyReports(store, clock).run_if_due() is not None
    clock.now = MONDAY + timedelta(weeks=5, hours=2)
    restarted = WeeklyReports(store, clock)
    assert restarted.run_if_due() is not None
    assert restarted.run_if_due() is None
    assert reports(store) == 2
    planned = store.value("SELECT max(done_until) FROM watermark WHERE task = 'weekly_report'")
    assert planned == MONDAY + timedelta(weeks=5)


def test_two_that_look_at_once_make_one_report(store):
    import threading

    weekly = WeeklyReports(store, Clock(MONDAY))
    made = []
    threads = [threading.Thread(target=lambda: made.append(weekly.run_if_due())) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(report is not None for report in made) == 1
    assert reports(store) == 1


def test_an_empty_store_has_nothing_to_report_and_no_watermark(tmp_path):
    with Store.open(tmp_path / "empty.duckdb", clock=lambda: MONDAY) as empty:
        assert WeeklyReports(empty, Clock(MONDAY)).run_if_due() is None
        assert empty.value("SELECT count(*) FROM watermark") == 0


def test_the_window_ends_where_the_facts_end(store, site):
    report = WeeklyReports(store, Clock(MONDAY + timedelta(weeks=3))).run_if_due()
    assert report.window.until == site.UNTIL


def test_a_report_that_fails_is_made_again_at_the_next_look(store, monkeypatch):
    weekly = WeeklyReports(store, Clock(MONDAY))

    def fails(_):
        raise RuntimeError("disk full")

    weekly.account = fails
    with pytest.raises(RuntimeError):
        weekly.run_if_due()
    weekly.account = None
    assert weekly.run_if_due() is not None


def test_a_report_that_somebody_cancels_is_skipped_until_its_next_time(store):
    clock = Clock(MONDAY + timedelta(hours=1))  # ids of runs hold the time, the file is shared
    runs = runs_of(store, clock)

    def cancelled_meanwhile(_):
        [run] = runs.running("advice")
        assert runs.cancel(run.run_id)

    weekly = WeeklyReports(store, clock, account=cancelled_meanwhile)
    assert weekly.run_if_due() is None
    assert reports(store) == 0
    with store.work() as work:
        assert "cancelled" in {row["state"] for row in past_runs(work)}
    weekly.account = None
    clock.now = MONDAY + timedelta(hours=2)
    assert weekly.run_if_due() is None
    clock.now = MONDAY + timedelta(days=7)
    assert weekly.run_if_due() is not None
    assert reports(store) == 1


@pytest.mark.parametrize(
    ("cron", "zone", "now", "expected"),
    [
        ("0 7 * * mon", "UTC", datetime(2026, 11, 4, tzinfo=UTC), MONDAY),
        ("0 7 * * 1", "UTC", datetime(2026, 11, 4, tzinfo=UTC), MONDAY),
        ("0 7 * * 0", "UTC", datetime(2026, 11, 4, tzinfo=UTC), MONDAY - timedelta(days=1)),
        ("0 7 * * 7", "UTC", datetime(2026, 11, 4, tzinfo=UTC), MONDAY - timedelta(days=1)),
        ("0 7 * * mon", "UTC", MONDAY, MONDAY),
        # 07:00 in Seoul is 22:00 UTC of the day before.
        ("0 7 * * mon", "Asia/Seoul", datetime(2026, 11, 4, tzinfo=UTC),
         datetime(2026, 11, 1, 22, tzinfo=UTC)),
        # Summer time ended on 2026-10-25: 07:00 in Berlin is 06:00 UTC after it, 05:00 before.
        ("0 7 * * mon", "Europe/Berlin", datetime(2026, 11, 4, tzinfo=UTC),
         datetime(2026, 11, 2, 6, tzinfo=UTC)),
        ("0 7 * * mon", "Europe/Berlin", datetime(2026, 10, 20, tzinfo=UTC),
         datetime(2026, 10, 19, 5, tzinfo=UTC)),
        ("0 0 1 1 *", "UTC", datetime(2026, 11, 4, tzinfo=UTC), datetime(2026, 1, 1, tzinfo=UTC)),
    ],
)  # fmt: skip
def test_the_planned_time_is_that_of_the_stated_zone(cron, zone, now, expected):
    assert last_planned(cron, zone, now) == expected


@pytest.mark.parametrize("cron", ["every monday", "", "0 25 * * *", "0 0 30 2 *"])
def test_a_cron_that_never_fires_is_refused(cron):
    with pytest.raises(GoalsError, match=r"report\.cron"):
        last_planned(cron, "UTC", MONDAY)


def test_open_savings_are_gauges_and_a_dismissed_one_is_gone(store):
    clock = Clock(MONDAY)
    collector = AdviceCollector(store, clock)
    before = {family.name for family in collector.collect()}
    assert "unstrand_advice_open_saving_gpus" not in before
    WeeklyReports(store, clock).run_if_due()
    families = {family.name: family for family in collector.collect()}
    gpus = families["unstrand_advice_open_saving_gpus"]
    kinds = {sample.labels["kind"]: sample.value for sample in gpus.samples}
    assert kinds, "the small site has something to win"
    assert all(value > 0 for value in kinds.values())
    name = next(iter(kinds))
    for row in store.rows("SELECT recommendation_id FROM recommendation WHERE kind = ?", [name]):
        with store.work() as work:
            work.append(
                "recommendation_state",
                {"recommendation_id": [row["recommendation_id"]], "ts": [MONDAY],
                 "state": ["dismissed"], "actor": ["ann"], "reason": ["kept"]},
            )  # fmt: skip
    families = {family.name: family for family in collector.collect()}
    left = families["unstrand_advice_open_saving_gpus"].samples
    assert name not in {sample.labels["kind"] for sample in left}
