"""QoS and accounts of the accounting database, and the sacctmgr commands to change them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from scheduler_advisor.handover.steps import Run

# What clears a setting; for an association's limit and for text -1 and an empty value do.
_CLEARED = {
    "Priority": "0",
    "Preempt": "",
    "PreemptMode": "cluster",
    "GraceTime": "0",
    "PreemptExemptTime": "-1",
    "GrpTRES": "gres/gpu=-1",
    "Fairshare": "1",
}
_SAME = {"GraceTime": {"00:00:00": "0"}}


@dataclass(slots=True)
class Accounting:
    """``qos``: settings by QoS; None where the site's QoS are not known."""

    qos: dict[str, dict[str, str]]
    known: bool
    runs: list[Run] = field(default_factory=list)

    @classmethod
    def of(cls, settings: Mapping[str, str]) -> Accounting:
        """From settings as stored: ``qos.NAME.KEY``."""
        found: dict[str, dict[str, str]] = {}
        for key, value in settings.items():
            if key.startswith("qos."):
                name, _, column = key[4:].rpartition(".")
                found.setdefault(name, {})[column] = _SAME.get(column, {}).get(value, value)
        return cls(found, bool(found))

    def by_priority(self) -> list[str]:
        """QoS from the least to the most important."""
        return sorted(self.qos, key=lambda name: (int(self.qos[name].get("Priority", "0")), name))

    def add_qos(self, name: str) -> None:
        """A new QoS; nothing where it is there."""
        if name not in self.qos:
            self.qos[name] = {}
            self.runs.append(Run(f"sacctmgr -i add qos {name}", f"sacctmgr -i delete qos {name}"))

    def set_qos(self, name: str, key: str, value: str) -> None:
        """A setting of a QoS that is there."""
        own = self.qos.setdefault(name, {})
        before = own.get(key, _CLEARED[key])
        if before == value:
            return
        own[key] = value
        self.runs.append(Run(_modify("qos", name, key, value), _modify("qos", name, key, before)))

    def set_account(self, name: str, key: str, value: str, before: str | None) -> None:
        """A setting of an account; ``before`` None: unset."""
        old = _CLEARED.get(key, "") if before is None else before
        if old != value:
            self.runs.append(
                Run(_modify("account", name, key, value), _modify("account", name, key, old))
            )


def _modify(kind: str, name: str, key: str, value: str) -> str:
    return f"sacctmgr -i modify {kind} {name} set {key}={value or chr(39) * 2}"
