"""How well a replay of the policy in force repeats what happened."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from fastapi import APIRouter, Query, Request

from scheduler_advisor.compiled import wait_for_compiler
from scheduler_advisor.running.run import Run
from scheduler_advisor.running.runs import runs_of
from scheduler_advisor.window import Window
from scheduler_advisor.withheld import WithheldError
from unstrand.api.query import WindowQuery, asked_window
from unstrand.api.status import service_of
from unstrand.errors import RequestRefusedError

if TYPE_CHECKING:
    from scheduler_advisor.crew import Crew

router = APIRouter(tags=["what-if"])


@router.get("/calibration")
def calibration(request: Request, query: Annotated[WindowQuery, Query()]) -> dict[str, Any]:
    """The fidelity grade of the window, its marks, and where the replay is most wrong.

    The policy is read from the scheduler's stored settings, and searched for otherwise.
    """
    from scheduler_advisor.replayed import Replayed  # these load the compiler
    from scheduler_advisor.report.replay_json import calibration_json
    from scheduler_advisor.steps import Watch, calibrate, clusters_of, load

    service = service_of(request)
    store = service.store
    found = asked_window(store, query)
    window = Window(found.since, found.until, found.time_zone)
    names = [query.cluster] if query.cluster else clusters_of(store, window)
    if len(names) != 1:
        raise RequestRefusedError(
            f"{len(names)} clusters have facts in the window", where="cluster",
            remedy=f"name one of: {', '.join(names) or 'none, import facts first'}",
        )  # fmt: skip
    loaded = load(store, window, names[0])
    if isinstance(loaded, Replayed):
        why = WithheldError(loaded.withheld or "no_history", dict(loaded.params))
        raise RequestRefusedError(
            f"nothing can be graded: {why}", where="window",
            remedy="a longer window with at least 50 jobs",
        )  # fmt: skip

    def doing(run: Run, crew: Crew) -> dict[str, Any]:
        wait_for_compiler(run)
        watch = Watch(progress=run.tell, cancelled=run.stop.is_set, workers=crew)
        return {"cluster": names[0], **calibration_json(calibrate(loaded, watch))}

    # In the processes of all long work: compiled code would keep every other request waiting.
    return runs_of(store, service.clock).here("calibration", names[0], window, doing)
