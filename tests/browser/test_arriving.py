"""A page that is opened too early shows by itself what comes afterwards; nobody reloads it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.real


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """Pages over a store in which nothing is yet."""
    path = tmp_path_factory.mktemp("browser") / "arriving.duckdb"
    with subprocess.Popen(
        [sys.executable, Path(__file__).with_name("arriving_site.py"), path],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        yield process
        process.stdin.close()
        assert process.wait(30) == 0


@pytest.fixture(scope="module")
def url(site):
    return site.stdout.readline().strip()


def test_facts_and_their_ledger_appear_on_pages_that_were_open_before(visit, site):
    def bring(what):
        site.stdin.write(what + "\n")
        site.stdin.flush()
        assert site.stdout.readline() == "done\n"

    english, korean = visit(), visit(width=390)
    english.open("/whatif")
    korean.open("/?lang=ko")
    assert "No facts yet" in english.text()
    assert "아직 기록이 없습니다" in korean.text()
    bring("facts")
    english.page.wait_for_selector("text=The ledger is being built", timeout=60_000)
    korean.page.wait_for_selector("text=원장을 만드는 중입니다", timeout=60_000)
    english.shoot("arriving-en")
    bring("ledger")
    english.page.wait_for_selector("text=Single keys of the policy", timeout=60_000)
    korean.page.wait_for_selector(".us .answer", timeout=60_000)
    english.settled()
    korean.settled()
    assert "The ledger is being built" not in english.text()
    assert "원장을 만드는 중입니다" not in korean.text()
