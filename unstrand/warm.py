"""Kernels are compiled once per machine, before somebody waits for them.

`make setup` compiles the ledger's, which every page needs; `make test` the simulator's too. A
service whose simulator is not compiled yet does that beside its work, at low priority.
"""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from scheduler_advisor import compiled
from scheduler_advisor.compiled import simulator_is_warm

_POLITE = 10
_PR_SET_PDEATHSIG = 1  # prctl(2)
_STOPPED_WITHIN_S = 10.0


def main(parts: list[str]) -> None:
    """Compiles or loads ``ledger``, ``simulator`` or both; where no cache can be written, the
    first use compiles instead. ``beside``: politely, and no longer than the parent lives."""
    if "beside" in parts:
        os.nice(_POLITE)
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
    try:
        if "ledger" in parts:
            _say("setup: compiling the ledger's kernels once (half a minute of CPU)")
            from analytics import ledger  # numba looks for its cache folder here

            ledger.warm()
        if "simulator" in parts and not simulator_is_warm():
            _say("setup: compiling the simulator once (two minutes of CPU)")
            from scheduler_advisor import engine

            with compiled.Progress() as progress:

                def tell(done: float, then: float, what: str) -> None:
                    progress.tell(done, then, what)
                    _say(f"setup: simulator: compiling {what} (once; kept in the cache)")

                engine.warm(tell)
            compiled.mark().touch()
    except (OSError, RuntimeError) as error:
        # numba says RuntimeError where it finds no folder to write its cache to.
        _say(f"setup: kernels were not compiled: {error}")


@contextmanager
def warmed_beside() -> Iterator[None]:
    """While the block runs, the simulator is compiled in a process of its own, if it has to be."""
    if simulator_is_warm():
        yield
        return
    process = subprocess.Popen([sys.executable, "-m", "unstrand.warm", "simulator", "beside"])
    try:
        yield
    finally:
        process.terminate()
        process.wait(_STOPPED_WITHIN_S)


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)  # noqa: T201


if __name__ == "__main__":
    main(sys.argv[1:] or ["ledger", "simulator"])
