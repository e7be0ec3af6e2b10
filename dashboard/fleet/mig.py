"""MIG boards drawn to scale: one bar per board, slices from the left."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from itertools import groupby

from analytics.questions.mig_layout import MigInstance
from dashboard.frame import Page
from dashboard.palette import ACCENT, INK, SHADE
from dashboard.parts.html import heading, show, tag

SLICES = 7
FEWER = {"A30": 4}
SHOWN = 40


def mig_boards(page: Page, instances: Sequence[MigInstance]) -> None:
    """Nothing where no board is cut."""
    if not instances:
        return
    boards = [list(group) for _, group in groupby(instances, lambda m: (m.node, m.gpu_uuid))]
    bars = "".join(_board(board) for board in boards[:SHOWN])
    words = page.words
    hint = words("fleet.mig_hint", count=len(boards))
    show(heading(words("fleet.mig"), hint, after=tag("limit", words)) + bars)


def slices_of(model: str | None) -> int:
    """How many GPU slices a board of ``model`` has (NVIDIA's MIG guide: 7, A30: 4)."""
    return next((count for name, count in FEWER.items() if name in (model or "")), SLICES)


def _board(board: Sequence[MigInstance]) -> str:
    whole, first = slices_of(board[0].gpu_model), board[0]
    cells = []
    for instance in board:
        width = 100 * (instance.gpu_slices or 1) / whole
        name = escape(instance.profile or instance.mig_uuid)
        style = f"width:{width:.2f}%;background:{ACCENT};color:#fff"
        cells.append(f'<i style="{style}" title="{name}">{name}</i>')
    free = whole - sum(instance.gpu_slices or 1 for instance in board)
    if free > 0:
        cells.append(
            f'<i style="width:{100 * free / whole:.2f}%;background:{SHADE};color:{INK}"></i>'
        )
    label = escape(f"{first.node} · {first.gpu_uuid[-8:]}")
    return f'<div class="mig"><span>{label}</span><div>{"".join(cells)}</div></div>'
