"""What-if and Advice in a real browser: nothing yet, too little, refused, working, ended, done."""

from __future__ import annotations

import importlib.util
import os
import queue
import re
import signal
import subprocess
import sys
import threading
import tomllib
from pathlib import Path

import pytest

from collector.store import Store

pytestmark = pytest.mark.real
ROOT = Path(__file__).parents[2]
WORDS = {lang: tomllib.loads((ROOT / "dashboard" / "words" / f"{lang}.toml").read_text("utf-8"))
         for lang in ("en", "ko")}  # fmt: skip
_spec = importlib.util.spec_from_file_location(
    "waiting_site", Path(__file__).parents[1] / "waiting_site.py"
)
waiting_site = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(waiting_site)


def served(path):
    """`unstrand up` over the file, and its address."""
    process = subprocess.Popen(
        [sys.executable, "-m", "unstrand", "up", "--db", str(path), "--port", "0"],
        stdout=subprocess.PIPE, text=True, env=os.environ | {"PYTHONUNBUFFERED": "1"},
    )  # fmt: skip
    lines: queue.Queue[str] = queue.Queue()
    threading.Thread(target=lambda: lines.put(process.stdout.readline()), daemon=True).start()
    return process, re.search(r"http://\S+", lines.get(timeout=120))[0]


def ended(process):
    process.send_signal(signal.SIGTERM)
    code = process.wait(30)
    process.stdout.close()
    assert code == 0


@pytest.fixture(scope="module")
def db(tmp_path_factory):
    """Two nodes on which whole-node jobs wait for two weeks."""
    path = tmp_path_factory.mktemp("browser") / "waiting.duckdb"
    with Store.open(path, clock=lambda: waiting_site.UNTIL) as store:
        waiting_site.fill(store)
    return path


class Page:
    """One of the two pages in a window."""

    def __init__(self, visit, lang, width):
        self.window = visit(width=width)
        self.words, self.lang = WORDS[lang], lang

    def open(self, name, query=""):
        self.window.open(f"/{name}?lang={self.lang}{query}")

    def button(self, section, name):
        return self.window.page.get_by_role("button", name=self.words[section][name], exact=True)

    def told(self, text, within_s=180):
        self.window.page.wait_for_selector(f"text={text}", timeout=within_s * 1000)
        self.window.settled()

    def keys(self, text):
        page = self.window.page
        page.get_by_text(self.words["whatif"]["keys"]).click()
        page.locator("textarea").fill(text)
        page.locator("textarea").press("Control+Enter")
        page.wait_for_timeout(500)
        self.window.settled()

    def fits(self):
        """Nothing is wider than the window."""
        wide = self.window.page.evaluate(
            "(() => { const m = document.querySelector('[data-testid=stMain]');"
            " return m.scrollWidth - m.clientWidth })()"
        )
        assert wide <= 0
        return True


@pytest.fixture(params=[("en", 1440), ("ko", 390)], ids=["en-1440", "ko-390"])
def shown(request, visit):
    return Page(visit, *request.param)


def test_a_policy_that_is_refused_too_little_and_a_result(shown):
    shown.open("whatif")
    shown.told(shown.words["whatif"]["empty"][:20])
    shown.keys("order = wrong")
    shown.button("whatif", "run").click()
    shown.told("order = wrong is not one of")
    assert shown.words["run"]["failed"] in shown.window.text()
    assert shown.fits()
    shown.window.shoot(f"whatif-refused-{shown.lang}")

    shown.open("whatif", "&from=2026-10-05&to=2026-10-06")
    shown.button("whatif", "run").click()
    shown.told(shown.words["run"]["withheld"])
    assert re.search(r"2 days|2일", shown.window.text())
    shown.window.shoot(f"whatif-thin-{shown.lang}")

    shown.open("whatif")
    shown.keys("backfill = none")
    shown.button("whatif", "run").click()
    shown.told(shown.words["whatif"]["save"])
    text = shown.window.text()
    assert shown.words["whatif"]["m_mean_wait_s"] in text
    assert shown.words["run"]["failed"] not in text
    assert shown.fits()
    shown.window.shoot(f"whatif-done-{shown.lang}")


def test_a_report_shows_progress_ends_when_asked_and_two_windows_see_the_same(shown, visit):
    other = Page(visit, shown.lang, 1440)
    shown.open("advice")
    if shown.button("run", "cancel").count() == 0:  # the weekly one may be under way
        shown.button("advice", "replay")  # the box stands beside it
        shown.window.page.locator('[data-testid="stButton"] button').first.click()
    shown.button("run", "cancel").wait_for(timeout=60_000)
    other.open("advice")
    other.button("run", "cancel").wait_for(timeout=60_000)
    shown.window.shoot(f"advice-progress-{shown.lang}")
    other.open("whatif")
    other.told(other.words["whatif"]["empty"][:20], within_s=20)  # no page waits for another
    shown.button("run", "cancel").click()
    shown.told(shown.words["run"]["cancelled"])
    assert shown.fits()
    shown.window.shoot(f"advice-cancelled-{shown.lang}")


def test_an_empty_store_says_what_to_do_on_both_pages(shown, tmp_path, chromium):
    path = tmp_path / "empty.duckdb"
    Store.open(path, clock=lambda: waiting_site.UNTIL).close()
    process, url = served(path)
    page = shown.window.page
    try:
        for name in ("whatif", "advice"):
            page.goto(f"{url}/{name}?lang={shown.lang}")
            shown.window.settled()
            assert "unstrand import slurm" in shown.window.text()
            assert shown.fits()
        page.goto("about:blank")
    finally:
        ended(process)
