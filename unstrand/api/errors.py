"""Every refusal has one shape: {"error": {"what", "where", "remedy"}}."""

from __future__ import annotations

import logging

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, Field
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse

from collector.errors import StoreLimitError
from unstrand.errors import BackPressureError, RequestRefusedError

log = logging.getLogger(__name__)


class Refusal(BaseModel):
    """What is wrong, where, and what to do."""

    what: str = Field(examples=["until is before since"])
    where: str = Field(examples=["query parameter until"])
    remedy: str = Field(examples=["give a later until"])


class RefusalBody(BaseModel):
    """The body of every answer that is not a success."""

    error: Refusal


def install(app: FastAPI) -> None:
    """Give every kind of failure the one shape."""

    @app.exception_handler(RequestRefusedError)
    async def refused(_: Request, error: RequestRefusedError) -> JSONResponse:
        return refusal(error.status, error.what, error.where, error.remedy)

    @app.exception_handler(BackPressureError)
    async def busy(_: Request, error: BackPressureError) -> JSONResponse:
        answer = refusal(503, str(error), "writer queue", "send the same batch again later")
        answer.headers["retry-after"] = "5"
        return answer

    @app.exception_handler(StoreLimitError)
    async def too_much(_: Request, error: StoreLimitError) -> JSONResponse:
        what, remedy = str(error).split(": ", 1)
        return refusal(503, what, "the query", remedy)

    @app.exception_handler(RequestValidationError)
    async def invalid(_: Request, error: RequestValidationError) -> JSONResponse:
        first = error.errors()[0]
        kind, *name = (str(part) for part in first["loc"])
        where = f"{kind} parameter {'.'.join(name)}" if name else kind
        return refusal(400, str(first["msg"]), where, "see /api/v1/docs for what it takes")

    @app.exception_handler(HTTPException)
    async def unknown(request: Request, error: HTTPException) -> JSONResponse:
        remedy = "see /api/v1/docs for what there is"
        return refusal(error.status_code, str(error.detail), request.url.path, remedy)

    @app.exception_handler(Exception)
    async def failed(request: Request, error: Exception) -> JSONResponse:
        log.error("%s failed", request.url.path, exc_info=error)
        what = f"the service failed ({type(error).__name__})"
        return refusal(500, what, request.url.path, "the service's log says why")


def refusal(status: int, what: str, where: str, remedy: str) -> JSONResponse:
    """An answer in the shape of `RefusalBody`."""
    body = RefusalBody(error=Refusal(what=what, where=where, remedy=remedy))
    return JSONResponse(body.model_dump(), status_code=status)
