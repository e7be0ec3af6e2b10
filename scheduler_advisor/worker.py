"""A process that works for another one: pickled work on its stdin, answers on its stdout.

Not a `concurrent.futures` pool: its processes import the parent's main module again, which under a
page script is the page.
"""

from __future__ import annotations

import ctypes
import os
import pickle
import signal
import sys

_PR_SET_PDEATHSIG = 1  # prctl(2)


def main() -> None:
    """Until stdin ends: ("hold", input), or ("do", (work, item)) and its answer."""
    _die_with(int(sys.argv[1]) if len(sys.argv) > 1 else os.getppid())
    source, sink = sys.stdin.buffer, sys.stdout.buffer
    sys.stdout = sys.stderr  # nothing but answers goes into the pipe
    held: object = None
    while True:
        try:
            kind, content = pickle.load(source)
        except EOFError:
            return
        if kind == "hold":
            held = content
            continue
        work, item = content
        try:
            answer = (True, work(held, item))
        except Exception as error:  # noqa: BLE001 - whatever it is, the parent raises it
            answer = (False, error)
        pickle.dump(answer, sink)
        sink.flush()


def _die_with(parent: int) -> None:
    """A parent that is killed cannot end its workers: the kernel does, in the middle of a replay.

    The signal comes when the thread ends that started this process, which is one of the crew's own.
    """
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        sys.exit("the process that this one should work for is gone")


if __name__ == "__main__":
    main()
