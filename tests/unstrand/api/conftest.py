"""The API over an open store, in this process."""

from __future__ import annotations

import asyncio
import importlib.util
from pathlib import Path

import httpx
import pytest

from collector.store import Store
from unstrand.api.app import api_app
from unstrand.service.core import Service

_spec = importlib.util.spec_from_file_location(
    "small_site", Path(__file__).parents[2] / "small_site.py"
)
small_site = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(small_site)

_other = importlib.util.spec_from_file_location(
    "waiting_site", Path(__file__).parents[2] / "waiting_site.py"
)
waiting_site = importlib.util.module_from_spec(_other)
_other.loader.exec_module(waiting_site)


@pytest.fixture(scope="session")
def waiting():
    """The site on which whole-node jobs wait, for replays."""
    return waiting_site


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


class Client:
    """Asks an ASGI application without a socket."""

    def __init__(self, app) -> None:
        self._app = app

    def get(self, path, **options) -> httpx.Response:
        return self._ask("GET", path, **options)

    def post(self, path, **options) -> httpx.Response:
        return self._ask("POST", path, **options)

    def delete(self, path, **options) -> httpx.Response:
        return self._ask("DELETE", path, **options)

    def _ask(self, method, path, **options) -> httpx.Response:
        async def ask():
            transport = httpx.ASGITransport(self._app, raise_app_exceptions=False)
            async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as one:
                return await one.request(method, path, **options)

        return asyncio.run(ask())


@pytest.fixture
def client():
    """``client(store)``: the API over that store; nothing is started."""

    def make(store) -> Client:
        service = Service.over(store, lambda: small_site.UNTIL)
        return Client(api_app(service))

    return make


@pytest.fixture
def api(client, site_store):
    """The API over the small site."""
    return client(site_store)
