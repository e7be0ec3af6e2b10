"""Long work of the service, followed until it ends; Ctrl-C stops it there as well."""

from __future__ import annotations

import time
from typing import Any

import httpx

from scheduler_advisor.errors import AdvisorError
from unstrand.commands.progress import counting
from unstrand.commands.send import send_long
from unstrand.commands.source import ask, no_answer

LOOK_EVERY_S = 0.5


def done_by_service(server: str, path: str, body: dict[str, Any]) -> dict[str, Any]:
    """POST ``body`` and return the result, at once or once the run that it began is done.

    Raises AdvisorError where the run failed or somebody stopped it.
    """
    run = send_long(server, path, body)
    if "run_id" not in run:
        return dict(run)
    try:
        with counting() as tell:
            while run["state"] == "running":
                tell(run["stage"], run["done"], run["total"])
                time.sleep(LOOK_EVERY_S)
                run = ask(server, f"runs/{run['run_id']}")
    except KeyboardInterrupt:
        _stopped(server, run["run_id"])
        raise
    if run["state"] != "done":
        raise AdvisorError(run["error"] or "it was cancelled; nothing was kept")
    return dict(run["result"])


def _stopped(server: str, run_id: str) -> None:
    try:
        httpx.delete(f"{server}/api/v1/runs/{run_id}", timeout=5.0, trust_env=False)
    except httpx.HTTPError as error:
        raise no_answer(server, error) from error
