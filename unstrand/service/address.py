"""The address file beside the store, by which a command finds the service that holds the file."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx


@dataclass(frozen=True, slots=True)
class ServerAddress:
    """Where a service said it answers, and as which process."""

    url: str
    pid: int


def address_file(db_path: str | Path) -> Path:
    """``<db>.server.json``, beside the store."""
    path = Path(db_path).expanduser()
    return path.with_name(path.name + ".server.json")


def read_address(db_path: str | Path) -> ServerAddress | None:
    """What the address file says, alive or not; None when there is none or it is torn."""
    try:
        content = json.loads(address_file(db_path).read_text("utf-8"))
        return ServerAddress(url=str(content["url"]), pid=int(content["pid"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None


def find_server(db_path: str | Path, *, timeout_s: float = 2.0) -> ServerAddress | None:
    """The service that holds ``db_path`` and answers; None when there is none or only a left-over.

    A pid can be taken by another program after a crash, so the process must also answer as ours.
    """
    address = read_address(db_path)
    if address is None or not pid_alive(address.pid):
        return None
    try:
        answer = httpx.get(f"{address.url}/healthz", timeout=timeout_s, trust_env=False)
    except httpx.HTTPError:
        return None
    return address if answer.headers.get("x-unstrand-pid") == str(address.pid) else None


@contextmanager
def announced(db_path: str | Path, url: str) -> Iterator[None]:
    """Write the address file for the time of the block; a reader never sees half of it."""
    target = address_file(db_path)
    draft = target.with_name(f"{target.name}.{os.getpid()}")
    draft.write_text(json.dumps({"url": url, "pid": os.getpid()}) + "\n", "utf-8")
    draft.replace(target)
    try:
        yield
    finally:
        known = read_address(db_path)
        if known is not None and known.pid == os.getpid():
            target.unlink(missing_ok=True)


def pid_alive(pid: int) -> bool:
    """Whether a process of this number exists, ours or another user's."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
