"""uvicorn on a socket that is bound already, ending with exit code 0 on SIGTERM and SIGINT."""

from __future__ import annotations

import signal
import socket
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager

import uvicorn
from starlette.types import ASGIApp

STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT)
# Open pages hold a websocket; they get this long to end before they are cut.
GRACE_S = 3


class Server(uvicorn.Server):
    """Says when it answers; stops on a signal and returns (uvicorn would die by the signal)."""

    def __init__(
        self, config: uvicorn.Config, *, on_ready: Callable[[], None], on_stop: Callable[[], None]
    ) -> None:
        super().__init__(config)
        self._on_ready = on_ready
        self._on_stop = on_stop

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._on_ready()

    @contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = {number: signal.signal(number, self._signalled) for number in STOP_SIGNALS}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def _signalled(self, number: int, frame: object) -> None:
        self._on_stop()
        self.force_exit = self.should_exit and number == signal.SIGINT
        self.should_exit = True


def run_server(
    app: ASGIApp,
    listener: socket.socket,
    *,
    on_ready: Callable[[], None],
    on_stop: Callable[[], None],
) -> None:
    """Serve until a signal; ``on_ready`` once it answers, ``on_stop`` as the signal comes."""
    config = uvicorn.Config(
        app,
        log_config=None,
        log_level="warning",
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=GRACE_S,
        ws="websockets-sansio",
    )
    Server(config, on_ready=on_ready, on_stop=on_stop).run(sockets=[listener])
