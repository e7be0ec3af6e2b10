"""Statements of a month add up to the fleet to the last coin, whatever the month holds."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest

from analytics.adjustments import Adjustment, decide, put_adjustment
from analytics.carbon import load_intensities, read_intensities
from analytics.currency_rates import CurrencyRate, load_rates
from analytics.errors import PriceError, ReportError, StatementError, WindowError
from analytics.ledger import ensure_built
from analytics.ledger.byholder import add_up_by_holder
from analytics.ledger.closing import close_day
from analytics.months import Month
from analytics.overhead import Overhead, load_overhead
from analytics.prices import Price, load_prices
from analytics.reports import cost_report
from analytics.statements import Asked, statement_of, statements
from analytics.statements.issue import (
    issue_rows,
    issued_document,
    issued_file,
    next_version,
    put_issue,
)
from analytics.statements.statement import Change
from analytics.who_pays import Unallocated, put_unallocated
from analytics.window import EPOCH

NOW = datetime(2026, 11, 4, 9, 30, tzinfo=UTC)
OCTOBER = Month(2026, 10)
CENT = Decimal("0.01")


@pytest.fixture
def site3(site):
    """Three teams with thirds of a cent; a preempted run; a starved node."""
    site.hours = 26
    site.node("n1").node("n2", gpus=4, model="t4").known()
    site.price("1.111111").price("0.333333", model="t4")
    for nth, team in enumerate(("A", "B", "C")):
        site.run(gpus=1, until=7 + nth / 3, util=0.31, account=team, user=f"u{nth}")
        site.team(team, account=team)
    site.run(gpus=1, node="n2", cpus=64, since=1.1, until=25.7, account="A")
    site.run(gpus=2, since=9, until=11, account="nobody")
    return site.built()


def bills(site, **more):
    return statements(site.store, Asked(OCTOBER, **more), now=NOW)


def adjust(site, team, amount, *, approve=True, **more):
    entry = Adjustment(
        month=OCTOBER, team=team, kind="manual", amount=Decimal(amount), author="ada",
        reason="test", **{"currency": "USD"} | more,
    )  # fmt: skip
    with site.store.work() as work:
        found = put_adjustment(work, entry, at=NOW)
        if approve:
            decide(work, found.adjustment_id, approve=True, actor="bob", at=NOW)


COINS = {"USD": CENT, "KRW": Decimal(1), "KWD": Decimal("0.001")}


@pytest.mark.parametrize("rule", list(Unallocated))
def test_all_statements_add_up_to_the_fleet_to_the_last_coin(site3, rule):
    with site3.store.work() as work:
        put_unallocated(work, rule, since=EPOCH, actor="ada")
        rates = [
            CurrencyRate(from_currency="USD", to_currency=to, rate=Decimal(rate),
                         effective_from=EPOCH, source="bank")
            for to, rate in (("KRW", "1391.27"), ("KWD", "0.30713"))
        ]  # fmt: skip
        load_rates(work, rates, at=NOW, actor="ada")
        rows = [
            Overhead(month=OCTOBER, name=name, amount=Decimal("10.00"), currency="USD", rule=name)
            for name in ("held", "cost", "even")
        ]
        load_overhead(work, rows, at=NOW, actor="ada")
    adjust(site3, "A", "-0.37")
    for currency, coin in COINS.items():
        add_up(site3, currency, coin)


def add_up(site3, currency, coin):
    found = bills(site3, currency=currency)
    report = cost_report(site3.store, OCTOBER.window(), ("team",), currency=currency)
    assert sum(s.gpu_time for s in found) == found[0].fleet_gpu_time
    assert abs(found[0].fleet_gpu_time - report.total["cost"]) <= coin / 2
    for nth, share in enumerate(("cost", "even", "held")):
        parts = [s.overhead[nth] for s in found if s.team is not None]
        assert {part.name for part in parts} == {share}
        assert sum(part.amount for part in parts) == parts[0].whole
    for statement in found:
        row = next(r for r in report.rows if r["team"] == statement.team)
        assert abs(statement.gpu_time - row["cost"]) < coin
        assert sum(line.amount for line in statement.lines) == statement.gpu_time
        assert sum(line.amount for line in statement.by_model) == statement.gpu_time
        assert (
            statement.team is None
            or sum(line.amount for line in statement.by_user) == statement.gpu_time
        )
        assert statement.total == statement.gpu_time + sum(
            part.amount for part in (*statement.overhead, *statement.adjustments)
        )
        assert all(line.amount == line.amount.quantize(coin) for line in statement.lines)


def test_hours_are_those_of_the_cost_report(site3):
    report = cost_report(site3.store, OCTOBER.window(), ("team",))
    for statement in bills(site3):
        row = next(r for r in report.rows if r["team"] == statement.team)
        assert statement.held_gpu_hours == row["held_gpu_hours"]
        assert statement.coverage_ratio == row["coverage_ratio"]
        assert (
            sum(s.gpu_hours for s in statement.stranded)
            == pytest.approx(row["stranded_gpu_hours"], abs=Decimal("1e-8"))
            or statement.team is None
        )


def test_a_preempted_run_is_lost_of_its_team_and_paid_by_whoever_preempted(site):
    site.hours = 2
    site.node(gpus=1).known().price("10.00").team("A", account="a").team("B", account="b")
    site.run(gpus=1, until=1, util=1.0, account="a", state="PREEMPTED", run_id="first")
    site.run(gpus=1, since=1, util=1.0, account="b", run_id="second")
    site.checkpoint(0.5, "first")
    site.built()
    a, b, _ = bills(site)
    lost = {s.team: next(line for line in s.lines if line.name == "lost") for s in (a, b)}
    assert (lost["A"].gpu_hours, lost["A"].amount) == (Decimal("0.5"), 0)
    assert (lost["B"].gpu_hours, lost["B"].amount) == (0, Decimal("5.00"))
    assert b.total == 15


def test_a_pending_adjustment_is_told_and_not_counted(site3):
    adjust(site3, "B", "5.00", approve=False)
    b = statement_of(site3.store, "b", Asked(OCTOBER), now=NOW)
    assert (len(b.adjustments), len(b.pending)) == (0, 1)
    assert b.total == b.gpu_time


def test_a_team_that_held_nothing_owes_nothing_and_an_unknown_one_is_refused(site3):
    site3.team("Quiet", account="quiet")
    quiet = statement_of(site3.store, "Quiet", Asked(OCTOBER), now=NOW)
    assert (quiet.total, quiet.held_gpu_hours, quiet.coverage_ratio) == (0, 0, None)
    assert [line.name for line in quiet.lines] == [
        "used", "lost", "allocated_idle", "allocated_unmeasured",
    ]  # fmt: skip
    with pytest.raises(StatementError, match="no team 'Quite': there is Quiet"):
        statement_of(site3.store, "Quite", Asked(OCTOBER), now=NOW)
    with pytest.raises(ReportError, match="there is c"):
        statement_of(site3.store, "A", Asked(OCTOBER, cluster="elsewhere"), now=NOW)
    with pytest.raises(WindowError, match="Mars"):
        statement_of(site3.store, "A", Asked(OCTOBER, "Mars/Base"), now=NOW)


def test_a_month_that_is_not_over_is_billed_up_to_the_last_full_hour(site3):
    now = site3.window.since + timedelta(hours=5, minutes=40)
    (a, *_) = statements(site3.store, Asked(OCTOBER), now=now)
    assert a.window.until == site3.window.since + timedelta(hours=5)
    assert not a.final
    with pytest.raises(StatementError, match="2026-11 has not begun"):
        statements(site3.store, Asked(Month(2026, 11)), now=now)


def test_a_month_without_any_price_is_refused_and_one_with_a_gap_is_never_final(site):
    site.hours = 24
    site.node(gpus=1, model="riva").known().team("A", account="lab").run(gpus=1)
    site.built()
    with pytest.raises(StatementError, match="nothing of 2026-10 has a price"):
        bills(site)
    site.node("n2", gpus=1).price("1.00").built()
    a, _ = bills(site)
    assert a.unpriced_gpu_hours == 24
    assert "24.000000000 GPU-hours have no price" in a.remarks[0]
    assert not a.final


def test_an_empty_store_has_no_statement(store):
    with pytest.raises(StatementError, match="nothing is installed"):
        statements(store, Asked(OCTOBER), now=NOW)


def test_currencies_are_not_mixed_in_a_statement(site3):
    adjust(site3, "A", "-1.00", currency="EUR")
    with pytest.raises(PriceError, match="no rate from EUR to USD"):
        bills(site3)
    with pytest.raises(PriceError, match="no rate from USD to EUR"):
        bills(site3, currency="EUR")


def test_a_statement_of_closed_days_says_the_same_whatever_is_loaded_later(site):
    site.hours = 24
    site.node(gpus=1, since=-96).known(-96).price("1.00").team("A", account="lab")
    site.run(gpus=1, since=-96, until=20)
    site.save()
    asked, now = Asked(OCTOBER), datetime(2026, 10, 3, tzinfo=UTC)
    ensure_built(site.store, asked.window(now))
    for nth in range(2):
        day = OCTOBER.first + timedelta(days=nth)
        close_day(site.store, "c", day, actor="ada", now=NOW, least_coverage=Decimal(0))
    first = statement_of(site.store, "A", asked, now=now)
    assert (first.closed_days, first.days, first.total) == (2, 2, Decimal("48.00"))
    assert not first.final, "the month goes on"
    dearer = Price(gpu_model="h100", amount=Decimal(9), currency="USD", kind="contracted",
                   source="test")  # fmt: skip
    with site.store.work() as work:
        load_prices(work, [dearer], at=NOW + timedelta(days=1), actor="ada")
    ensure_built(site.store, asked.window(now))
    later = statement_of(site.store, "A", asked, now=now)
    assert later.statement_id == first.statement_id


def test_a_statement_is_final_when_every_day_of_the_month_is_closed(site):
    site.hours = 24
    site.node(gpus=1, until=24).known().price("1.00").team("A", account="lab")
    site.run(gpus=1, util=1.0)
    site.built()
    days = [OCTOBER.first + timedelta(days=nth) for nth in range(31)]
    hashes = ("ledger_hash", "price_hash", "org_hash", "rules_version")
    row = {"cluster": "c", "closed_at": NOW, "closed_by": "ada", "coverage_ratio": Decimal(1)}
    row |= dict.fromkeys(hashes, "x")
    with site.store.work() as work:
        work.append("closed_day", {"day": days} | {k: [v] * 31 for k, v in row.items()})
    a = bills(site)[0]
    assert (a.closed_days, a.days, a.final) == (31, 31, True)
    with site.store.work() as work:
        work.execute("UPDATE closed_day SET reopened_at = ? WHERE day = ?", [NOW, days[30]])
    a = bills(site)[0]
    assert (a.closed_days, a.final) == (30, False)
    with site.store.work() as work:
        work.execute("UPDATE closed_day SET reopened_at = NULL")
        work.execute("DELETE FROM ledger_hour WHERE hour = ?", [site.window.since])
        add_up_by_holder(work, "c", (site.window.since, site.window.until))
    a = bills(site)[0]
    assert not a.final
    assert "what is posted and what is installed differ" in a.remarks[-1]


def test_the_rules_that_changed_within_the_month_are_told_with_their_dates(site3):
    noon = site3.window.since + timedelta(hours=12)
    with site3.store.work() as work:
        put_unallocated(work, Unallocated.USE, since=noon, actor="ada")
    a = bills(site3)[0]
    rows = [(row.payer, row.since) for row in a.rules.who_pays if row.name == "unallocated"]
    assert rows == [("platform", None), ("use", noon)]
    assert {row["gpu_model"] for row in a.rules.prices} == {"h100", "t4"}
    assert a.rules.price_kinds == ["contracted"]
    assert a.rules.price_book is not None


@pytest.fixture
def closed_month(site):
    """A month of one GPU for a day, every day of it closed."""
    site.hours = 24
    site.node(gpus=1, until=24).known().price("1.00").team("A", account="lab")
    site.run(gpus=1, util=0.5)
    site.built()
    days = [OCTOBER.first + timedelta(days=nth) for nth in range(31)]
    hashes = ("ledger_hash", "price_hash", "org_hash", "rules_version")
    row = {"cluster": "c", "closed_at": NOW, "closed_by": "ada", "coverage_ratio": Decimal(1)}
    row |= dict.fromkeys(hashes, "x")
    with site.store.work() as work:
        work.append("closed_day", {"day": days} | {k: [v] * 31 for k, v in row.items()})
    return site


def cells_of(statement):
    paid = (True, "observed", "")
    cells = [("class", x.name, x.gpu_hours, x.amount, *paid) for x in statement.lines]
    entries = [(e.adjustment.adjustment_id, e.amount) for e in statement.adjustments]
    return cells + [("adjustment", name, None, amount, *paid) for name, amount in entries]


def issue(site, statement):
    """Issue it; the statement as it was frozen, or None where nothing changed."""
    with site.store.work() as work, work.transaction():
        version = next_version(work, statement, cells_of(statement))
        if version is not None:
            files = {("html", "en"): b"<html>", ("csv", None): b"a,b"}
            put_issue(work, version, cells_of(version), files, at=NOW, actor="ada")
    return version


def test_an_issued_statement_is_rows_and_the_same_bytes_for_ever(closed_month):
    first = issue(closed_month, bills(closed_month)[0])
    assert (first.version, first.corrects) == (1, None)
    with closed_month.store.work() as work:
        (row,) = issue_rows(work, OCTOBER)
        document = issued_document(work, row["issue_id"])
        lines = work.rows("SELECT section, item, gpu_hours, amount FROM statement_line "
                          "WHERE charged AND amount > 0 ORDER BY place")  # fmt: skip
    assert (row["team"], row["version"], row["total"]) == ("A", 1, Decimal("24.00"))
    assert row["price_book"] == first.rules.price_book
    assert row["org_version"] == first.rules.org_version
    assert row["demand_profiles"] == first.rules.demand_profiles
    assert row["rules_version"] == first.rules.rules_version
    assert [(line["item"], line["gpu_hours"], line["amount"]) for line in lines] == [
        ("used", 12, 12), ("allocated_idle", 12, 12)
    ]  # fmt: skip
    assert issue(closed_month, bills(closed_month)[0]) is None, "it says the same"
    adjust(closed_month, "A", "-5")
    issue(closed_month, bills(closed_month)[0])
    with closed_month.store.work() as work:
        assert issued_document(work, row["issue_id"]) == document
        assert issued_file(work, row["issue_id"], "html", "en") == b"<html>"
        assert issued_file(work, row["issue_id"], "csv", "ko") == b"a,b", "it has no language"
        with pytest.raises(StatementError, match="not issued as html in 'ko'"):
            issued_file(work, row["issue_id"], "html", "ko")
        work.execute("UPDATE statement_issue SET document = document || ' '")
        with pytest.raises(StatementError, match="not those that were issued"):
            issued_document(work, row["issue_id"])


def test_what_comes_later_is_the_next_version_with_the_difference(closed_month):
    first = issue(closed_month, bills(closed_month)[0])
    adjust(closed_month, "A", "-5.25")
    second = issue(closed_month, bills(closed_month)[0])
    assert (second.version, second.total) == (2, Decimal("18.75"))
    c = second.corrects
    assert (c.version, c.statement_id, c.difference) == (1, first.statement_id, Decimal("-5.25"))
    assert c.changes == [Change("adjustment", "A-0001", None, Decimal("-5.25"))]
    # A late sample turns an hour of idle into use: same money, other lines.
    since = closed_month.window.since
    with closed_month.store.work() as work:
        work.execute("UPDATE sample SET util_ratio = 1 WHERE ts <= ?", [since + timedelta(hours=1)])
        work.execute("DELETE FROM ledger_build WHERE hour = ?", [since])
    ensure_built(closed_month.store, closed_month.window)
    third = issue(closed_month, bills(closed_month)[0])
    assert (third.version, third.corrects.version, third.corrects.difference) == (3, 2, 0)
    assert [(x.item, x.before, x.amount) for x in third.corrects.changes] == [
        ("allocated_idle", 12, Decimal("11.5")), ("used", 12, Decimal("12.5"))
    ]  # fmt: skip
    with closed_month.store.work() as work:
        assert [row["version"] for row in issue_rows(work, OCTOBER, "A")] == [1, 2, 3]


def test_a_provisional_statement_is_not_issued(site3):
    with site3.store.work() as work, pytest.raises(StatementError, match="0 of 31 days are closed"):
        next_version(work, bills(site3)[0], [])


def test_a_version_that_somebody_else_issued_meanwhile_is_refused(closed_month):
    statement = bills(closed_month)[0]
    with closed_month.store.work() as work:
        version = next_version(work, statement, cells_of(statement))
    issue(closed_month, statement)
    with closed_month.store.work() as work, pytest.raises(StatementError, match="meanwhile"):
        put_issue(work, version, [], {}, at=NOW, actor="bob")


def test_energy_and_carbon_stand_on_the_statement_with_their_kind(closed_month):
    sheet = "grams_per_kwh,pue,effective_from\n400,1.25,2026-01-01\n"
    with closed_month.store.work() as work:
        # 300 W all day, by the counter: 7.2 kWh, at 400 g and a PUE of 1.25.
        since = closed_month.window.since
        work.execute("UPDATE sample SET energy_mj = 3e5 * date_diff('second', ?, ts)", [since])
        load_intensities(work, read_intensities(sheet, "c.csv"), at=NOW, actor="ada")
    energy = bills(closed_month)[0].energy
    # The first minute has no reading before it.
    assert float(energy.kwh) == pytest.approx(7.2 * 1439 / 1440, abs=1e-3)
    assert float(energy.carbon_g) == pytest.approx(3600 * 1439 / 1440, abs=1)
    assert energy.number == "observed"


def test_a_statement_without_measured_energy_says_nothing_of_it(closed_month):
    assert bills(closed_month)[0].energy is None
