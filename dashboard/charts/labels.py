"""Where the name of a bubble goes, so that names do not lie on each other."""

from __future__ import annotations

from collections.abc import Sequence

Box = tuple[float, float, float, float]
# Share of the plot that a letter and a line take, at the size at which the chart is drawn.
LETTER, LINE = 0.0115, 0.05
# The plot is wider than tall: a round bubble takes this much more of its height.
TALL = 1.7
SIDES = ("middle right", "top center", "bottom center", "middle left")


def sides(places: Sequence[tuple[float, float, float]], names: Sequence[str]) -> list[str]:
    """For each bubble (x, y, radius; shares of the plot) the first side where its name is free.

    Where every side lies on a bubble, one that lies on no other name; else the first one: the
    hover text names it all the same.
    """
    circles = [_circle(*place) for place in places]
    names_at: list[Box] = []
    chosen = []
    for (x, y, radius), name in zip(places, names, strict=True):
        boxes = {side: _box(side, x, y, radius, name) for side in SIDES}
        inside = [side for side in SIDES if _inside(boxes[side])] or list(SIDES)
        unnamed = [s for s in inside if not any(_meet(boxes[s], other) for other in names_at)]
        own = _circle(x, y, radius)
        free = [s for s in unnamed if not any(_meet(boxes[s], c) for c in circles if c != own)]
        side = (free or unnamed or inside)[0]
        names_at.append(boxes[side])
        chosen.append(side)
    return chosen


def _circle(x: float, y: float, radius: float) -> Box:
    return (x - radius, y - radius * TALL, x + radius, y + radius * TALL)


def _box(side: str, x: float, y: float, radius: float, name: str) -> Box:
    width = LETTER * len(name)
    if side == "middle right":
        return (x + radius, y - LINE / 2, x + radius + width, y + LINE / 2)
    if side == "middle left":
        return (x - radius - width, y - LINE / 2, x - radius, y + LINE / 2)
    bottom = y + radius * TALL if side == "top center" else y - radius * TALL - LINE
    return (x - width / 2, bottom, x + width / 2, bottom + LINE)


def _inside(box: Box) -> bool:
    return box[0] >= 0 and box[2] <= 1.02 and box[1] >= -0.02


def _meet(one: Box, other: Box) -> bool:
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]
