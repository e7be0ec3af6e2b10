"""What `make setup` does last: the kernels are compiled once, so that no page waits for them."""

from __future__ import annotations

import sys


def main() -> None:
    """Compiles or loads; where no cache can be written, the first use compiles instead."""
    print("setup: compiling the kernels once (about half a minute)", file=sys.stderr)  # noqa: T201
    try:
        from analytics import ledger  # numba looks for its cache folder here

        ledger.warm()
    except (OSError, RuntimeError) as error:
        # numba says RuntimeError where it finds no folder to write its cache to.
        print(f"setup: kernels were not compiled: {error}", file=sys.stderr)  # noqa: T201


if __name__ == "__main__":
    main()
