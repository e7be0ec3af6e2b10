"""The journeys of a morning, in a real browser."""

from __future__ import annotations

import csv
import json
import subprocess
import sys
from decimal import Decimal
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest

pytestmark = pytest.mark.real
WINDOW = {"since": "2026-10-19", "until": "2026-11-02"}
ADDRESS = "?from=2026-10-19&to=2026-11-01"


def api(url, path, **query):
    answer = httpx.get(f"{url}/api/v1/{path}", params=query, timeout=60, trust_env=False)
    answer.raise_for_status()
    return answer.json()


def cli(db, *arguments):
    command = [sys.executable, "-m", "unstrand", "report", *arguments, "--db", str(db)]
    answer = subprocess.run(
        [*command, "--since", WINDOW["since"], "--until", WINDOW["until"], "--format", "json"],
        capture_output=True,
        text=True,
        check=True,
    )
    return json.loads(answer.stdout)


def query_of(page):
    return {name: values[0] for name, values in parse_qs(urlsplit(page.url).query).items()}


def test_the_link_of_a_page_may_be_the_first_one_opened(visit):
    window = visit()
    window.open(f"/teams{ADDRESS}")
    navigation = window.page.inner_text('[data-testid="stSidebar"]')
    assert "Data health" in navigation, "not a list of files"
    display = window.page.eval_on_selector(".us .section", "e => getComputedStyle(e).display")
    assert display == "flex", "the house style is there"


def test_from_the_answer_to_a_job_and_a_file(visit, url):
    window = visit()
    window.open(f"/{ADDRESS}")
    page = window.page
    assert "Where did the GPU money go?" in window.text()
    page.wait_for_selector(".js-plotly-plot .barlayer", timeout=90_000)
    window.shoot("overview-wide")

    page.get_by_role("link", name="Teams").click()
    page.wait_for_selector("text=Who used it, and how well?", timeout=90_000)
    window.settled()
    assert query_of(page)["from"] == "2026-10-19", "the window goes along"
    window.shoot("teams-wide")

    # The second row is team language; the first column holds the mark that chooses a row.
    table = page.locator('[data-testid="stDataFrame"]').first
    table.scroll_into_view_if_needed()
    box = table.bounding_box()
    page.mouse.click(box["x"] + 18, box["y"] + 87)
    page.wait_for_selector("text=Users of language", timeout=90_000)
    window.settled()
    assert query_of(page)["team"] == "language"
    window.shoot("teams-drill-wide")

    with page.expect_download() as download:
        page.get_by_role("button", name="Download CSV").first.click()
    rows = list(csv.DictReader(download.value.path().read_text("utf-8").splitlines()))
    wanted = api(url, "report/cost", **WINDOW)
    assert sum(Decimal(row["cost"]) for row in rows) == Decimal(wanted["total"]["cost"])
    assert {row["team"] or None for row in rows} == {row["team"] for row in wanted["rows"]}

    page.get_by_role("link", name="Data health").click()
    page.wait_for_selector("text=Can I trust this?", timeout=90_000)
    window.settled()
    assert "big-1 activity 2026-10-21 06:00" in window.text()
    window.shoot("health-wide")


def test_from_the_waterfall_to_the_samples_of_a_job(visit):
    window = visit()
    window.open(f"/{ADDRESS}")
    page = window.page
    bar = page.locator(".js-plotly-plot .barlayer .trace path").first
    bar.wait_for(timeout=90_000)
    # The bars come in the order of the ledger; the last one is what was used.
    used = page.locator('[data-testid="stPlotlyChart"]').first.locator(".barlayer .trace path")
    used.last.click(position={"x": 20, "y": 8}, force=True)
    page.wait_for_selector("text=What happened to this job?", timeout=90_000)
    window.settled()
    assert query_of(page)["class"] == "used"
    assert query_of(page)["from"] == "2026-10-19", "the window goes along"
    window.shoot("jobs-wide")

    table = page.locator('[data-testid="stDataFrame"]').first
    box = table.bounding_box()
    page.mouse.click(box["x"] + 18, box["y"] + 52)
    page.wait_for_selector("text=Measured on its GPUs", timeout=90_000)
    page.locator(".js-plotly-plot .heatmaplayer").first.wait_for(timeout=90_000, state="attached")
    window.settled()
    assert query_of(page)["job"] == "102", "it used the most"
    assert "old-1 (2 x T4-16)" in window.text()
    window.shoot("job-wide")


@pytest.mark.parametrize("path", ["/stranding?shape=2x1", "/queue", "/fleet"])
def test_the_link_of_every_new_page_opens_by_itself(visit, path):
    window = visit()
    window.open(path)
    assert "coverage 99.9%" in window.text()
    window.shoot(f"{path[1:].partition('?')[0]}-wide")


def test_page_api_and_command_line_say_the_same(visit, url, db):
    window = visit()
    window.open(f"/{ADDRESS}")
    ledger = api(url, "report/ledger", **WINDOW)
    assert ledger == cli(db, "ledger")
    assert ledger["identity"] == {"gpu_seconds_difference": 0, "cost_difference": "0"}
    assert api(url, "report/cost", **WINDOW, by="team") == cli(db, "cost", "--by", "team")
    total = Decimal(ledger["total"]["cost"])
    used = next(Decimal(row["cost"]) for row in ledger["rows"] if row["class"] == "used")
    shown = window.text()
    assert f"{total.quantize(Decimal(1)):,} USD" in shown
    assert f"{used / total * 100:.1f}% of" in shown
    assert f"coverage {ledger['coverage_ratio'] * 100:.1f}%" in shown


def test_a_link_opens_the_same_view_for_the_next_person(visit):
    window = visit()
    window.open(f"/teams{ADDRESS}&team=language&tz=Asia/Seoul&lang=ko")
    text = window.text()
    assert "2026-10-19 ~ 2026-11-01 · 14일 · Asia/Seoul" in text
    assert "language 팀의 사용자" in text
    window.shoot("teams-korean-wide")


def test_changing_the_language_goes_into_the_address(visit):
    window = visit()
    window.open(f"/{ADDRESS}")
    page = window.page
    page.get_by_test_id("stSidebar").get_by_test_id("stSelectbox").last.click()
    page.get_by_role("option", name="한국어").click()
    page.wait_for_selector("text=GPU 비용은 어디로 갔습니까?", timeout=90_000)
    window.settled()
    assert query_of(page)["lang"] == "ko"
    assert query_of(page)["from"] == "2026-10-19"
    window.shoot("overview-korean-wide")


@pytest.mark.parametrize(
    "path", ["/", "/teams", "/health", "/stranding", "/queue", "/jobs", "/fleet"]
)
def test_a_phone_shows_the_page_without_scrolling_sideways(visit, path):
    window = visit(390, 844)
    window.open(path + ADDRESS)
    window.shoot(f"{path.strip('/') or 'overview'}-phone")
    main = '[data-testid="stMain"]'
    width, inside = (
        window.page.eval_on_selector(main, f"element => element.{name}")
        for name in ("clientWidth", "scrollWidth")
    )
    assert inside <= width


def test_the_api_documentation_opens_without_outside_requests(visit):
    window = visit()
    window.page.goto(f"{window.url}/api/v1/docs")
    assert "/api/v1/report/cost" in window.page.inner_text("body")
