"""Whether the simulator's kernels are compiled on this machine, and how far that is.

Compiling takes minutes of CPU once. A service does it beside its work (`unstrand.warm`), which
writes here how far it is; whoever needs a replay before that waits and can say for how long.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
import time
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

import scheduler_advisor

if TYPE_CHECKING:
    from scheduler_advisor.running.run import Run

ENGINE = Path(scheduler_advisor.__file__).with_name("engine")
LOOK_EVERY_S = 0.5
USUAL_S = 150.0  # two minutes of CPU on a machine that does other work too


@dataclass(frozen=True, slots=True)
class Compiling:
    """``share`` of the work that is done, 0 to 1; ``left_s`` at the pace so far, at first at the
    usual one; ``what`` is compiled now."""

    share: float
    left_s: float
    what: str


def mark() -> Path:
    """A file that says that the sources of the engine, with this compiler, are in the cache."""
    state = hashlib.sha256(f"{sys.version}{version('numba')}".encode())
    state.update(os.environ.get("NUMBA_CACHE_DIR", "").encode())
    for path in sorted(ENGINE.rglob("*.py")):
        state.update(path.read_bytes())
    return ENGINE / "__pycache__" / f"warm-{state.hexdigest()[:16]}"


def simulator_is_warm() -> bool:
    """Whether the simulator, as it is now, is compiled."""
    return mark().exists()


def load_simulator(_held: object, _item: object) -> None:
    """Work for a process that is to replay: every driver is loaded, so that no replay waits for
    its own; half a second where all is compiled."""
    from scheduler_advisor.engine import warm  # loads the compiler

    warm(lambda *_: None)


class Progress:
    """Written by the process that compiles; the file goes with the block, whatever ends it."""

    def __init__(self, path: Path | None = None) -> None:
        self._path = path or _progress_file()
        self._began = time.monotonic()

    def __enter__(self) -> Progress:
        self.tell(0.0, 0.0, "")
        return self

    def __exit__(self, *_: object) -> None:
        self._path.unlink(missing_ok=True)

    def tell(self, done: float, then: float, what: str) -> None:
        """``what`` comes now; it takes the whole from ``done`` to ``then``."""
        said = {"pid": os.getpid(), "began": self._began, "now": time.monotonic(),
                "done": done, "then": then, "what": what}  # fmt: skip
        beside = self._path.with_suffix(".new")
        beside.write_text(json.dumps(said), encoding="utf-8")
        beside.replace(self._path)


def compiling(path: Path | None = None) -> Compiling | None:
    """How far the process is that compiles now; None where none does."""
    try:
        said = json.loads((path or _progress_file()).read_text(encoding="utf-8"))
        os.kill(said["pid"], 0)
    except (FileNotFoundError, ProcessLookupError):
        return None  # none was started, or it was killed and left its file
    spent, passed = said["now"] - said["began"], time.monotonic() - said["now"]
    whole = spent / said["done"] if said["done"] else USUAL_S
    # A step that takes longer than it should stands still before its end instead of passing it.
    share = min(said["done"] + passed / whole, max(said["then"] - 0.01, said["done"]))
    return Compiling(share, whole * (1 - share), said["what"])


def wait_for_compiler(run: Run) -> None:
    """While another process compiles, wait for it: compiling twice at once takes both longer.

    Where none does, the first replay compiles by itself.
    """
    while not simulator_is_warm() and (state := compiling()) is not None:
        run.tell("compile", round(state.share * 100), 100)
        time.sleep(LOOK_EVERY_S)


def _progress_file() -> Path:
    return ENGINE / "__pycache__" / "warming.json"
