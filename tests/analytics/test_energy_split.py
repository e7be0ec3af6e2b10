"""The energy of a shared board: split once, nothing lost, nothing twice."""

from __future__ import annotations

from datetime import timedelta

import pytest

from analytics.energy_split import IDLE_RATIO_PPM
from analytics.reports.energy import energy_report


def board_samples(site, power_w, counter=False, run=None):
    """The board's own samples; one that several runs share names none of them."""
    ticks = range(1, 61)
    with site.store.work() as work:
        work.append(
            "sample",
            {
                "cluster": ["c"] * 60, "node": ["n1"] * 60, "gpu_uuid": ["g0"] * 60,
                "run_id": [run] * 60,
                "ts": [site.window.since + timedelta(minutes=t) for t in ticks],
                "step_s": [60.0] * 60, "power_mw": [power_w * 1000.0] * 60,
                "energy_mj": [t * power_w * 60_000.0 for t in ticks] if counter else [None] * 60,
                "source": ["test"] * 60,
            },
        )  # fmt: skip


def shared_board(site, busy, quiet):
    """Three of seven slices busy so much, two quiet so much, two not assigned."""
    site.node(gpus=1, model="A100-40").known()
    for account, mig, share, util in (("a", "m3", 3, busy), ("b", "m2", 2, quiet)):
        run = site.run(uuids=["g0"], mig=mig, share=(share, 7), until=1, account=account)
        if util is not None:
            site.measure(util, 0, 1, "n1", "g0", run, mig=mig)
    return site


def kwh(site, *by):
    report = energy_report(site.store, site.window, by or ("account",))
    return {row["account"]: float(row["energy_kwh"]) for row in report.rows}, report


def test_idle_draw_goes_by_share_and_the_rest_by_activity(site):
    shared_board(site, 0.9, 0.3)
    board_samples(site, 400)
    site.built()
    rows, report = kwh(site)
    idle = 0.4 * IDLE_RATIO_PPM / 1e6
    rest, busy = 0.4 - idle, 3 * 0.9 + 2 * 0.3
    assert rows == {
        "a": pytest.approx(idle * 3 / 7 + rest * 2.7 / busy, rel=1e-4),
        "b": pytest.approx(idle * 2 / 7 + rest * 0.6 / busy, rel=1e-4),
        None: pytest.approx(idle * 2 / 7, rel=1e-4),
    }
    assert float(report.total["energy_kwh"]) == pytest.approx(0.4, abs=1e-9)


@pytest.mark.parametrize("counter", [False, True], ids=["power", "counter"])
def test_the_parts_add_up_to_the_board_to_the_millijoule(site, counter):
    shared_board(site, 0.333, 0.777)
    board_samples(site, 211, counter)
    site.built()
    kwh(site)
    whole = site.store.value("SELECT CAST(sum(energy_mj) AS BIGINT) FROM energy_hour")
    with site.store.work() as work:
        from analytics.energy_split import add_boards, start_boards

        start_boards(work)
        add_boards(work, "c", site.window)
        rows = work.rows("SELECT run_id, energy_mj, method FROM board_energy ORDER BY ALL")
    assert sum(row["energy_mj"] for row in rows) == whole
    assert {row["method"] for row in rows} == {"split"}
    assert len({row["run_id"] for row in rows}) == 3


def test_without_activity_all_goes_by_share(site):
    shared_board(site, None, None)
    board_samples(site, 210)
    site.built()
    rows, _ = kwh(site)
    assert rows == {account: pytest.approx(0.21 * n / 7, rel=1e-4) for account, n in
                    (("a", 3), ("b", 2), (None, 2))}  # fmt: skip


def test_a_board_of_one_run_is_not_split(site):
    site.node(gpus=1, model="A100-40").known()
    run = site.run(gpus=1, until=1, account="a")
    board_samples(site, 400, run=run)
    site.built()
    rows, _ = kwh(site)
    assert rows == {"a": pytest.approx(0.4)}
