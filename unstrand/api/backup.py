"""The whole store as one file."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from fastapi import APIRouter, Request
from starlette.background import BackgroundTask
from starlette.responses import FileResponse

from collector.backup import backup as write_backup
from collector.errors import StoreError
from unstrand.api.status import service_of
from unstrand.errors import RequestRefusedError

router = APIRouter(tags=["store"])


@router.get("/backup", response_class=FileResponse)
def backup(request: Request) -> FileResponse:
    """A copy of everything that is committed now; the service goes on meanwhile."""
    store = service_of(request).store
    # Beside the store: a temporary folder may be memory, and too small for it.
    folder = Path(tempfile.mkdtemp(prefix=".backup-", dir=Path(store.path).parent))
    try:
        write_backup(store, folder / "unstrand.duckdb")
    except StoreError as error:
        shutil.rmtree(folder, ignore_errors=True)
        raise RequestRefusedError(
            str(error), where="store", remedy="make room beside the store", status=507
        ) from error
    return FileResponse(
        folder / "unstrand.duckdb",
        media_type="application/vnd.duckdb",
        filename="unstrand.duckdb",
        background=BackgroundTask(shutil.rmtree, folder, ignore_errors=True),
    )
