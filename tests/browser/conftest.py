"""A served small site and a real Chromium that reports every request."""

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
from urllib.parse import urlsplit

import pytest

ROOT = Path(__file__).parents[2]
ARTIFACTS = Path(os.environ.get("UNSTRAND_ARTIFACTS", ROOT / "build" / "artifacts"))
FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
]
LOOPBACK = {"127.0.0.1", "localhost", "::1"}
WORDS = {lang: tomllib.loads((ROOT / "dashboard" / "words" / f"{lang}.toml").read_text("utf-8"))
         for lang in ("en", "ko")}  # fmt: skip


def _beside(name):
    """A site of the folder above: test folders are no packages, so it has no import name."""
    spec = importlib.util.spec_from_file_location(name, Path(__file__).parents[1] / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


small_site, waiting_site_module = _beside("small_site"), _beside("waiting_site")


@pytest.fixture(scope="module")
def db(tmp_path_factory):
    """The small site in a file."""
    return small_site.create(tmp_path_factory.mktemp("browser") / "site.duckdb")


@pytest.fixture(scope="module")
def url(db):
    """The address of `unstrand up` over the small site; it must stop cleanly."""
    process = subprocess.Popen(
        [sys.executable, "-m", "unstrand", "up", "--db", str(db), "--port", "0"],
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONUNBUFFERED": "1"},
    )
    lines: queue.Queue[str] = queue.Queue()
    threading.Thread(target=lambda: lines.put(process.stdout.readline()), daemon=True).start()
    try:
        yield re.search(r"http://\S+", lines.get(timeout=120))[0]
    finally:
        process.send_signal(signal.SIGTERM)
        code = process.wait(30)
        process.stdout.close()
    assert code == 0, "with pages open it still stops cleanly"


@pytest.fixture(scope="module")
def chromium(system):
    """Debian's Chromium, driven by Playwright."""
    system.require("chromium", binaries=("chromium",))
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def waiting_site():
    """A cluster in which jobs wait: `waiting_site.fill` fills a store with it."""
    return waiting_site_module


class Visit:
    """A browser window; knows every host it asked and every error the page logged."""

    def __init__(self, page, url) -> None:
        self.page = page
        self.url = url
        self.hosts: set[str] = set()
        self.errors: list[str] = []
        page.on("request", lambda request: self._asked(request.url))
        page.on("websocket", lambda socket: self._asked(socket.url))
        page.on("pageerror", lambda error: self.errors.append(str(error)))

    def _asked(self, url) -> None:
        parts = urlsplit(url)
        if parts.scheme in ("http", "https", "ws", "wss"):
            self.hosts.add(parts.hostname)

    def open(self, path="/") -> None:
        self.page.goto(self.url + path)
        self.settled()

    def settled(self) -> None:
        """The script has run and its charts are drawn."""
        self.page.wait_for_selector(".us h1", timeout=180_000)
        self.page.wait_for_selector(
            '[data-testid="stApp"][data-test-script-state="notRunning"]', timeout=180_000
        )

    def text(self) -> str:
        return " ".join(self.page.inner_text('[data-testid="stMain"]').split())

    def shoot(self, name) -> Path:
        """A screenshot for people to look at."""
        ARTIFACTS.mkdir(parents=True, exist_ok=True)
        target = ARTIFACTS / f"{name}.png"
        self.page.wait_for_timeout(1000)
        self.page.screenshot(path=target)
        return target


@pytest.fixture
def visit(chromium, url):
    """``visit(width, height)``: a fresh window; it must have asked this machine only."""
    opened = []

    def window(width=1440, height=900) -> Visit:
        context = chromium.new_context(viewport={"width": width, "height": height})
        made = Visit(context.new_page(), url)
        opened.append((context, made))
        return made

    yield window
    for context, made in opened:
        context.close()
        assert made.hosts <= LOOPBACK, f"asked outside: {made.hosts - LOOPBACK}"
        assert made.errors == []


class Page:
    """A page in a window, in one language; ``words``: what stands on it."""

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
        return wide <= 0


@pytest.fixture(params=[("en", 1440), ("ko", 390)], ids=["en-1440", "ko-390"])
def shown(request, visit):
    """A page on a desk in English, and on a phone in Korean."""
    return Page(visit, *request.param)
