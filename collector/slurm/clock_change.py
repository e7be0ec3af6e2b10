"""Local times in the hour that a clock change repeats, put right by the elapsed time.

A local time in that hour is read as its first pass, so a wrong one is an hour early. Slurm's own
End - Start = Elapsed + Suspended shows which of the two it is. Where both are in the second pass
nothing shows it: the run then lies an hour early, with its true length.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

_HOUR = 3600


def repaired(table: pa.Table) -> tuple[pa.Table, int]:
    """The runs with Start or End moved on by the repeated hour, and how many were."""
    held = pc.add(table["elapsed_s"], pc.fill_null(table["suspended_s"], 0))
    excess = pc.subtract(pc.subtract(table["end"], table["start"]), held)
    late_start = pc.fill_null(pc.equal(excess, _HOUR), fill_value=False)
    late_end = pc.fill_null(pc.equal(excess, -_HOUR), fill_value=False)
    for name, late in (("start", late_start), ("end", late_end)):
        moved = pc.if_else(late, pc.add(table[name], _HOUR), table[name])
        table = table.set_column(table.schema.get_field_index(name), name, moved)
    count = pc.sum(pc.or_(late_start, late_end)).as_py()
    return table, int(count or 0)
