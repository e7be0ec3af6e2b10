"""What `make setup` does last: the kernels are compiled once, so that no page waits for them."""

from __future__ import annotations

import sys


def main() -> None:
    """Compiles or loads; where no cache can be written, the first use compiles instead."""
    _say("setup: compiling the kernels once (one and a half minutes of CPU)")
    try:
        from analytics import ledger  # numba looks for its cache folder here

        ledger.warm()
        from scheduler_advisor import engine

        engine.warm(lambda line: _say(f"setup: {line}"))
    except (OSError, RuntimeError) as error:
        # numba says RuntimeError where it finds no folder to write its cache to.
        _say(f"setup: kernels were not compiled: {error}")


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)  # noqa: T201


if __name__ == "__main__":
    main()
