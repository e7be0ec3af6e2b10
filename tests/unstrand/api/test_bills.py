"""Bills over HTTP: the same as over the analytics, written by the writer, refused in one shape."""

from __future__ import annotations

import asyncio
import base64
import shutil
import threading
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import httpx
import pytest
from fastapi import FastAPI

from analytics.months import Month
from analytics.statements import Asked, statements
from collector.store import Store
from unstrand.api.app import api_app
from unstrand.service.core import Service

OCTOBER = {"month": "2026-10"}
CREDIT = {"month": "2026-10", "team": "language", "kind": "credit", "amount": "-2.50",
          "reason": "slow", "author": "ada"}  # fmt: skip


@pytest.fixture(scope="module")
def filled(tmp_path_factory, site):
    """The small site's file, built once."""
    return site.create(tmp_path_factory.mktemp("bills") / "site.duckdb")


@pytest.fixture
def store(filled, tmp_path, site):
    """A copy of it that a test may change."""
    with Store.open(shutil.copy(filled, tmp_path / "s.duckdb"), clock=lambda: site.UNTIL) as own:
        yield own


@pytest.fixture
def running(store, site):
    """The small site in a service whose writer runs, at a time when the month is over."""
    service = Service.over(store, lambda: site.UNTIL + timedelta(days=9))
    service.writer.start()
    yield api_app(service)
    service.writer.stop()


@pytest.fixture
def ask(running: FastAPI):
    """``ask("POST", path, json=...)``, answered in this process."""

    def call(method, path, **options) -> httpx.Response:
        async def one():
            transport = httpx.ASGITransport(running, raise_app_exceptions=False)
            async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as c:
                return await c.request(method, path, **options)

        return asyncio.run(one())

    return call


def test_statements_are_those_of_the_analytics(ask, store, site):
    now = site.UNTIL + timedelta(days=9)
    wanted = statements(store, Asked(Month(2026, 10)), now=now)
    answer = ask("GET", "/statements", params=OCTOBER | {"forms": "csv"}).json()["statements"]
    assert [{**one, "files": {}} for one in answer] == [
        {**statement.with_id(), "issued": None, "files": {}} for statement in wanted
    ]
    text = base64.b64decode(answer[0]["files"]["statement-language-2026-10.csv"]).decode()
    assert wanted[0].statement_id in text
    cost = ask("GET", "/report/cost", params={"since": "2026-10-01", "until": "2026-11-01"}).json()
    rows = {row["team"]: float(row["cost"]) for row in cost["rows"]}
    for one in answer:
        assert abs(float(one["gpu_time"]) - rows[one["team"]]) < 0.01


def test_an_adjustment_is_entered_decided_and_logged(ask):
    entered = ask("POST", "/adjustments", json=CREDIT).json()
    assert (entered["adjustment_id"], entered["state"]) == ("A-0001", "pending")
    own = ask("POST", "/adjustments/A-0001", json={"approve": True, "actor": "ada"})
    assert own.status_code == 400
    assert "somebody else" in own.json()["error"]["remedy"] + own.json()["error"]["what"]
    done = ask("POST", "/adjustments/A-0001", json={"approve": True, "actor": "bob"})
    assert done.json()["state"] == "approved"
    bill = ask("GET", "/statements", params=OCTOBER | {"team": "language"}).json()
    (one,) = bill["statements"]
    assert float(one["total"]) == pytest.approx(float(one["gpu_time"]) - 2.5)
    listed = ask("GET", "/adjustments", params=OCTOBER).json()
    assert [row["adjustment_id"] for row in listed] == ["A-0001"]
    log = ask("GET", "/audit", params={"action": "adjustment"}).json()
    assert [row["actor"] for row in log] == ["ada", "bob"]


def test_books_are_loaded_and_corrected(ask):
    sheet = {"text": "from_currency,to_currency,rate,effective_from\nUSD,EUR,0.5,2026-01-01\n"}
    assert ask("POST", "/rates", json=sheet).json() == {"rows": 1, "new": 1}
    wrong = {"text": sheet["text"].replace("0.5", "0.7")}
    assert "0.5 already" in str(ask("POST", "/rates", json=wrong).json())
    assert ask("POST", "/rates", json=wrong | {"correct": True}).json()["new"] == 1
    assert [float(row["rate"]) for row in ask("GET", "/rates").json()] == [0.7]
    for name in ("commitments", "overhead", "carbon"):
        assert ask("GET", f"/{name}").json() == []


def test_an_invoice_is_reconciled(ask):
    month = {"since": "2026-10-01", "until": "2026-11-01"}
    assert "invoice add" in str(ask("GET", "/report/reconciliation", params=month).json())
    wish = {"month": "2026-10", "source": "Cloud 17", "amount": "5000"}
    assert ask("POST", "/invoices", json=wish).json()["invoice_id"] == "I-0001"
    assert len(ask("GET", "/invoices", params={"month": "2026-10"}).json()) == 1
    total = ask("GET", "/report/reconciliation", params=month).json()["total"]
    outside, ledger = (Decimal(total[f"{name}_cost"]) for name in ("outside", "ledger"))
    assert outside - ledger == Decimal(total["cost"])
    week = {"since": "2026-10-20", "until": "2026-10-27"}
    assert "no calendar month" in str(ask("GET", "/report/reconciliation", params=week).json())
    gone = ask("POST", "/invoices/I-0001/retire", json={"reason": "twice", "actor": "bob"})
    assert gone.status_code == 200
    assert ask("GET", "/invoices").json() == []


