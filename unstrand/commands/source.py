"""Where a command gets its answers: from the file, or from the service that holds it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx

from collector.errors import StoreBusyError
from collector.store import Store
from unstrand.clock import utc_now
from unstrand.errors import ServerAnswerError, ServiceError
from unstrand.service.address import find_server
from unstrand.settings import load_settings

_ANSWER_WITHIN_S = 120.0


def server_for(db: Path | None, server: str | None) -> str | None:
    """The service to ask, if there is one: given, set, or announced beside the file."""
    settings = load_settings(db=db, server=server)
    if settings.server is not None:
        return settings.server.rstrip("/")
    found = find_server(settings.db)
    return None if found is None else found.url


@contextmanager
def opened(db: Path | None, *, create: bool = False) -> Iterator[Store]:
    """The store file itself, refused with a remedy while somebody else holds it."""
    path = load_settings(db=db).db
    try:
        store = Store.open(path, clock=utc_now, create=create)
    except StoreBusyError as error:
        raise held(path) from error
    with store:
        yield store


def held(path: Path) -> ServiceError:
    """Who holds the file and what to do, for a command that needs the file itself."""
    server = find_server(path)
    if server is None:
        return ServiceError(
            f"{path} is held by another process (fuser {path} names it): end it, or use another "
            "file with --db"
        )
    return ServiceError(
        f"{path} is held by the service at {server.url}: this command needs the file itself, so "
        f"stop the service first (kill {server.pid})"
    )


def no_answer(server: str, error: Exception) -> ServerAnswerError:
    """The refusal of a command whose service did not answer."""
    return ServerAnswerError(
        f"no answer from {server}: {error}. Is it running? --server URL names another one"
    )


def ask(server: str, path: str, **parameters: Any) -> Any:
    """GET ``/api/v1/<path>`` of the service as JSON; None and empty parameters are left out.

    Raises ServerAnswerError with the service's own words when it refuses.
    """
    given = {name: value for name, value in parameters.items() if value not in (None, "", ())}
    try:
        # A proxy of the environment must not see requests for this machine.
        answer = httpx.get(
            f"{server}/api/v1/{path}", params=given, timeout=_ANSWER_WITHIN_S, trust_env=False
        )
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise no_answer(server, error) from error
    if answer.status_code == httpx.codes.OK:
        return _content(server, answer)
    raise ServerAnswerError(_refusal(server, answer))


def _content(server: str, answer: httpx.Response) -> Any:
    try:
        return answer.json()
    except ValueError as error:
        raise ServerAnswerError(
            f"{server} does not answer like unstrand: is it another program's address?"
        ) from error


def _refusal(server: str, answer: httpx.Response) -> str:
    try:
        refusal = answer.json()["error"]
        return f"{refusal['where']}: {refusal['what']}. {refusal['remedy']}"
    except (ValueError, KeyError, TypeError):
        return f"{server} answered {answer.status_code} for {answer.request.url.path}"
