"""The agent's own small HTTP answer: metrics and health, GET and HEAD."""

from __future__ import annotations

import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from collector.errors import CollectorError

Answer = tuple[int, bytes, str]


class PortInUseError(CollectorError):
    """The address for the metrics cannot be had."""


class MetricsServer:
    """Serves in threads of its own. ``metrics``: Accept header -> body and content type.

    ``healthy``: whether the agent works, and one line for people.
    """

    def __init__(
        self,
        host: str,
        port: int,
        *,
        metrics: Callable[[str | None], tuple[bytes, str]],
        healthy: Callable[[], tuple[bool, str]],
    ) -> None:
        def answer(path: str, accept: str | None) -> Answer:
            if path == "/metrics":
                return (200, *metrics(accept))
            if path in ("/healthz", "/readyz"):
                well, words = healthy()
                return 200 if well else 503, f"{words}\n".encode(), "text/plain; charset=utf-8"
            return 404, b"/metrics, /healthz, /readyz\n", "text/plain; charset=utf-8"

        try:
            self._server = ThreadingHTTPServer((host, port), _handler(answer))
        except OSError as error:
            raise PortInUseError(
                f"cannot serve metrics on {host}:{port}: {error}; choose another with --listen"
            ) from error
        self._server.daemon_threads = True
        self._thread = threading.Thread(
            target=self._server.serve_forever, name="unstrand-metrics", daemon=True
        )

    @property
    def port(self) -> int:
        """The port that was given, or found when 0 was asked for."""
        return int(self._server.server_address[1])

    def start(self) -> None:
        """Begin to serve."""
        self._thread.start()

    def stop(self) -> None:
        """Serve no more."""
        self._server.shutdown()
        self.close()

    def close(self) -> None:
        """Give the address back; for a server that was never started."""
        self._server.server_close()


def _handler(answer: Callable[[str, str | None], Answer]) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        timeout = 10  # a scraper that opens a connection and says nothing

        def do_GET(self) -> None:
            self.wfile.write(self._head())

        def do_HEAD(self) -> None:
            self._head()

        def _head(self) -> bytes:
            path = self.path.partition("?")[0]
            status, body, content_type = answer(path, self.headers.get("Accept"))
            self.send_response(status)
            self.send_header("Content-Type", content_type)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            return body

        def log_message(self, *args: object) -> None:
            """No line per scrape."""

    return Handler