def test_recovery_commitments_and_energy_answer_for_a_window(ask):
    week = {"since": "2026-10-20", "until": "2026-10-27"}
    recovery = ask("GET", "/report/recovery", params=week).json()
    assert [row["item"] for row in recovery["rows"]] == ["A100-80", "T4-16"]
    assert ask("GET", "/report/commitments", params=week).json()["rows"] == []
    spot = ask("GET", "/report/spot", params=week).json()
    assert (spot["rows"], "no preempted run" in spot["remarks"][-1]) == ([], True)
    energy = ask("GET", "/report/energy", params=week).json()
    assert energy["rows"] == []
    assert "no sample" in energy["remarks"][-1]


def test_settings_and_payers_are_set_and_listed(ask):
    wish = {"class": "unallocated", "payer": "use", "since": "2026-11-05", "actor": "ada"}
    assert ask("POST", "/who-pays", json=wish).status_code == 200
    setting = {"key": "headroom_gpus", "value": "2", "since": "2026-11-05"}
    assert ask("POST", "/settings", json=setting).status_code == 200
    rows = {row["key"]: row["value"] for row in ask("GET", "/settings").json()}
    assert (rows["who pays: unallocated"], rows["headroom_gpus"]) == ("use", "2")


def test_checkpoint_intervals_are_declared_replaced_removed_and_logged(ask, site):
    wish = {"account": "lang", "job_name": "train", "since": "2026-10-19", "actor": "ada"}
    assert ask("POST", "/checkpoint-intervals", json=wish | {"interval_s": 3600}).status_code == 200
    assert ask("POST", "/checkpoint-intervals", json=wish | {"interval_s": 1800}).status_code == 200
    (row,) = ask("GET", "/checkpoint-intervals").json()
    assert (row["account"], row["job_name"], row["interval_s"]) == ("lang", "train", 1800)
    assert ask("POST", "/checkpoint-intervals/remove", json=wish).json() == {"removed": True}
    assert ask("GET", "/checkpoint-intervals").json() == []
    gone = ask("POST", "/checkpoint-intervals/remove", json=wish)
    assert (gone.status_code, "no checkpoint interval" in str(gone.json())) == (400, True)
    log = ask("GET", "/audit", params={"action": "checkpoint"}).json()
    assert {(row["action"], row["before_value"], row["after_value"]) for row in log} == {
        ("checkpoint.declare", None, "3600 s"), ("checkpoint.declare", "3600 s", "1800 s"),
        ("checkpoint.remove", "1800 s", None),
    }  # fmt: skip
    ask("POST", "/close", json={"day": "2026-10-20", "cluster": site.CLUSTER})
    for path, more in (("", {"interval_s": 60}), ("/remove", {})):
        late = ask("POST", f"/checkpoint-intervals{path}", json=wish | more)
        assert (late.status_code, "is closed" in str(late.json())) == (400, True)


def test_a_day_is_closed_and_then_refuses_rules_of_before(ask, site):
    closed = ask("POST", "/close", json={"day": "2026-10-20", "cluster": site.CLUSTER}).json()
    assert (closed["day"], closed["cluster"]) == ("2026-10-20", "small")
    wish = {"class": "lost", "payer": "platform", "since": "2026-10-20"}
    assert "is closed" in str(ask("POST", "/who-pays", json=wish).json())


@pytest.fixture
def october_is_closed(store, site):
    days = [datetime(2026, 10, day, tzinfo=UTC).date() for day in range(1, 32)]
    same = {"cluster": site.CLUSTER, "closed_at": site.UNTIL, "closed_by": "ada",
            "coverage_ratio": Decimal(1)}  # fmt: skip
    hashes = ("ledger_hash", "price_hash", "org_hash", "rules_version")
    same |= dict.fromkeys(hashes, "x")
    with store.work() as work:
        work.append("closed_day", {"day": days} | {k: [v] * 31 for k, v in same.items()})


