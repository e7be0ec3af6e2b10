"""A change put to the service that holds the file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import httpx

from unstrand.errors import ServerAnswerError


def send(server: str, path: str, body: Mapping[str, Any]) -> Any:
    """POST ``/api/v1/<path>`` and return the answer; ServerAnswerError in the service's words."""
    try:
        answer = httpx.post(
            f"{server}/api/v1/{path}", json=dict(body), timeout=120.0, trust_env=False
        )
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise ServerAnswerError(
            f"no answer from {server}: {error}. Is it running? --server URL names another one"
        ) from error
    try:
        content = answer.json()
    except ValueError as error:
        raise ServerAnswerError(f"{server} does not answer like unstrand") from error
    if answer.is_success:
        return content
    refusal = content.get("error", {})
    what = ". ".join(str(refusal[key]) for key in ("what", "remedy") if refusal.get(key))
    raise ServerAnswerError(what or f"{server} answered {answer.status_code}")
