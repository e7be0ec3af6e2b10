"""One store through the command line, the API and the pages: the same to the cent."""

from __future__ import annotations

import asyncio
import importlib.util
from datetime import timedelta
from decimal import Decimal
from pathlib import Path

import httpx
import pytest

from analytics.adjustments import Adjustment, decide, put_adjustment
from analytics.ledger import ensure_built
from analytics.ledger.closing import close_day
from analytics.months import Month
from analytics.window import Window
from collector.model import NodeState
from collector.store import Store
from dashboard import connection, data
from unstrand.api.app import api_app
from unstrand.service.core import Service

_spec = importlib.util.spec_from_file_location(
    "small_site", Path(__file__).parents[2] / "small_site.py"
)
site = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(site)

NOW = site.UNTIL + timedelta(days=9)
KEYS = ("team", "user", "project", "node", "day")
CASES = [("whole", key) for key in KEYS] + [("cut", key) for key in ("team", "node")]
WINDOWS = {  # past the last fact by two days; hours cut at both ends
    "whole": (site.SINCE, site.UNTIL + timedelta(days=2)),
    "cut": (site.SINCE + timedelta(hours=1.5), site.UNTIL - timedelta(hours=3.25)),
}


@pytest.fixture(scope="module")
def told(tmp_path_factory):
    """(path, answers of API and pages) over a store with closed days, a correction of one, and
    adjustments; answers: (view, window, key) -> rows, total, adjusted."""
    path = site.create(tmp_path_factory.mktemp("views") / "site.duckdb")
    with Store.open(path, clock=lambda: NOW) as store:
        _close_and_correct(store)
        service = Service.over(store, lambda: NOW)
        connection.attach(store, service.keeper.past_the_facts)
        app = api_app(service)
        answers = {}
        for name, (since, until) in WINDOWS.items():
            for key in (key for case, key in CASES if case == name):
                asked = {"since": since.isoformat(), "until": until.isoformat(), "by": key}
                window = Window(since, until)
                if name == "whole":  # pages show whole days
                    answers["page", name, key] = _page(store.path, window, key)
                answers["api", name, key] = _json(_get(app, "/report/cost", asked), key)
        connection.detach(store)
    return path, answers


def _close_and_correct(store):
    days = [(site.SINCE + timedelta(days=nth)).date() for nth in range(6)]
    for day in days:
        close_day(store, site.CLUSTER, day, now=NOW, actor="ada", least_coverage=Decimal(0))
    late = NodeState(
        cluster=site.CLUSTER, node="big-2", since=site.SINCE + timedelta(hours=5),
        until=site.SINCE + timedelta(hours=9), state="down", source="late",
    )  # fmt: skip
    entry = Adjustment(
        month=Month(2026, 11), team="language", kind="credit", amount=Decimal("-12.34"),
        currency="USD", reason="slow", author="ada",
    )  # fmt: skip
    with store.work() as work:
        work.append_facts([late])
        found = put_adjustment(work, entry, at=NOW)
        decide(work, found.adjustment_id, approve=True, actor="bob", at=NOW)
    ensure_built(store, Window(site.SINCE, site.UNTIL))
    assert store.value("SELECT count(*) FROM ledger_hour WHERE posting > 0") > 0


def _get(app, path, params):
    async def ask():
        transport = httpx.ASGITransport(app)
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
            answer = await client.get(path, params=params)
            assert answer.status_code == 200, answer.text
            return answer.json()

    return asyncio.run(ask())


def _money(value):
    return None if value is None else Decimal(value)


def _row(row):
    names = ("gpu_hours", "held_gpu_hours", "used_gpu_hours", "stranded_gpu_hours")
    return (_money(row["cost"]), *(round(float(row[name]), 9) for name in names))


def _json(document, key):
    rows = {row[key]: _row(row) for row in document["rows"]}
    adjusted = [(line["adjustment_id"], _money(line["cost"])) for line in document["adjustments"]]
    return rows, _row(document["total"]), adjusted


def _page(path, window, key):
    report = data.cost(path, window, (key,), None)
    rows = {row[key]: _row(row) for row in report.rows}
    adjusted = [(line["adjustment_id"], _money(line["cost"])) for line in report.adjustments]
    return rows, _row(report.total), adjusted


@pytest.mark.parametrize(("name", "key"), CASES)
def test_command_line_api_and_pages_agree_to_the_cent(cli, told, name, key):
    path, answers = told
    since, until = (t.isoformat() for t in WINDOWS[name])
    asked = ("report", "cost", "--by", key, "--since", since, "--until", until, "--db", path)
    mine = _json(cli(*asked, "--json").json, key)
    assert mine == answers["api", name, key]
    assert mine == answers.get(("page", name, key), mine)
    rows, total, adjusted = mine
    assert sum(row[0] or 0 for row in rows.values()) == total[0]
    if name == "whole":
        assert adjusted == [("A-0001", Decimal("-12.34"))]
        # Two days after the last fact: everything is unknown, and counted.
        assert total[1] == 8 * (14 + 2) * 24
    else:
        assert total[1] == 8 * (14 * 24 - 4.75)


def test_every_key_comes_to_the_same_total(told):
    _, answers = told
    for name in WINDOWS:
        assert len({answers["api", case, key][1] for case, key in CASES if case == name}) == 1


def test_a_day_that_still_runs_is_the_same_in_every_view(cli, tmp_path):
    """What is to come of it is `unknown`, and counted: it adds up to what is installed."""
    path = site.create(tmp_path / "site.duckdb")
    now = site.UNTIL + timedelta(hours=10.4)
    window = Window(site.UNTIL - timedelta(days=1), site.UNTIL + timedelta(days=1))
    with Store.open(path, clock=lambda: now) as store:
        service = Service.over(store, lambda: now)
        connection.attach(store, service.keeper.past_the_facts)
        ensure_built(store, Window(window.since, site.UNTIL))
        page = _page(store.path, window, "day")  # first: nobody else has built the running day
        asked = {"since": window.since.isoformat(), "until": window.until.isoformat(), "by": "day"}
        told = _json(_get(api_app(service), "/report/cost", asked), "day")
        connection.detach(store)
    span = ("--since", asked["since"], "--until", asked["until"], "--db", path)
    mine = _json(cli("report", "cost", "--by", "day", *span, "--json").json, "day")
    assert mine == told == page
    rows, total, _ = mine
    assert rows[site.UNTIL.date().isoformat()][1] == 8 * 24
    assert total[1] == 8 * 48
