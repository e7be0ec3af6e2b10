"""What agents send: one batch per request, acknowledged after its commit, taken in once."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from fastapi import APIRouter, Request
from pydantic import BaseModel

from collector.agent.batch import Batch
from collector.errors import AgentConflictError, AgentForbiddenError, BatchRefusedError
from unstrand.api.status import service_of
from unstrand.errors import RequestRefusedError

if TYPE_CHECKING:
    from unstrand.service.core import Service

router = APIRouter(tags=["agents"])

# A packed batch is some kilobytes; thousands of processes make some hundred.
MOST_BYTES = 4 * 2**20
LARGE_BYTES = 64 * 2**10
COMMITTED_WITHIN_S = 20.0  # below the time an agent waits, so that it learns of its batch


class Taken(BaseModel):
    """``rows``: written now; 0 for a batch that was taken before."""

    rows: int


@router.post("/ingest", summary="Take in one batch of a node agent")
async def ingest(request: Request) -> Taken:
    """The body is a batch as agents pack it. Status codes tell an agent what to do with it.

    200: forget it. 422, 413: it can never be taken. 409: another agent speaks for the node, keep
    it. 401: the token is not that of the node. 503: keep it and come again.
    """
    service = service_of(request)
    raw = await _body(request)
    try:
        authorization = request.headers.get("authorization")
        if len(raw) > LARGE_BYTES:  # other requests must not wait until it is unpacked
            batch = await asyncio.to_thread(service.agents.admit, raw, authorization)
        else:
            batch = service.agents.admit(raw, authorization)
        return Taken(rows=await _written(service, batch))
    except AgentForbiddenError as error:
        raise _refusal(error, 401, "set --token-file of the agent") from error
    except AgentConflictError as error:
        raise _refusal(error, 409, "keep the batch and send it again later") from error
    except BatchRefusedError as error:
        raise _refusal(
            error, 422, "put the batch aside; sending it again changes nothing"
        ) from error


async def _written(service: Service, batch: Batch) -> int:
    """Rows, once committed. Without a thread per request: all that wait are written together."""
    done = service.writer.submit_part(
        batch, service.take_batches, source=f"the agent of {batch.node}", timeout_s=0.0
    )
    try:
        return await asyncio.wait_for(asyncio.wrap_future(done), COMMITTED_WITHIN_S)
    except TimeoutError as error:
        raise RequestRefusedError(
            "the batch is not committed yet", where="writer queue",
            remedy="send it again: it is written once", status=503,
        ) from error  # fmt: skip


async def _body(request: Request) -> bytes:
    """The body, refused as soon as it is too large rather than when it is all here."""
    parts, size = [], 0
    async for part in request.stream():
        size += len(part)
        if size > MOST_BYTES:
            raise RequestRefusedError(
                f"the body is larger than {MOST_BYTES >> 20} MiB", where="body",
                remedy="an agent never sends as much", status=413,
            )  # fmt: skip
        parts.append(part)
    return b"".join(parts)


def _refusal(error: Exception, status: int, remedy: str) -> RequestRefusedError:
    return RequestRefusedError(str(error), where="batch", remedy=remedy, status=status)
