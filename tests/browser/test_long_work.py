"""What-if in a real browser: nothing yet, refused, too little, done."""

from __future__ import annotations

import importlib.util
import re
import tomllib
from pathlib import Path

import pytest

from collector.store import Store

pytestmark = pytest.mark.real
ROOT = Path(__file__).parents[2]
WORDS = {lang: tomllib.loads((ROOT / "dashboard" / "words" / f"{lang}.toml").read_text("utf-8"))
         for lang in ("en", "ko")}  # fmt: skip
REFUSED = {"en": "order = wrong is not one of", "ko": "order = wrong: 다음 중 하나여야 합니다"}
_spec = importlib.util.spec_from_file_location(
    "waiting_site", Path(__file__).parents[1] / "waiting_site.py"
)
waiting_site = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(waiting_site)


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
    shown.told(REFUSED[shown.lang])
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
