"""Size classes of jobs by GPUs, the same in every table and plot."""

from __future__ import annotations

SIZE_CLASSES = ("1", "2-4", "5-8", "9-16", "17-64", "65+")

# One SQL expression so that tables made in the store and lists made here agree.
SIZE_CLASS_SQL = """
CREATE OR REPLACE TEMP MACRO size_class(gpus) AS
  CASE WHEN gpus IS NULL THEN NULL WHEN gpus <= 1 THEN '1' WHEN gpus <= 4 THEN '2-4'
       WHEN gpus <= 8 THEN '5-8' WHEN gpus <= 16 THEN '9-16' WHEN gpus <= 64 THEN '17-64'
       ELSE '65+' END
"""


def size_class(gpus: int) -> str:
    """The size class of a job of ``gpus`` GPUs."""
    for top, name in ((1, "1"), (4, "2-4"), (8, "5-8"), (16, "9-16"), (64, "17-64")):
        if gpus <= top:
            return name
    return "65+"
