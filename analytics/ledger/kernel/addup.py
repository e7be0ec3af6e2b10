"""What each device measured of a part, added up to the part."""

from __future__ import annotations

from analytics.ledger.kernel.compiled import driver
from analytics.ledger.kernel.state import Array


@driver
def add_up(rows: Array, most: Array, sums: Array) -> None:
    """Add device by device to ``sums`` (rows: measured us, active ppm x us, us beyond what is held,
    suspected us, untouched memory ppm x us, suspected us without a process); a device that would
    measure more than is held counts as contradiction. ``rows`` are in order of part and device;
    their last column is time without a process by now."""
    i = 0
    while i < rows.shape[0]:
        part, device = rows[i, 0], rows[i, 1]
        m, a, hang, untouched, absent = 0, 0, 0, 0, 0
        while i < rows.shape[0] and rows[i, 0] == part and rows[i, 1] == device:
            m += rows[i, 2]
            a += rows[i, 3]
            hang += rows[i, 4]
            absent += rows[i, 6]
            if rows[i, 5] >= 0:
                untouched += rows[i, 2] * (1_000_000 - rows[i, 5])
            i += 1
        if sums[0, part] + m <= most[part]:
            sums[0, part] += m
            sums[1, part] += a
            sums[3, part] += hang
            sums[4, part] += untouched
            sums[5, part] += absent
        else:
            sums[2, part] += m
