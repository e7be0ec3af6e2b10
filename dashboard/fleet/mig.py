"""MIG boards drawn to scale: one bar per board, each GPU instance at its place."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from html import escape
from itertools import groupby

from analytics.questions.mig_layout import MigInstance
from dashboard.frame import Page
from dashboard.palette import ACCENT, text_on
from dashboard.parts.downloads import downloads
from dashboard.parts.html import heading, show, tag

# NVIDIA's MIG guide: a board has 7 GPU slices over 8 memory slices; an A30 has 4 over 4.
SLICES, MEMORY_SLICES = 7, 8
FEWER = {"A30": 4}
SHOWN = 40


def mig_boards(page: Page, instances: Sequence[MigInstance]) -> None:
    """Nothing where no board is cut."""
    if not instances:
        return
    boards = [list(group) for _, group in groupby(instances, lambda m: (m.node, m.gpu_uuid))]
    bars = "".join(_board(board, page.words("fleet.mig_free")) for board in boards[:SHOWN])
    words = page.words
    hint = words("fleet.mig_hint", count=len(boards))
    show(heading(words("fleet.mig"), hint, after=tag("limit", words)) + bars)
    downloads("mig", [asdict(instance) for instance in instances], words)


def slices_of(model: str | None) -> int:
    """How many GPU slices a board of ``model`` has (NVIDIA's MIG guide: 7, A30: 4)."""
    return next((count for name, count in FEWER.items() if name in (model or "")), SLICES)


def placed(board: Sequence[MigInstance]) -> list[tuple[float, float, list[MigInstance]]]:
    """(left, width, compute instances) of each GPU instance, as parts of the board.

    By memory slices where the source says where each sits and how much memory it has; else the
    instances stand side by side, as wide as their GPU slices.
    """
    groups = [list(of) for _, of in groupby(board, lambda m: m.gpu_instance_id or m.mig_uuid)]
    memory = board[0].mem_total_mib
    parts = (
        MEMORY_SLICES if slices_of(board[0].gpu_model) == SLICES else slices_of(board[0].gpu_model)
    )
    if memory and all(of[0].placement_start is not None and of[0].mem_mib for of in groups):
        return [
            (
                (of[0].placement_start or 0) / parts,
                max(1, round((of[0].mem_mib or 0) / memory * parts)) / parts,
                of,
            )
            for of in groups
        ]
    found, left = [], 0.0
    for of in groups:
        width = (of[0].gpu_slices or 1) / slices_of(board[0].gpu_model)
        found.append((left, width, of))
        left += width
    return found


def _board(board: Sequence[MigInstance], free: str) -> str:
    first, cells, right = board[0], [], 0.0
    for left, width, instances in sorted(placed(board), key=lambda item: item[0]):
        if left > right + 1e-6:
            cells.append(_gap(right, left - right, free))
        names = " + ".join(i.profile or i.mig_uuid for i in instances)
        name, colour = escape(names), f"background:{ACCENT};color:{text_on(ACCENT)}"
        style = f"left:{100 * left:.2f}%;width:{100 * width:.2f}%;{colour}"
        cells.append(f'<i style="{style}" title="{name}">{name}</i>')
        right = max(right, left + width)
    if right < 1 - 1e-6:
        cells.append(_gap(right, 1 - right, free))
    label = escape(f"{first.node} · {first.gpu_uuid[-8:]}")
    return f'<div class="mig"><span>{label}</span><div>{"".join(cells)}</div></div>'


def _gap(left: float, width: float, text: str) -> str:
    style = f"left:{100 * left:.2f}%;width:{100 * width:.2f}%"
    return f'<i class="gap" style="{style}" title="{escape(text)}"></i>'
