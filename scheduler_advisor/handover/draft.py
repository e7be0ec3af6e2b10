"""A hand-over while it is made: which changed keys have been dealt with, and what was said."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from scheduler_advisor.handover.change import DEFAULTS, MODELLED, Change
from scheduler_advisor.handover.site import Beside, Site
from scheduler_advisor.handover.steps import Edit, Handover, NotExpressed, Remark, Run, Scheduler


@dataclass(slots=True)
class Draft:
    """Shared by the schedulers. Every changed key is taken by somebody or ends as not expressed."""

    change: Change
    site: Site
    beside: Beside
    cannot: dict[str, NotExpressed] = field(default_factory=dict)
    remarks: list[Remark] = field(default_factory=list)
    check: list[str] = field(default_factory=list)
    verify: list[str] = field(default_factory=list)
    taken: set[str] = field(default_factory=set)

    def take(self, *heads: str) -> bool:
        """Whether a key of these tables changes; those that do are dealt with by the caller."""
        found = {key for key in self.change.changed if _under(key, heads)}
        self.taken |= found
        return bool(found - set(MODELLED))

    def changes(self, *heads: str) -> bool:
        """Whether one of these keys changes, without dealing with it."""
        return any(_under(key, heads) for key in self.change.changed)

    def text(self, key: str, default: str = "") -> str:
        """The value after the change, as text."""
        value = self.change.after.get(key)
        return default if value is None else str(value)

    def number(self, key: str, default: int = 0) -> int:
        """The value after the change of a key that holds a whole number."""
        value = self.change.after.get(key)
        return value if isinstance(value, int) else default

    def refuse(self, head: str, reason: str) -> None:
        """This scheduler has no setting for the changed keys of ``head``."""
        for key in self.change.changed:
            if _under(key, (head,)) and key not in MODELLED:
                before, after = self.change.before.get(key), self.change.after.get(key)
                self.cannot[key] = NotExpressed(key, before, after, reason)

    def refuse_beside(self, name: str, reason: str) -> None:
        """This scheduler has no setting for what changes beside the policy."""
        value = getattr(self.beside, name)
        if value:
            self.cannot[name] = NotExpressed(name, None, value, reason)

    def always(self, key: str, value: object, reason: str) -> None:
        """The scheduler has ``value`` and nothing else: any other is not expressed. Where only the
        part is switched on, a default that differs is a remark, as nobody chose it."""
        after = self.change.after.get(key)
        changed = self.change.changed
        if after == value or after is None:
            return
        if key in changed:
            self.refuse(key, reason)
        elif key.partition(".")[0] in changed:
            if after == DEFAULTS.get(key):
                self.remark(key, reason)
            else:
                before = self.change.before.get(key)
                self.cannot[key] = NotExpressed(key, before, after, reason)

    def remark(self, key: str, text: str) -> None:
        """It is expressed, but not quite as simulated."""
        self.remarks.append(Remark(key, text))

    def say_verify(self, *commands: str) -> None:
        """Commands that show that the change took."""
        self.verify += [command for command in commands if command not in self.verify]

    def say_check(self, *commands: str) -> None:
        """Commands that try the change without effect."""
        self.check += [command for command in commands if command not in self.check]

    def rest(self) -> None:
        """What nobody took is not expressed: nothing is dropped in silence."""
        for key in set(self.change.changed) - self.taken - set(MODELLED):
            self.refuse(key, "this scheduler has no such setting")

    def handed(self, scheduler: Scheduler, edits: Sequence[Edit], runs: Sequence[Run]) -> Handover:
        """What was made, with everything that was said on the way."""
        if not edits and not runs:
            self.check.clear()
            self.verify.clear()
        return Handover(
            scheduler,
            tuple(edits),
            tuple(runs),
            tuple(self.check),
            tuple(self.verify),
            tuple(self.cannot[key] for key in sorted(self.cannot)),
            tuple(self.remarks),
            self.modelled(),
        )

    def modelled(self) -> tuple[str, ...]:
        """Changed keys that only the simulation has."""
        return tuple(key for key in self.change.changed if key in MODELLED)


def _under(key: str, heads: tuple[str, ...]) -> bool:
    return any(key == head or key.startswith(f"{head}.") for head in heads)
