"""The mapping at one tick, over every source that this node has."""

from __future__ import annotations

from typing import Protocol

from collector.mapping.attribution import Attribution, ProcessOwner
from collector.mapping.process import ProcReader
from collector.telemetry.tick import Tick


class Mapper(Protocol):
    """Says who holds and who uses the devices of a tick."""

    def attribute(self, tick: Tick) -> Attribution:
        """Never raises for a source that fails: the failure is part of the answer."""
        ...


class UserMapper:
    """Owners by the user of the process; no holders. What is left where nothing else is."""

    def __init__(self, proc: ProcReader | None = None) -> None:
        self._proc = proc or ProcReader()

    def attribute(self, tick: Tick) -> Attribution:
        """See `Mapper.attribute`."""
        pids = {use.pid for device in tick.devices for use in device.processes or ()}
        owners = {}
        for pid in pids:
            process = self._proc.read(pid)
            if process is not None:
                user = self._proc.user_name(process.uid)
                owners[pid] = ProcessOwner(process.started_at, user)
        return Attribution(owners=owners)
