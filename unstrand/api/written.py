"""Changes that a request asks for, made by the writer thread before the answer goes out."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from fastapi import Request

from collector.store import Work
from unstrand.api.query import read_or_refuse
from unstrand.api.status import service_of

COMMIT_WITHIN_S = 60.0
T = TypeVar("T")


def written(request: Request, write: Callable[[Work], T], *, source: str, where: str = "body") -> T:
    """What ``write`` returned once it is committed; what it refuses is the request's fault."""
    answer: list[T] = []

    def batch(work: Work) -> int:
        answer.append(write(work))
        return 1

    done = service_of(request).writer.submit(batch, source=source)
    read_or_refuse(where, lambda: done.result(COMMIT_WITHIN_S))
    return answer[-1]
