"""Slurm's own commands, asked once each, with times as epoch seconds."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Sequence

from collector.slurm.refusal import refusal

Ask = Callable[[Sequence[str]], str]
"""The output of one command; raises ImportRefusedError if it cannot be had."""

_TIMEOUT_S = 300
_REMEDY = (
    "Run unstrand on a machine where this command works (a login or controller node), or import "
    "files with --sacct and --nodes"
)


def ask(command: Sequence[str]) -> str:
    """Run one command of Slurm and return what it printed.

    Raises ImportRefusedError where it is missing, fails, hangs, or prints no UTF-8.
    """
    environment = os.environ | {"SLURM_TIME_FORMAT": "%s", "TZ": "UTC", "LC_ALL": "C.UTF-8"}
    shown = " ".join(command)[:120]
    try:
        done = subprocess.run(
            list(command),
            env=environment,
            capture_output=True,
            timeout=_TIMEOUT_S,
            check=False,
            stdin=subprocess.DEVNULL,
        )
    except FileNotFoundError as error:
        raise refusal(command[0], None, "there is no such command here", _REMEDY) from error
    except subprocess.TimeoutExpired as error:
        raise refusal(shown, None, f"no answer within {_TIMEOUT_S} s", _REMEDY) from error
    if done.returncode:
        words = (done.stderr or done.stdout).decode("utf-8", "replace").strip()
        what = f"it failed with {words.splitlines()[-1] if words else done.returncode!r}"
        raise refusal(shown, None, what, _REMEDY)
    return done.stdout.decode("utf-8", "replace")
