"""What-if in a real browser while a replay takes long: its progress, and what is left of it when
somebody cancels."""

from __future__ import annotations

import pytest

from collector.store import Store

pytestmark = pytest.mark.real
EVERY_H = 0.05  # twenty jobs an hour where the GPUs take two: thousands wait
SLOW = "sharing.kind = none"  # replayed by the plain driver, which takes minutes over such a queue


@pytest.fixture(scope="module")
def db(tmp_path_factory, waiting_site):
    """Two nodes and thousands of jobs in the queue."""
    path = tmp_path_factory.mktemp("browser") / "deep.duckdb"
    with Store.open(path, clock=lambda: waiting_site.UNTIL) as store:
        waiting_site.fill(store, waiting_site.works(every_h=EVERY_H))
    return path


def test_a_long_replay_tells_where_it_is_and_a_cancelled_one_leaves_nothing(shown):
    words, window = shown.words, shown.window
    page = window.page
    shown.open("whatif")
    shown.button("whatif", "run").wait_for(timeout=300_000)  # the service may compile
    shown.keys(SLOW)
    shown.button("whatif", "run").click()
    cancel = shown.button("run", "cancel")
    cancel.wait_for(timeout=60_000)
    page.wait_for_selector(f"text={words['stage']['replay']}", timeout=120_000)
    page.wait_for_timeout(3000)
    assert page.locator('[data-testid="stProgress"]').is_visible()
    assert cancel.is_visible()  # it still runs
    assert shown.fits()
    window.shoot(f"whatif-progress-{shown.lang}")

    cancel.click()
    shown.told(words["run"]["cancelled"], within_s=60)
    assert not cancel.is_visible()
    assert words["whatif"]["save"] not in window.text()
    assert words["run"]["failed"] not in window.text()
    assert shown.fits()
    window.shoot(f"whatif-cancelled-{shown.lang}")
    shown.button("whatif", "run").wait_for(timeout=10_000)
