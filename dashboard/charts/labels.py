"""Where the name of a bubble goes, so that names do not lie on each other."""

from __future__ import annotations

from collections.abc import Sequence

Box = tuple[float, float, float, float]
# Share of the plot that a letter and a line take, at the size at which the chart is drawn.
LETTER, LINE = 0.0115, 0.05
SIDES = ("middle right", "top center", "bottom center", "middle left")


def sides(places: Sequence[tuple[float, float, float]], names: Sequence[str]) -> list[str]:
    """For each bubble (x, y, radius; shares of the plot) the first side where its name is free.

    Where no side is free the first one is taken; the hover text names it all the same.
    """
    taken: list[Box] = [(x - r, y - r, x + r, y + r) for x, y, r in places]
    chosen = []
    for (x, y, radius), name in zip(places, names, strict=True):
        boxes = {side: _box(side, x, y, radius, name) for side in SIDES}
        own = (x - radius, y - radius, x + radius, y + radius)
        free = [
            side
            for side, box in boxes.items()
            if _inside(box) and not any(_meet(box, other) for other in taken if other != own)
        ]
        side = free[0] if free else SIDES[0]
        taken.append(boxes[side])
        chosen.append(side)
    return chosen


def _box(side: str, x: float, y: float, radius: float, name: str) -> Box:
    width = LETTER * len(name)
    if side == "middle right":
        return (x + radius, y - LINE / 2, x + radius + width, y + LINE / 2)
    if side == "middle left":
        return (x - radius - width, y - LINE / 2, x - radius, y + LINE / 2)
    bottom = y + radius if side == "top center" else y - radius - LINE
    return (x - width / 2, bottom, x + width / 2, bottom + LINE)


def _inside(box: Box) -> bool:
    return box[0] >= 0 and box[2] <= 1.02 and box[1] >= -0.02


def _meet(one: Box, other: Box) -> bool:
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]
