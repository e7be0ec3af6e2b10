"""Symptoms that users of other cost tools reported, fed to this one: docs/cost-failures.md."""

from __future__ import annotations

import re
from datetime import timedelta
from decimal import Decimal
from pathlib import Path

import pytest

from analytics.errors import PriceError
from analytics.ledger.settings import put_setting
from analytics.org import Mapping, load_mappings, read_mappings
from analytics.prices import Price, read_prices, shipped_prices
from analytics.reports import cost_report
from analytics.reports.spot import spot_report
from analytics.window import EPOCH, Window

ROOT = Path(__file__).parents[2]


def test_a_price_of_zero_is_refused_unless_it_is_called_free():
    with pytest.raises(PriceError, match="price 0 is refused"):
        read_prices("gpu_model,amount,currency\nh100,0,USD\n", "prices.csv")
    (free,) = read_prices("gpu_model,amount,currency,free\nh100,0,USD,true\n", "prices.csv")
    assert free.amount == 0


def test_a_monthly_price_is_not_read_as_hourly():
    with pytest.raises(PriceError, match=r"unit 'month'.*divide"):
        read_prices("gpu_model,amount,currency,unit\nh100,5000,USD,month\n", "p.csv")


def test_an_absurd_amount_is_refused():
    with pytest.raises(PriceError, match="must be 0 to"):
        Price(gpu_model="h", amount=Decimal("1e6"), currency="USD", kind="list", source="t")


def test_a_broken_price_file_names_the_line_and_loads_nothing(site):
    text = "gpu_model,amount,currency\nh100,2,USD\nt4,2,dollars\n"
    with pytest.raises(PriceError, match=r"p.csv line 3: .*ISO 4217"):
        read_prices(text, "p.csv")


def test_every_shipped_price_says_where_and_when_it_was_read():
    for price in shipped_prices():
        assert price.source.startswith("default: ")
        assert price.retrieved_on is not None
        assert price.amount > 0


@pytest.mark.parametrize("gpus", [1, 4, 8])
def test_a_price_is_per_gpu_whatever_the_size_of_the_node(site, gpus):
    site.node(gpus=gpus).known().price("2.00").built()
    assert cost_report(site.store, site.window).total["cost"] == 2 * gpus


def test_a_cluster_without_gpus_has_no_gpu_cost(site):
    site.node(gpus=0, model=None).known().built()
    report = cost_report(site.store, site.window)
    assert report.rows == []
    assert report.total["gpu_hours"] == 0


def test_a_scrape_that_comes_twice_counts_once(site):
    site.node(gpus=1).known()
    run = site.run(util=0.5, until=1, uuids=["g0"], share=(1, 1))
    site.measure(0.5, 0, 1, "n1", "g0", run).measure(0.5, 0, 1, "n1", "g0", run)
    assert site.built().hours_of() == {"used": 0.5, "allocated_idle": 0.5}


def test_four_replicas_of_one_gpu_cost_one_gpu(site):
    site.node(gpus=1).known().price("4.00")
    for nth in range(4):
        site.run(uuids=["g0"], share=(1, 4), until=1, account=f"team{nth}")
    site.built()
    rows = site.by("account")
    assert [rows[(f"team{n}",)]["cost"] for n in range(4)] == [1, 1, 1, 1]


def test_a_fifth_replica_is_a_conflict_and_never_more_than_the_gpu(site):
    site.node(gpus=1).known().price("4.00")
    for _ in range(5):
        site.run(uuids=["g0"], share=(1, 4), until=1)
    site.built()
    assert cost_report(site.store, site.window).total["cost"] == 4
    rules = site.store.rows("SELECT kind, rule FROM ledger_conflict")
    assert rules == [{"kind": "held_twice", "rule": "earlier-start-holds"}]


def test_a_shared_device_does_not_lend_its_utilisation_to_each_pod(site):
    site.node(gpus=1).known()
    site.run(uuids=["g0"], share=(1, 2), until=1)
    site.run(uuids=["g0"], share=(1, 2), until=1)
    site.measure(1.0, 0, 1, "n1", "g0")
    assert site.built().hours_of() == {"allocated_unmeasured": 1.0}


