"""Energy from counters, resets and gaps handled; carbon by intensity; kept without samples."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal

import pytest

from analytics.carbon import Intensity, load_intensities, read_intensities
from analytics.errors import InvoiceError, ReportError
from analytics.reports.energy import energy_report

KWH = 3_600_000_000  # millijoules


@pytest.fixture
def lab(site):
    site.hours = 4
    site.node(gpus=2).known().price("1").team("A", account="lab").team("B", account="b")
    site.run(gpus=1, until=2, run_id="r1")
    site.run(gpus=1, since=2, account="b", run_id="r2")
    return site.built()


def tick(site, hours, run, uuid="g1", **values):
    at = site.window.since + timedelta(hours=hours)
    row = {"cluster": "c", "node": "n1", "gpu_uuid": uuid, "run_id": run, "ts": at,
           "step_s": 1800.0, "source": "test"} | values  # fmt: skip
    with site.store.work() as work:
        work.append("sample", {name: [value] for name, value in row.items() if value is not None})


def intensity(site, grams, since=0, pue="1", **more):
    row = Intensity(
        grams_per_kwh=Decimal(grams), pue_ratio=Decimal(pue),
        effective_from=site.window.since + timedelta(hours=since), **more,
    )  # fmt: skip
    with site.store.work() as work:
        load_intensities(work, [row], at=site.window.since, actor="ada")


def teams(site, **more):
    report = energy_report(site.store, site.window, **more)
    assert sum(row["energy_kwh"] for row in report.rows) == report.total["energy_kwh"]
    return {row["team"]: row["energy_kwh"] for row in report.rows}


def test_differences_of_the_counter_go_to_the_run_that_was_on_the_board(lab):
    for half in range(9):
        run = "r1" if half <= 4 else "r2"
        tick(lab, half / 2, run, energy_mj=float(half * KWH))
    assert teams(lab) == {"A": 4, "B": 4}
    report = energy_report(lab.store, lab.window)
    assert {row["counter_ratio"] for row in report.rows} == {1.0}
    assert report.total["measured_ratio"] == pytest.approx(0.5), "one board of two"


def test_a_counter_that_was_reset_counts_what_came_since(lab):
    for half, energy in ((1, 100), (2, 101), (3, 0.25), (4, 1.25)):
        tick(lab, half / 2, "r1", energy_mj=energy * KWH)
    assert teams(lab) == {"A": Decimal("2.25")}


def test_power_is_the_fallback_and_capped_at_twice_the_step(lab):
    tick(lab, 0.5, "r1", power_mw=1_000_000.0)  # 1 kW over its step of half an hour
    tick(lab, 3.5, "r1", power_mw=1_000_000.0)  # three hours later: an hour of it counts
    assert teams(lab) == {"A": Decimal("1.5")}
    assert energy_report(lab.store, lab.window).rows[0]["counter_ratio"] == 0


def test_a_silence_longer_than_an_hour_is_not_given_to_whoever_came_after(lab):
    tick(lab, 0.5, "r1", energy_mj=0.0)
    tick(lab, 3, "r2", energy_mj=500.0 * KWH)
    assert teams(lab) == {}


def test_idle_boards_stand_under_no_team_and_slices_have_no_energy(lab):
    for half in range(3):
        tick(lab, half / 2, None, uuid="g2", energy_mj=half * KWH / 10)
        tick(lab, half / 2, "r1", uuid="g2", mig_uuid="m", energy_mj=float(half * KWH))
    assert teams(lab) == {None: Decimal("0.2")}


def test_the_roll_up_outlives_the_samples_and_late_ones_are_added(lab):
    tick(lab, 0.5, "r1", energy_mj=0.0)
    tick(lab, 1, "r1", energy_mj=1.0 * KWH)
    assert teams(lab) == {"A": 1}
    tick(lab, 1.5, "r1", energy_mj=3.0 * KWH)
    assert teams(lab) == {"A": 3}
    with lab.store.work() as work:
        work.execute("DELETE FROM sample")
    assert teams(lab) == {"A": 3}


def test_carbon_is_energy_by_the_intensity_of_its_hour_and_the_building(lab):
    for half in range(9):
        tick(lab, half / 2, "r1" if half <= 4 else "r2", energy_mj=float(half * KWH))
    report = energy_report(lab.store, lab.window)
    assert report.total["carbon_g"] is None
    assert "no carbon intensity" in report.remarks[-1]
    intensity(lab, "400", pue="1.5")
    intensity(lab, "100", since=3, pue="1.5", cluster="c")
    report = energy_report(lab.store, lab.window)
    grams = {row["team"]: row["carbon_g"] for row in report.rows}
    assert grams == {"A": 4 * 600, "B": 2 * 600 + 2 * 150}
    assert report.total["carbon_g"] == sum(grams.values())


def test_energy_by_other_keys_adds_up_to_the_same(lab):
    for half in range(5):
        tick(lab, half / 2, "r1", energy_mj=float(half * KWH))
    for by in (("user",), ("node",), ("cluster", "team"), ()):
        assert energy_report(lab.store, lab.window, by).total["energy_kwh"] == 4
    with pytest.raises(ReportError, match="use team"):
        energy_report(lab.store, lab.window, ("colour",))


@pytest.mark.parametrize(
    ("line", "word"),
    [("731590,2026-01-01,1", "per MWh"), ("-1,2026-01-01,1", "per kWh"),
     ("400,2026-01-01,0.9", "1 or more"), ("400,2026-01-01T00:10,1", "whole hour"),
     ("much,2026-01-01,1", "no number")],
)  # fmt: skip
def test_a_broken_intensity_names_the_line(line, word):
    with pytest.raises(InvoiceError, match=rf"c.csv line 2: .*{word}"):
        read_intensities(f"grams_per_kwh,effective_from,pue\n{line}\n", "c.csv")
