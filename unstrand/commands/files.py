"""Files that a user names."""

from __future__ import annotations

from pathlib import Path

from analytics.errors import AnalyticsError


def read_text(file: Path, error: type[AnalyticsError]) -> str:
    """The text of a UTF-8 file; ``error`` with what to do when there is none."""
    try:
        return file.read_text("utf-8-sig")
    except OSError as problem:
        raise error(f"cannot read {file}: {problem.strerror}; check the path") from problem
    except UnicodeDecodeError as problem:
        raise error(f"{file} is not UTF-8: convert it with `iconv -t UTF-8`") from problem