def test_mig_slices_add_to_the_board_and_each_keeps_its_own_activity(site):
    site.node(gpus=1).known().price("7.00")
    site.run(uuids=["g0"], mig="m3", share=(3, 7), until=1, account="a")
    site.run(uuids=["g0"], mig="m2", share=(2, 7), until=1, account="b")
    site.measure(1.0, 0, 1, "n1", "g0", mig="m3").measure(0.0, 0, 1, "n1", "g0", mig="m2")
    site.built()
    rows = site.by("account")
    assert (rows[("a",)]["cost"], rows[("b",)]["cost"], rows[(None,)]["cost"]) == (3, 2, 2)
    assert float(rows[("a",)]["used_gpu_hours"]) == pytest.approx(3 / 7)
    assert float(rows[("b",)]["allocated_idle_gpu_hours"]) == pytest.approx(2 / 7)


def test_a_pod_that_restarts_is_charged_for_its_time_not_for_its_starts(site):
    site.node(gpus=1).known().price("6.00")
    for start, end in ((0, 0.25), (0.25, 0.5), (0.75, 1)):
        site.run(since=start, until=end, account="app")
    site.built()
    assert site.by("account")[("app",)]["cost"] == Decimal("4.50")


def test_the_user_of_one_gpu_who_takes_the_nodes_memory_is_shown_what_it_strands(site):
    site.node().known().price("1.00").team("Hog", account="hog")
    site.run(gpus=1, mem_gib=512, until=1, account="hog")
    site.built()
    row = site.by("team")[("Hog",)]
    assert (row["stranded_gpu_hours"], row["cost"]) == (7, 1)


def test_a_spot_series_cuts_at_each_change_and_is_never_averaged(site):
    site.node(gpus=1).known()
    for minute, amount in enumerate(("1.00", "9.00", "2.00")):
        site.price(amount, since=minute / 3, until=(minute + 1) / 3)
    site.built()
    assert cost_report(site.store, site.window).total["cost"] == 4


def test_preempted_spot_work_is_split_in_useful_and_lost_beside_its_price_on_demand(site):
    site.hours = 4
    site.node(gpus=2).known(until=4)
    site.price("1.00", purchase_type="spot", until=2).price("3.00", purchase_type="spot", since=2)
    site.price("4.00", purchase_type="on_demand")
    with site.store.work() as work:
        put_setting(work, "purchase_type", "spot", since=EPOCH, actor="ada")
    marked = site.run(gpus=1, until=3.5, state="PREEMPTED", util=0.8)
    site.checkpoint(3.0, marked)
    blind = site.run(gpus=1, until=1, state="PREEMPTED", util=1.0, account="other")
    site.run(gpus=1, since=1, until=4, util=1.0)  # was not preempted
    site.built()
    report = spot_report(site.store, site.window)
    first, second = report.rows
    assert [first["run_id"], second["run_id"]] == [marked, blind]
    # 2 h at 1.00 and 1.5 h at 3.00, of which the last half hour is lost.
    assert (first["gpu_hours"], first["cost"]) == (Decimal("3.5"), Decimal("6.5"))
    assert first["lost_cost"] == Decimal("0.8") * Decimal("0.5") * 3
    assert first["useful_cost"] == Decimal("0.8") * (2 * 1 + 1 * 3)
    assert first["useful_cost"] + first["lost_cost"] + first["other_cost"] == first["cost"]
    # Nobody would have preempted it on demand: 3.5 h less the 0.4 h that were lost.
    assert first["on_demand_cost"] == Decimal("3.1") * 4
    assert first["saved_cost"] == first["on_demand_cost"] - first["cost"]
    assert (second["lost_cost"], second["possibly_lost_cost"], second["cost"]) == (0, 1, 1)
    assert report.total["cost"] == Decimal("7.5")
    assert report.total["saved_cost"] == Decimal("12.4") + 4 - Decimal("7.5")


