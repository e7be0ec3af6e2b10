"""The command `unstrand`: runs one command and turns what it refuses into a message."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from analytics.errors import AnalyticsError
from collector.errors import CollectorError
from scheduler_advisor.errors import AdvisorError
from unstrand.commands.app import app
from unstrand.errors import UnstrandError

REFUSALS = (UnstrandError, CollectorError, AnalyticsError, AdvisorError)


def main() -> None:
    """The process's exit code: 0 = done, 1 = refused or a check failed, 2 = wrong usage."""
    sys.exit(run(sys.argv[1:]))


def run(arguments: Sequence[str]) -> int:
    """One command; what it refuses goes to stderr as one message. Returns the exit code."""
    try:
        "".join(arguments).encode()
    except UnicodeEncodeError:
        print("unstrand: an argument is not UTF-8: check the terminal's encoding", file=sys.stderr)
        return 2
    try:
        app(list(arguments), prog_name="unstrand")
    except REFUSALS as error:
        print(f"unstrand: {error}", file=sys.stderr)
        return 1
    except SystemExit as leaving:
        return leaving.code if isinstance(leaving.code, int) else 0
    return 0


if __name__ == "__main__":
    main()
