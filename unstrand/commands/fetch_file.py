"""A file of the service that holds the store, onto this machine."""

from __future__ import annotations

import os
from pathlib import Path

import httpx

from unstrand.commands.source import no_answer
from unstrand.errors import OutputError, ServerAnswerError

_WITHIN_S = 3600.0  # hundreds of gigabytes over a network take so long


def fetch_file(server: str, path: str, target: Path) -> int:
    """GET ``/api/v1/<path>`` into the new file ``target`` and return its size in bytes.

    The file appears under its name only when it is whole; one that exists already is refused.
    """
    if target.exists():
        raise OutputError(f"{target} exists already: name a new file")
    if not target.parent.is_dir():
        raise OutputError(f"no folder {target.parent}: make it first")
    draft = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        _download(f"{server}/api/v1/{path}", draft)
        draft.replace(target)
    except httpx.HTTPError as error:
        raise no_answer(server, error) from error
    except OSError as error:
        raise OutputError(f"cannot write {target}: {error.strerror or error}") from error
    finally:
        draft.unlink(missing_ok=True)
    return target.stat().st_size


def _download(url: str, draft: Path) -> None:
    with (
        httpx.stream("GET", url, timeout=_WITHIN_S, trust_env=False) as answer,
        draft.open("wb") as file,
    ):
        if not answer.is_success:
            answer.read()
            refusal = answer.json().get("error", {})
            raise ServerAnswerError(refusal.get("what") or f"{url} answered {answer.status_code}")
        for part in answer.iter_bytes():
            file.write(part)
