"""Pages over the small site show the figures of its ledger."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest

from analytics.adjustments import Adjustment, decide, put_adjustment
from analytics.months import Month
from analytics.org import Mapping, load_mappings
from analytics.reports import cost_report, ledger_report
from analytics.statements import Asked, statement_of
from analytics.statements.issue import next_version, put_issue
from analytics.window import Window
from collector.store import Store
from dashboard.formats import whole_money

PAGES = ("overview", "teams", "health", "stranding", "queue", "jobs", "fleet")


@pytest.fixture
def window(site):
    return Window(site.SINCE, site.UNTIL)


def test_overview_answers_in_one_sentence_with_window_and_coverage(site_store, open_page, window):
    report = ledger_report(site_store, window)
    total = whole_money(report.total["cost"], "USD")
    page = open_page(site_store, from_="2026-10-19", to="2026-11-01")
    assert f"20.9% of {total} paid for GPUs at work" in page.text
    assert "free 1,988 USD (37.4%)" in page.text
    assert "2026-10-19 to 2026-11-01 · 14 days · UTC coverage 99.9%" in page.text


def test_overview_tiles_are_the_ratios_of_the_ledger(site_store, open_page):
    text = open_page(site_store, from_="2026-10-19", to="2026-11-01").text
    # 1680 held, 1006.8 used, 669.2 idle of 2688 installed GPU-hours
    assert "Occupancy observed 62.5%" in text
    assert "Efficiency observed 60.1%" in text
    assert "Goodput observed 37.5%" in text
    assert "Stranded money modelled 0.00 USD" in text


def test_overview_names_what_is_broken_and_escapes_what_people_typed(site_store, open_page):
    page = open_page(site_store)
    assert "Node big-2 is drained for 3 d 2 GPUs out of service: fan <b>broken</b>" in page.text
    assert "<b>broken</b>" not in page.markup


def test_overview_puts_the_last_week_beside_the_one_before(site_store, open_page, site):
    text = open_page(site_store, from_="2026-10-19", to="2026-11-01").text
    assert "10-26 – 11-01" in text
    assert "10-19 – 10-25" in text
    assert "Drained 494.05 USD 0.00 USD" in text


def test_without_a_week_before_nothing_is_compared(site_store, open_page):
    text = open_page(site_store, from_="2026-10-20", to="2026-10-26").text
    assert "no earlier week to compare" in text
    assert "last 7 d:" not in text


def test_teams_say_who_pays_most_for_a_used_hour(site_store, open_page):
    text = open_page(site_store, "teams").text
    # 2305.55 USD over 200.4 used GPU-hours; 353.47 USD over 638.4
    assert "language (A100-80) pays 11.50 USD per used GPU-hour at 30.0% efficiency" in text
    assert "speech (T4-16) pays 0.55 USD at 95.0%" in text


def test_the_team_table_adds_up_to_the_report(site_store, open_page, window):
    report = cost_report(site_store, window)
    table = open_page(site_store, "teams").tables[0]
    assert round(sum(table["cost"]), 6) == float(report.total["cost"])
    assert list(table["team"])[:2] == ["Platform (no holder)", "language"]
    speech = table[table["team"] == "speech"].iloc[0]
    assert (speech["used"], speech["idle"], speech["efficiency"]) == (638.4, 33.6, 95.0)


def test_the_team_table_shows_what_teams_waited_for(site_store, open_page):
    """Jobs of the small site start when they are submitted; the platform asks for nothing."""
    table = open_page(site_store, "teams").tables[0].set_index("team")
    assert (table["waited"]["language"], table["wait"]["speech"]) == (0.0, 0.0)
    assert table["waited"].isna()["Platform (no holder)"]


def test_a_team_with_projects_opens_to_these_first(site, tmp_path, open_page):
    mappings = [
        Mapping(
            key_kind="user", key_value=user, team="all", project=project, valid_from=site.SINCE,
            source="test",
        )
        for user, project in (("ada", "llm"), ("bob", "asr"), ("eve", None))
    ]  # fmt: skip
    with Store.open(site.create(tmp_path / "s.duckdb"), clock=lambda: site.UNTIL) as store:
        with store.work() as work:
            load_mappings(work, mappings, at=site.SINCE, actor="test", replace=True)
        _, projects, users, jobs = open_page(store, "teams", team="all").tables
        assert list(projects["project"]) == ["llm", "asr", "No project"]
        assert (list(users["user"]), list(jobs["job"])) == (
            ["ada", "bob", "eve"],
            ["101", "102", "103"],
        )
        page = open_page(store, "teams", team="all", project="asr")
        _, projects, users, jobs = page.tables
        assert (len(projects), list(users["user"]), list(jobs["job"])) == (3, ["bob"], ["102"])
        page.app.button(key="all_projects").click().run()
        assert len(page.tables[2]) == 3
        assert "project" not in page.app.query_params


def test_overview_says_that_there_is_no_report_yet(site_store, open_page):
    page = open_page(site_store)
    assert "What would win it back No report has been made yet" in page.text


def test_a_team_opens_to_its_users_and_jobs(site_store, open_page):
    page = open_page(site_store, "teams", team="language")
    _, users, jobs = page.tables
    assert list(users["user"]) == ["ada"]
    assert list(jobs["job"]) == ["101"]
    assert round(jobs["cost"].iloc[0], 2) == 2305.55
    page.app.button(key="all_teams").click().run()
    assert len(page.tables) == 1
    assert "team" not in page.app.query_params


def test_a_team_has_its_statement_and_its_adjustments_beside_the_cost(store, open_page, site):
    site.fill(store)
    credit = Adjustment(month=Month(2026, 10), team="language", kind="credit", currency="USD",
                        amount=Decimal("-20.50"), reason="slow", author="ada")  # fmt: skip
    with store.work() as work:
        entered = put_adjustment(work, credit, at=site.UNTIL)
        decide(work, entered.adjustment_id, approve=True, actor="bob", at=site.UNTIL)
    october = {"from_": "2026-10-01", "to": "2026-10-31"}
    page = open_page(store, "teams", **october)
    assert list(page.tables[-1]["cost"]) == ["-20.50"]
    page = open_page(store, "teams", team="language", **october)
    assert list(page.tables[-1]["adjustment_id"]) == ["A-0001"]
    labels = [button.label for button in page.app.get("download_button")]
    assert "Statement 2026-10, PDF" in labels


def test_health_shows_coverage_gap_and_unmapped_holder(site_store, open_page):
    text = open_page(site_store, "health").text
    assert "99.9% of GPU time has a known holder and a measured activity" in text
    assert "big-1 activity 2026-10-21 06:00 2026-10-21 08:00 2 h 4.0" in text
    assert "Holders without a team Map them: unstrand org load FILE User GPU-hours eve 336" in text
    assert "Every installed GPU model has a price." in text


@pytest.mark.parametrize("name", PAGES)
def test_every_page_shows_window_and_coverage_and_offers_its_table(site_store, open_page, name):
    page = open_page(site_store, name)
    assert "coverage 99.9%" in page.text
    assert "2026-10-05 to 2026-11-01" in page.text
    labels = {element.proto.label for element in page.app.get("download_button")}
    assert labels == {"Download CSV", "Download Parquet"}


@pytest.mark.parametrize("name", PAGES)
def test_a_demo_says_so_on_every_page(tmp_path, open_page, site, name):
    from collector.store import Store

    with Store.open(tmp_path / "demo.duckdb", clock=lambda: site.UNTIL) as store:
        with store.work() as work:
            work.append("store_info", {"key": ["kind"], "value": ["demo"]})
            work.append_facts([*site._nodes(), *site._windows()])
        assert "Nothing here was measured" in open_page(store, name).text


@pytest.mark.parametrize("name", PAGES)
def test_the_address_chooses_language_and_zone(site_store, open_page, name):
    page = open_page(site_store, name, lang="ko", tz="Asia/Seoul")
    assert "확인율" in page.text
    assert "Asia/Seoul" in page.text
    assert "coverage" not in page.text


def test_an_impossible_address_is_told_and_the_default_shown(site_store, open_page):
    page = open_page(site_store, from_="yesterday", tz="Mars/Base")
    told = [warning.value for warning in page.app.warning]
    assert any("from = yesterday" in text for text in told)
    assert any("tz = Mars/Base" in text for text in told)
    assert "2026-10-05 to 2026-11-01 · 28 days · UTC" in page.text


def test_choosing_the_last_week_goes_into_the_address(site_store, open_page):
    page = open_page(site_store)
    page.app.segmented_control(key="preset").select("7 d").run()
    assert page.app.query_params["from"] in ("2026-10-26", ["2026-10-26"])
    assert "2026-10-26 to 2026-11-01 · 7 days" in page.text


def test_a_cluster_or_currency_that_is_not_there_is_told(site_store, open_page):
    page = open_page(site_store, cluster="nowhere", currency="XXX")
    told = " ".join(warning.value for warning in page.app.warning)
    assert "cluster = nowhere" in told
    assert "currency = XXX" in told
    assert "5,318 USD" in page.text


def test_money_is_shown_in_another_currency_by_its_dated_rate(store, open_page, site):
    site.fill(store)
    with store.work() as work:
        work.append(
            "currency_rate",
            {
                "from_currency": ["USD"],
                "to_currency": ["EUR"],
                "rate": ["0.5"],
                "effective_from": [site.SINCE],
                "source": ["test"],
            },
        )
    page = open_page(store, from_="2026-10-19", to="2026-11-01", currency="EUR")
    assert "2,659 EUR" in page.text, "half of 5,318 USD"
    labels = [element.label for element in page.app.selectbox]
    assert "Currency" in labels


def test_a_rate_that_is_missing_is_told_with_what_to_do(store, open_page, site):
    site.fill(store)
    late = {"from_currency": ["USD"], "to_currency": ["EUR"], "rate": ["0.5"]}
    with store.work() as work:
        work.append("currency_rate", late | {"effective_from": [site.UNTIL], "source": ["test"]})
    page = open_page(store, from_="2026-10-19", to="2026-11-01", currency="EUR")
    assert "currency_rate" in page.app.error[0].value


def test_a_team_shows_what_was_issued_of_its_month(store, open_page, site):
    site.fill(store)
    days = [datetime(2026, 10, day, tzinfo=UTC).date() for day in range(1, 32)]
    same = {"cluster": site.CLUSTER, "closed_by": "ada", "coverage_ratio": Decimal(1)}
    same |= dict.fromkeys(("ledger_hash", "price_hash", "org_hash", "rules_version"), "x")
    now = site.UNTIL + timedelta(days=9)
    with store.work() as work:
        columns = {name: [value] * 31 for name, value in (same | {"closed_at": now}).items()}
        work.append("closed_day", {"day": days} | columns)
    draft = statement_of(store, "language", Asked(Month(2026, 10)), now=now)
    with store.work() as work:
        version = next_version(work, draft, [])
        put_issue(work, version, [], {("html", "en"): b"as it went out"}, at=now, actor="ada")
    page = open_page(store, "teams", team="language", from_="2026-10-19", to="2026-11-01")
    total = f"{draft.total:,.2f} USD"
    assert f"Issued as version 1 ({draft.statement_id}), 2026-11-11 00:00: {total}." in page.text
