"""The pages over a store in which nothing is yet; a line on stdin brings the next thing.

Run as ``python arriving_site.py FILE``: prints its address, then takes ``facts`` (the small site
without its ledger), ``ledger`` and, at the end of the input, stops.
"""

from __future__ import annotations

import importlib.util
import socket
import sys
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import uvicorn

from collector.store import Store
from dashboard.app import pages_app

_spec = importlib.util.spec_from_file_location(
    "small_site", Path(__file__).parents[1] / "small_site.py"
)
small_site = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(small_site)


@asynccontextmanager
async def lifespan(_: object) -> AsyncIterator[dict[str, object]]:
    yield {}


def main(path: str) -> None:
    with Store.open(path, clock=lambda: small_site.UNTIL) as store:
        app = pages_app(store, account=lambda *_: None, routes=[], lifespan=lifespan, middleware=[])
        listener = socket.create_server(("127.0.0.1", 0))
        server = uvicorn.Server(uvicorn.Config(app, log_level="error"))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        print(f"http://127.0.0.1:{listener.getsockname()[1]}", flush=True)
        for line in sys.stdin:
            if line.strip() == "facts":
                small_site.take_in(store)
            else:
                small_site.account(store)
            print("done", flush=True)
        server.should_exit = server.force_exit = True
        thread.join()


if __name__ == "__main__":
    main(sys.argv[1])
