"""Requests must name this machine: a web page elsewhere must not reach us through the browser.

Without it, a site that re-points its own name at 127.0.0.1 (DNS rebinding) could read every page.
"""

from __future__ import annotations

from urllib.parse import urlsplit

from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send
from starlette.websockets import WebSocketClose

LOCAL_NAMES = frozenset({"localhost", "127.0.0.1", "::1"})


class HostGuard:
    """Refuses a request whose Host or Origin is not a loopback name."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan" or _local(scope):
            await self._app(scope, receive, send)
        elif scope["type"] == "websocket":
            await WebSocketClose(code=1008)(scope, receive, send)
        else:
            await _REFUSED(scope, receive, send)


def _local(scope: Scope) -> bool:
    headers = dict(scope["headers"])
    host = headers.get(b"host", b"").decode("latin-1")
    origin = headers.get(b"origin", b"").decode("latin-1")
    return _name(f"//{host}") in LOCAL_NAMES and (not origin or _name(origin) in LOCAL_NAMES)


def _name(url: str) -> str | None:
    try:
        return urlsplit(url).hostname
    except ValueError:
        return None


_REFUSED = JSONResponse(
    {
        "error": {
            "what": "the request does not name this machine",
            "where": "headers Host and Origin",
            "remedy": "open it as localhost or 127.0.0.1; from elsewhere use an SSH tunnel",
        }
    },
    status_code=403,
)
