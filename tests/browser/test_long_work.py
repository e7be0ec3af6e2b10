"""What-if in a real browser: nothing yet, refused, too little, done."""

from __future__ import annotations

import re

import pytest

from collector.store import Store

pytestmark = pytest.mark.real
REFUSED = {"en": "order = wrong is not one of", "ko": "order = wrong: 다음 중 하나여야 합니다"}


@pytest.fixture(scope="module")
def db(tmp_path_factory, waiting_site):
    """Two nodes on which whole-node jobs wait for two weeks."""
    path = tmp_path_factory.mktemp("browser") / "waiting.duckdb"
    with Store.open(path, clock=lambda: waiting_site.UNTIL) as store:
        waiting_site.fill(store)
    return path


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
