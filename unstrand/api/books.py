"""The price book and the map of owners: read, and added to from a file's text."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request
from pydantic import BaseModel, ConfigDict, Field

from analytics.job_labels import put_labels, read_labels
from analytics.org import load_mappings, mapping_rows, read_mappings
from analytics.prices import load_prices, read_prices
from collector.store import Work
from unstrand.api.query import known_cluster, read_or_refuse
from unstrand.api.status import service_of
from unstrand.api.written import written
from unstrand.books import price_rows

router = APIRouter(tags=["books"])
COMMIT_WITHIN_S = 60.0


class Sheet(BaseModel):
    """The text of a CSV file with a header line, as `price load` and `org load` take it."""

    model_config = ConfigDict(extra="forbid")

    text: str = Field(max_length=10_000_000)
    name: str = Field("request", description="What refusals call it.")
    actor: str = Field("api", description="Who loads it, for the audit log.")


class OrgSheet(Sheet):
    """Mappings; ``replace`` drops the ones that are there."""

    replace: bool = False


class LabelSheet(Sheet):
    """Labels of a cluster's jobs: pods from kubectl as JSON, or a CSV of job_id,labels."""

    cluster: str


@router.get("/prices")
def prices(request: Request) -> list[dict[str, Any]]:
    """Every price in the book, the shipped list prices included."""
    with service_of(request).store.work() as work:
        return price_rows(work)


@router.post("/prices")
def load_price_sheet(request: Request, sheet: Sheet) -> dict[str, int]:
    """Put prices into the book; a broken sheet changes nothing."""
    service = service_of(request)
    found = read_or_refuse("body", lambda: read_prices(sheet.text, sheet.name))

    def write(work: Work) -> int:
        return load_prices(work, found, at=service.clock(), actor=sheet.actor)

    done = service.writer.submit(write, source="prices")
    new = read_or_refuse("body", lambda: done.result(COMMIT_WITHIN_S))
    return {"rows": len(found), "new": new}


@router.get("/org")
def org(request: Request) -> list[dict[str, Any]]:
    """The map of owners with its dates."""
    with service_of(request).store.work() as work:
        return mapping_rows(work)


@router.post("/org")
def load_org_sheet(request: Request, sheet: OrgSheet) -> dict[str, int]:
    """Put mappings into the map; a broken sheet changes nothing."""
    service = service_of(request)
    found = read_or_refuse("body", lambda: read_mappings(sheet.text, sheet.name))

    def write(work: Work) -> int:
        return load_mappings(
            work, found, at=service.clock(), actor=sheet.actor, replace=sheet.replace
        )

    done = service.writer.submit(write, source="org")
    return {"rows": read_or_refuse("body", lambda: done.result(COMMIT_WITHIN_S))}


@router.post("/org/labels")
def load_labels(request: Request, sheet: LabelSheet) -> dict[str, int]:
    """Put labels on jobs, for mappings of label:KEY."""
    service = service_of(request)
    known_cluster(service.store, sheet.cluster)
    found = read_or_refuse("body", lambda: read_labels(sheet.text, sheet.name))
    at = service.clock()
    jobs, unknown = written(
        request,
        lambda work: put_labels(work, sheet.cluster, found, at=at, actor=sheet.actor),
        source="labels",
    )
    return {"jobs": jobs, "unknown": unknown}