def test_statements_are_issued_listed_and_given_out_again(ask, october_is_closed):
    done = ask("POST", "/statements/issue", json=OCTOBER | {"actor": "ada"}).json()["issued"]
    assert [(one["team"], one["version"], one["new"]) for one in done] == [
        ("language", 1, True), ("speech", 1, True), ("unmapped", 1, True), (None, 1, True),
    ]  # fmt: skip
    again = ask("POST", "/statements/issue", json=OCTOBER).json()["issued"]
    assert [(one["issue_id"], one["new"]) for one in again] == [
        (one["issue_id"], False) for one in done
    ]
    name = done[0]["issue_id"]
    path = f"/statements/issued/{name}"
    forms = {"forms": "html,csv,json", "language": "ko"}
    first = ask("GET", path, params=forms).json()["files"]
    assert sorted(first) == [f"statement-language-2026-10-v1.{f}" for f in ("csv", "html", "json")]
    ask("POST", "/adjustments", json=CREDIT)
    ask("POST", "/adjustments/A-0001", json={"approve": True, "actor": "bob"})
    later = ask("POST", "/statements/issue", json=OCTOBER | {"team": "language"}).json()["issued"]
    assert (later[0]["version"], later[0]["new"]) == (2, True)
    assert ask("GET", path, params=forms).json()["files"] == first, "the same bytes"
    listed = ask("GET", "/statements/issued", params=OCTOBER | {"team": "language"}).json()
    assert [row["version"] for row in listed["issued"]] == [1, 2]
    page = ask("GET", f"/statements/issued/{later[0]['issue_id']}", params={"forms": "html"}).json()
    html = base64.b64decode(page["files"]["statement-language-2026-10-v2.html"]).decode()
    assert "Version 2: it takes the place of version 1" in html
    assert "-2.50 USD" in html
    draft = ask("GET", "/statements", params=OCTOBER | {"team": "language"}).json()["statements"][0]
    assert (draft["issued"]["version"], draft["version"]) == (2, None)


@pytest.mark.parametrize(
    ("method", "path", "content", "word"),
    [
        ("POST", "/statements/issue", {"json": OCTOBER}, "provisional"),
        ("GET", "/statements/issued/S-9", {}, "S-9"),
    ],
)
def test_what_was_not_issued_is_said(ask, method, path, content, word):
    answer = ask(method, path, **content)
    assert (answer.status_code, word in str(answer.json())) == (400, True)


def test_a_day_is_closed_by_the_writer_after_what_was_sent_before(ask, site, monkeypatch):
    from unstrand.api import rules

    real, by = rules.close_in, []

    def seen(work, closing):
        by.append(threading.current_thread().name)
        return real(work, closing)

    monkeypatch.setattr(rules, "close_in", seen)
    wish = {"day": "2026-10-20", "cluster": site.CLUSTER}
    assert ask("POST", "/close", json=wish).status_code == 200
    again = ask("POST", "/close", json=wish)
    assert (again.status_code, "is closed already" in str(again.json())) == (400, True)
    assert by == ["unstrand-writer"] * 2


@pytest.mark.parametrize(
    ("method", "path", "content", "word"),
    [
        ("POST", "/checkpoint-intervals", {"json": {"since": "x", "interval_s": 1}}, "time"),
        (
            "POST",
            "/checkpoint-intervals",
            {"json": {"since": "2026-10-19", "interval_s": 0}},
            "above 0",
        ),
        ("GET", "/statements", {"params": {"month": "2026-13"}}, "write 2026-10"),
        ("GET", "/statements", {"params": OCTOBER | {"team": "x"}}, "no team"),
        ("GET", "/statements", {"params": OCTOBER | {"team": "x", "platform": "1"}}, "one of them"),
        ("GET", "/statements", {"params": OCTOBER | {"forms": "docx"}}, "docx"),
        ("GET", "/statements", {"params": OCTOBER | {"cluster": "x"}}, "no cluster"),
        ("GET", "/statements", {"params": {}}, "month"),
        ("POST", "/adjustments", {"json": CREDIT | {"amount": "2.50"}}, "below 0"),
        ("POST", "/adjustments", {"json": CREDIT | {"amount": "much"}}, "no number"),
        ("POST", "/adjustments", {"json": CREDIT | {"team": "lang"}}, "there is language"),
        ("POST", "/adjustments/A-9", {"json": {"approve": True, "actor": "b"}}, "A-9"),
        ("GET", "/adjustments", {"params": {"month": "x"}}, "write 2026-10"),
        ("GET", "/audit", {"params": {"since": "x"}}, "no time"),
        ("POST", "/invoices", {"json": {"month": "2026-10", "source": "x"}}, "an amount"),
        ("POST", "/invoices/I-9/retire", {"json": {"reason": "x"}}, "I-9"),
        ("GET", "/report/energy", {"params": {"by": "colour"}}, "colour"),
        ("POST", "/rates", {"json": {"text": "a,b\n"}}, "lacks"),
        ("POST", "/close", {"json": {"day": "x", "cluster": "small"}}, "no day"),
        ("POST", "/close", {"json": {"day": "2026-10-20", "cluster": "x"}}, "no cluster"),
        ("POST", "/settings", {"json": {"key": "x", "value": "1", "since": "2026-11-05"}}, "x"),
    ],
)
def test_what_is_wrong_is_refused_in_the_one_shape(ask, method, path, content, word):
    answer = ask(method, path, **content)
    assert answer.status_code in (400, 404), answer.text
    error = answer.json()["error"]
    assert set(error) == {"what", "where", "remedy"}
    assert word in f"{error['what']} {error['remedy']} {error['where']}"
