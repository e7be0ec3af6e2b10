"""The Streamlit application that the service serves; the only place that sets Streamlit up."""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

import streamlit as st
from starlette.middleware import Middleware
from starlette.routing import BaseRoute
from starlette.types import ASGIApp

from collector.store import Store
from dashboard import connection

SCRIPT = Path(__file__).parent / "script" / "start.py"

# Nothing leaves the machine, nothing is offered that belongs to development.
OPTIONS: dict[str, object] = {
    "browser.gatherUsageStats": False,
    "client.showErrorDetails": "none",
    "client.showErrorLinks": False,
    "client.toolbarMode": "minimal",
    "global.developmentMode": False,
    "logger.enableRich": False,
    "logger.hideWelcomeMessage": True,
    "runner.magicEnabled": False,
    "server.enableAgentApi": False,
    "server.enableStaticServing": False,
    "server.fileWatcherType": "none",
    "server.headless": True,
    "server.showEmailPrompt": False,
    "theme.base": "light",
    "theme.primaryColor": "#0b5c8e",
    "theme.backgroundColor": "#ffffff",
    "theme.secondaryBackgroundColor": "#f4f6f8",
    "theme.textColor": "#1b2430",
    "theme.borderColor": "#dde3ea",
    "theme.baseFontSize": 14,
    "theme.baseRadius": "4px",
    "theme.showWidgetBorder": True,
    "theme.showSidebarBorder": True,
}

Lifespan = Callable[[Any], AbstractAsyncContextManager[dict[str, Any] | None]]


def pages_app(
    store: Store,
    *,
    account: connection.Account,
    routes: Sequence[BaseRoute],
    lifespan: Lifespan,
    middleware: Sequence[Middleware],
) -> ASGIApp:
    """Pages over ``store`` at /, its ledger brought up to date by ``account``, with the service's
    own routes beside them."""
    for name, value in OPTIONS.items():
        st.config.set_option(name, value)

    @asynccontextmanager
    async def attached(app: Any) -> AsyncIterator[dict[str, Any] | None]:
        connection.attach(store, account)
        threading.Thread(target=import_module, args=("dashboard.warm",), daemon=True).start()
        async with lifespan(app) as state:
            yield state
            connection.detach(store)

    app: ASGIApp = st.App(SCRIPT, routes=routes, lifespan=attached, middleware=middleware)
    return app
