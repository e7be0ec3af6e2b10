"""Which file is which trace."""

from __future__ import annotations

import csv
from collections.abc import Callable
from enum import StrEnum
from pathlib import Path

from collector.errors import ImportRefusedError
from collector.traces import helios, itp, jobs_file, openb, philly, swf
from collector.traces.columns import opened, refused
from collector.traces.trace import Trace


class Format(StrEnum):
    """The trace formats that can be read."""

    SWF = "swf"
    OPENB = "openb"
    PHILLY = "philly"
    ITP = "itp"
    HELIOS = "helios"
    JOBS = "jobs"


_READERS: dict[Format, Callable[[Path], Trace]] = {
    Format.SWF: swf.read,
    Format.OPENB: openb.read,
    Format.PHILLY: philly.read,
    Format.ITP: itp.read,
    Format.HELIOS: helios.read,
    Format.JOBS: jobs_file.read,
}
# Columns that only this format has together.
_SIGNS: dict[Format, frozenset[str]] = {
    Format.OPENB: frozenset({"num_gpu", "gpu_milli", "creation_time"}),
    Format.PHILLY: frozenset({"timestamp", "duration", "num_gpus"}),
    Format.ITP: frozenset({"submission_time", "duration", "num_gpu"}),
    Format.HELIOS: frozenset({"submit_time", "start_time", "gpu_num"}),
    Format.JOBS: frozenset(jobs_file.REQUIRED),
}


def named(text: str) -> Format:
    """The format by its name on the command line."""
    if text not in set(Format):
        raise ImportRefusedError(f"no trace format {text!r}: choose one of {', '.join(Format)}")
    return Format(text)


def detected(path: Path) -> Format:
    """The format by the file's name, and for a CSV by its columns."""
    suffixes = [suffix for suffix in path.suffixes if suffix != ".gz"]
    if suffixes[-1:] == [".swf"]:
        return Format.SWF
    if suffixes[-1:] == [".parquet"]:
        return Format.JOBS
    with opened(path) as text:
        header = {name.strip() for name in next(csv.reader(text), [])}
    for kind, sign in _SIGNS.items():
        if sign <= header:
            return kind
    what = f"its columns ({', '.join(sorted(header)) or 'none'}) are those of no known format"
    raise refused(path, 1, what, f"name one with --format ({', '.join(Format)})")


def read_trace(path: Path, kind: Format | str | None = None) -> Trace:
    """The trace in ``path``; without ``kind`` the format is detected.

    Raises ImportRefusedError, with file, line and remedy, for a file that is broken anywhere.
    """
    chosen = detected(path) if kind is None else named(kind)
    return _READERS[chosen](path)
