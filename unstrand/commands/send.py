"""A change put to the service that holds the file."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx

from unstrand.commands.source import no_answer
from unstrand.errors import ServerAnswerError

_ANSWER_WITHIN_S = 120.0
_IMPORTED_WITHIN_S = 3600.0  # a year of a large site takes minutes


def send(server: str, path: str, body: Mapping[str, Any]) -> Any:
    """POST ``/api/v1/<path>`` and return the answer; ServerAnswerError in the service's words."""
    return _posted(server, path, _ANSWER_WITHIN_S, json=dict(body))


def send_long(server: str, path: str, body: Mapping[str, Any]) -> Any:
    """`send` of what may take long."""
    return _posted(server, path, _IMPORTED_WITHIN_S, json=dict(body))


def send_files(
    server: str, path: str, fields: Mapping[str, object], files: Mapping[str, Path | None]
) -> Any:
    """POST a form with files as they lie on this machine; what is None is left out.

    Raises ServerAnswerError in the service's words, or for a file that cannot be read.
    """
    given = {name: str(value) for name, value in fields.items() if value is not None}
    with ExitStack() as stack:
        sent = {
            name: (file.name, stack.enter_context(_readable(file)))
            for name, file in files.items()
            if file is not None
        }
        return _posted(server, path, _IMPORTED_WITHIN_S, data=given, files=sent)


def _readable(file: Path) -> Any:
    try:
        return file.open("rb")
    except OSError as error:
        raise ServerAnswerError(f"cannot read {file}: {error.strerror or error}") from error


def _posted(server: str, path: str, within_s: float, **content: Any) -> Any:
    try:
        # A proxy of the environment must not see requests for this machine.
        answer = httpx.post(f"{server}/api/v1/{path}", timeout=within_s, trust_env=False, **content)
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise no_answer(server, error) from error
    try:
        body = answer.json()
    except ValueError as error:
        raise ServerAnswerError(f"{server} does not answer like unstrand") from error
    if answer.is_success:
        return body
    refusal = body.get("error", {})
    what = ". ".join(str(refusal[key]) for key in ("what", "remedy") if refusal.get(key))
    raise ServerAnswerError(what or f"{server} answered {answer.status_code}")
