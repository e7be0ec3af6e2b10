"""Pages without facts say what to do."""

from __future__ import annotations

import pytest

PAGES = ("overview", "teams", "health", "stranding", "queue", "jobs", "fleet")


@pytest.mark.parametrize("name", PAGES)
def test_an_empty_store_says_how_to_bring_facts_in(store, open_page, name):
    page = open_page(store, name)
    assert "No facts yet" in page.text
    assert "unstrand import slurm --cluster NAME --live" in page.text
    assert "unstrand demo" in page.text


@pytest.mark.parametrize("name", PAGES)
def test_a_window_without_facts_offers_the_one_that_has_some(site_store, open_page, name):
    page = open_page(site_store, name, from_="2020-01-01", to="2020-01-31")
    assert "Facts are known from 2026-10-19 00:00 to 2026-11-02 00:00" in page.text
    page.app.button(key="known_window").click().run()
    assert not page.app.exception
    assert "No facts in this window" not in page.text
    assert "coverage 99." in page.text


def test_facts_without_a_ledger_say_that_it_is_being_built(store, open_page, site):
    with store.work() as work:
        work.append_facts([*site._nodes(), *site._runs(), *site._windows()])
    assert "The ledger is being built" in open_page(store).text


@pytest.mark.parametrize("name", PAGES)
def test_a_stopping_service_says_so(site_store, open_page, name):
    from dashboard import connection

    page = open_page(site_store, name)
    connection.detach(site_store)
    page.app.run()
    assert not page.app.exception
    assert "The service is stopping" in page.text
