"""Stores for pages, and what a page says."""

from __future__ import annotations

import importlib.util
import re
from html import unescape
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from collector.store import Store
from dashboard import connection

MAIN = Path(connection.__file__).with_name("main.py")
_spec = importlib.util.spec_from_file_location(
    "small_site", Path(__file__).parents[1] / "small_site.py"
)
small_site = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(small_site)


@pytest.fixture(scope="session")
def site():
    """The constants of the small site."""
    return small_site


@pytest.fixture(scope="session")
def site_store(tmp_path_factory):
    """The small site, open for all tests that only read."""
    path = tmp_path_factory.mktemp("site") / "site.duckdb"
    with Store.open(path, clock=lambda: small_site.UNTIL) as store:
        small_site.fill(store)
        yield store


class Shown:
    """A page as a test sees it."""

    def __init__(self, app: AppTest) -> None:
        self.app = app

    @property
    def markup(self) -> str:
        return "\n".join(element.proto.body for element in self.app.get("html"))

    @property
    def text(self) -> str:
        """What people read, without tags."""
        bare = re.sub(r"<style>.*?</style>", "", self.markup, flags=re.S)
        return " ".join(unescape(re.sub(r"<[^>]+>", " ", bare)).split())

    @property
    def tables(self):
        """The sortable tables of the page."""
        return [element.value for element in self.app.dataframe]


@pytest.fixture
def open_page():
    """``open_page(store, "teams", lang="ko")``: that page over that store, without an error."""
    attached = []

    def show(store, name="overview", **query) -> Shown:
        connection.attach(store)
        attached.append(store)
        app = AppTest.from_file(str(MAIN), default_timeout=120)
        for parameter, value in query.items():
            app.query_params[parameter.removesuffix("_")] = value
        app.run()
        if name != "overview":
            app.switch_page(f"pages/{name}.py").run()
        assert not app.exception, app.exception
        return Shown(app)

    yield show
    for store in attached:
        connection.detach(store)
