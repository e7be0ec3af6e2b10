"""What-if in a real browser while a replay takes long: its progress, and what is left of it when
somebody cancels."""

from __future__ import annotations

import importlib.util
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
EVERY_H = 0.05  # twenty jobs an hour where the GPUs take two: thousands wait
SLOW = "sharing.kind = none"  # replayed by the plain driver, which takes minutes over such a queue


@pytest.fixture(scope="module")
def db(tmp_path_factory):
    """Two nodes and thousands of jobs in the queue."""
    path = tmp_path_factory.mktemp("browser") / "deep.duckdb"
    with Store.open(path, clock=lambda: waiting_site.UNTIL) as store:
        waiting_site.fill(store, waiting_site.works(every_h=EVERY_H))
    return path


def fits(page):
    """Nothing is wider than the window."""
    wide = page.evaluate(
        "(() => { const m = document.querySelector('[data-testid=stMain]');"
        " return m.scrollWidth - m.clientWidth })()"
    )
    return wide <= 0


@pytest.mark.parametrize(("lang", "width"), [("en", 1440), ("ko", 390)])
def test_a_long_replay_tells_where_it_is_and_a_cancelled_one_leaves_nothing(visit, lang, width):
    words, window = WORDS[lang], visit(width=width)
    page = window.page
    window.open(f"/whatif?lang={lang}")
    page.get_by_text(words["whatif"]["keys"]).click(timeout=300_000)  # the service may compile
    page.locator("textarea").fill(SLOW)
    page.locator("textarea").press("Control+Enter")
    page.wait_for_timeout(500)
    window.settled()
    page.get_by_role("button", name=words["whatif"]["run"], exact=True).click()
    cancel = page.get_by_role("button", name=words["run"]["cancel"], exact=True)
    cancel.wait_for(timeout=60_000)
    page.wait_for_selector(f"text={words['stage']['replay']}", timeout=120_000)
    page.wait_for_timeout(3000)
    assert page.locator('[data-testid="stProgress"]').is_visible()
    assert cancel.is_visible()  # it still runs
    assert fits(page)
    window.shoot(f"whatif-progress-{lang}")

    cancel.click()
    page.wait_for_selector(f"text={words['run']['cancelled']}", timeout=60_000)
    window.settled()
    assert not cancel.is_visible()
    assert words["whatif"]["save"] not in window.text()
    assert words["run"]["failed"] not in window.text()
    assert fits(page)
    window.shoot(f"whatif-cancelled-{lang}")
    page.get_by_role("button", name=words["whatif"]["run"], exact=True).wait_for(timeout=10_000)
