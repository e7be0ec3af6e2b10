"""How a node is chosen: a score and a rule for equal scores."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from scheduler_advisor.engine.packing.errors import PackingError


class Score(StrEnum):
    """What makes a node the better one; the highest score wins."""

    FGD = "fgd"
    FGD_EXACT = "fgd-exact"
    BEST_FIT = "best-fit"
    DOT_PRODUCT = "dot-product"
    GPU_PACKING = "gpu-packing"
    GPU_CLUSTERING = "gpu-clustering"
    RANDOM = "random"


class Ties(StrEnum):
    """Who wins among nodes of equal score; ``listed`` is an order that the caller gives."""

    NAME = "name"
    MOST_PACKED = "most-packed"
    EMPTIEST = "emptiest"
    RANDOM = "random"
    LISTED = "listed"


SCORE_CODE: Final = {score: code for code, score in enumerate(Score)}

FGD: Final = SCORE_CODE[Score.FGD]
FGD_EXACT: Final = SCORE_CODE[Score.FGD_EXACT]
BEST_FIT: Final = SCORE_CODE[Score.BEST_FIT]
DOT_PRODUCT: Final = SCORE_CODE[Score.DOT_PRODUCT]
GPU_PACKING: Final = SCORE_CODE[Score.GPU_PACKING]
GPU_CLUSTERING: Final = SCORE_CODE[Score.GPU_CLUSTERING]
RANDOM: Final = SCORE_CODE[Score.RANDOM]


@dataclass(frozen=True, slots=True)
class PackPolicy:
    """A score with its tie rule. ``listed``: node names in winning order, for ``Ties.LISTED``."""

    score: Score = Score.FGD
    ties: Ties = Ties.NAME
    listed: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if (self.ties is Ties.LISTED) != bool(self.listed):
            raise PackingError("an order of nodes and the tie rule 'listed' go together")

    @classmethod
    def named(cls, score: str, ties: str = "name", listed: Sequence[str] = ()) -> PackPolicy:
        """The policy by the names that the command line uses."""
        if score not in set(Score):
            raise PackingError(f"no packing policy {score!r}: choose one of {', '.join(Score)}")
        if ties not in set(Ties):
            raise PackingError(f"no tie rule {ties!r}: choose one of {', '.join(Ties)}")
        return cls(Score(score), Ties(ties), tuple(listed))
