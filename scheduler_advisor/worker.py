"""A process that works for another one: pickled work on its stdin, answers on its stdout.

Not a `concurrent.futures` pool: its processes import the parent's main module again, which under a
page script is the page.
"""

from __future__ import annotations

import pickle
import sys


def main() -> None:
    """Until stdin ends: ("hold", input), or ("do", (work, item)) and its answer."""
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


if __name__ == "__main__":
    main()
