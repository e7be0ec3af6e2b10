"""A change of policy for the scheduler in use; nothing is applied."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request
from pydantic import BaseModel, ConfigDict, Field

from scheduler_advisor.errors import AdvisorError
from unstrand.api.status import service_of
from unstrand.errors import RequestRefusedError

router = APIRouter(tags=["advice"])


class HandoverWish(BaseModel):
    """Two policies as TOML, the scheduler, and what changes beside the policy."""

    model_config = ConfigDict(extra="forbid", populate_by_name=True)

    scheduler: str = Field(description="slurm, kueue, volcano, kai or yarn.")
    before: str = Field("", description="The policy of today as TOML.", max_length=100_000)
    after: str = Field("", description="The policy to change to, as TOML.", max_length=100_000)
    cluster: str | None = Field(None, description="Whose nodes and settings to use.")
    files: dict[str, str] = Field(
        default_factory=dict, description="Configuration files of today by name."
    )
    mem_mib_per_gpu: int | None = None
    cpus_per_gpu: int | None = None
    headroom_gpus: int | None = None
    mig: dict[str, tuple[str, ...]] = Field(
        default_factory=dict, description="MIG profiles that each GPU of a model is cut into."
    )


@router.post("/handover")
def handover(request: Request, wish: HandoverWish) -> dict[str, Any]:
    """Edits, commands, checks, rollback, and what the scheduler cannot express."""
    # The policy's module loads the compiler; only this answer needs it.
    from scheduler_advisor.engine import policy_text
    from scheduler_advisor.handover.make import for_change, scheduler_named
    from scheduler_advisor.handover.site import Beside, Site, site_of

    service = service_of(request)
    try:
        site = Site(files=wish.files)
        if wish.cluster is not None:
            with service.store.work() as work:
                site = site_of(work, wish.cluster, service.clock(), wish.files)
        beside = Beside(wish.mem_mib_per_gpu, wish.cpus_per_gpu, wish.headroom_gpus, wish.mig)
        before, after = (policy_text.from_toml(text) for text in (wish.before, wish.after))
        made = for_change(scheduler_named(wish.scheduler), before, after, site, beside)
    except AdvisorError as error:
        raise RequestRefusedError(
            str(error), where="body", remedy="see /api/v1/docs for what it takes"
        ) from error
    return made.as_json()