def test_spot_work_without_a_price_on_demand_says_so(site):
    site.node(gpus=1, model="riva").known().price("1.00", model="riva", purchase_type="spot")
    with site.store.work() as work:
        put_setting(work, "purchase_type", "spot", since=EPOCH, actor="ada")
    site.run(gpus=1, until=0.5, state="PREEMPTED", util=1.0)
    site.built()
    report = spot_report(site.store, site.window)
    (row,) = report.rows
    assert (row["cost"], row["on_demand_cost"], row["saved_cost"]) == (Decimal("0.5"), None, None)
    assert "no price on demand" in report.remarks[1]
    assert report.total["on_demand_cost"] is None


def test_a_window_that_its_prices_do_not_cover_is_flagged_not_smaller(site):
    site.node(model="riva").known().price("1.00", model="riva", since=0.5).built()
    report = cost_report(site.store, site.window)
    assert report.total["unpriced_gpu_hours"] == 4
    assert report.remarks


def test_thirty_minutes_cost_half_an_hour(site):
    site.node().known().price("2.00").built()
    half = Window(site.window.since, site.window.since + timedelta(minutes=30))
    assert cost_report(site.store, half).total["cost"] == 8


def test_no_sample_is_not_idle(site):
    site.node(gpus=1).known().run(until=1)
    site.built()
    assert site.hours_of() == {"allocated_unmeasured": 1.0}


def test_a_held_gpu_without_any_process_is_reported_as_held(site):
    site.node(gpus=2).known()
    run = site.run(gpus=1, until=1, account="quiet")
    site.measure(0.0, 0, 1, "n1", "g0", run).built()
    assert site.by("account")[("quiet",)]["allocated_idle_gpu_hours"] == 1


def test_a_label_that_comes_days_later_still_finds_its_team(site):
    site.node(gpus=1).known().price("1.00").run(until=1, account="late")
    site.built()
    assert site.by("team")[("unmapped",)]["cost"] == 1
    site.team("Found", account="late")
    assert site.by("team")[("Found",)]["cost"] == 1


def test_names_that_differ_by_case_or_composition_are_one(site):
    site.node(gpus=1).known().run(until=1, account="JOSÉ")
    site.built()
    with site.store.work() as work:
        mapping = Mapping(key_kind="account", key_value="jose\u0301", team="T", valid_from=EPOCH)
        load_mappings(work, [mapping], at=site.window.since, actor="test")
    assert ("T",) in site.by("team")


def test_two_clusters_with_the_same_node_names_are_not_mixed(site):
    site.node(gpus=1).known().price("1.00").built()
    site.cluster = "d"
    site.node(gpus=4).known().built()
    rows = site.by("cluster", "node")
    assert {key: row["gpu_hours"] for key, row in rows.items()} == {
        ("c", "n1"): 1, ("d", "n1"): 4,
    }  # fmt: skip
    assert cost_report(site.store, site.window, cluster="d").total["gpu_hours"] == 4


def test_a_preempted_run_and_its_rerun_are_both_in_the_ledger(site):
    site.node(gpus=1).known().price("1.00")
    site.run(until=0.25, state="PREEMPTED", account="a")
    site.run(since=0.5, until=1, account="a")
    site.built()
    assert site.by("account")[("a",)]["cost"] == Decimal("0.75")


def test_an_owner_file_with_a_byte_order_mark_and_unicode_is_read():
    text = "\ufeffkey_kind,key_value,team\naccount,연구소,비전\n"
    (mapping,) = read_mappings(text, "org.csv")
    assert (mapping.key_value, mapping.team) == ("연구소", "비전")


def test_every_row_of_the_table_of_failures_names_a_test_that_exists():
    table = (ROOT / "docs" / "cost-failures.md").read_text(encoding="utf-8")
    rows = [
        line.strip("|").split("|") for line in table.splitlines() if re.match(r"\| *\d+ ", line)
    ]
    assert [int(row[0]) for row in rows] == list(range(1, 59))
    known = {
        name
        for path in (ROOT / "tests").rglob("test_*.py")
        for name in re.findall(r"^def (test_\w+)", path.read_text(encoding="utf-8"), re.MULTILINE)
    }
    for row in rows:
        tests = re.findall(r"`(test_\w+)`", row[3])
        assert tests or "comes with" in row[3], f"row {row[0].strip()} names no test"
        missing = [name for name in tests if name not in known]
        assert not missing, f"row {row[0].strip()}: no such test: {', '.join(missing)}"
