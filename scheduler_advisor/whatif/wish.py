"""What somebody wants to see tried."""

from __future__ import annotations

from dataclasses import dataclass

from scheduler_advisor.engine.errors import PolicyError
from scheduler_advisor.engine.policy import Policy
from scheduler_advisor.engine.policy_text import from_toml, preset
from scheduler_advisor.errors import AdvisorError
from scheduler_advisor.search.alter import World
from scheduler_advisor.search.catalogue import Alter

TODAY = "today"


class WishError(AdvisorError):
    """The candidate cannot be tried as asked for."""


@dataclass(frozen=True, slots=True)
class Wish:
    """``base``: "today", a preset's name, or TOML. ``values``: keys of the policy on top of it.
    The rest changes the world: nodes more or fewer, load, estimates, capped requests."""

    base: str = TODAY
    values: tuple[tuple[str, str], ...] = ()
    nodes: int = 0
    load: float = 1.0
    estimate: float = 0.0
    alter: str = ""

    def policy(self, today: Policy) -> Policy:
        """The candidate's policy; WishError for keys or values that do not go together."""
        try:
            if self.base == TODAY:
                start = today
            elif "\n" in self.base or "=" in self.base:
                start = from_toml(self.base)
            else:
                start = preset(self.base)
            return start.with_values(dict(self.values))
        except PolicyError as error:
            raise WishError(str(error)) from error

    @property
    def world(self) -> World:
        """The world that the candidate is tried in."""
        try:
            alter = Alter(self.alter)
        except ValueError as error:
            known = ", ".join(filter(None, Alter))
            raise WishError(
                f"what-if: no change of requests {self.alter}; known: {known}"
            ) from error
        if not 0.1 <= self.load <= 5 or not 0 <= self.estimate <= 100:
            raise WishError("what-if: load goes from 0.1 to 5, estimates from 0 to 100")
        return World(alter=alter, nodes=self.nodes, load=self.load, estimate=self.estimate)
