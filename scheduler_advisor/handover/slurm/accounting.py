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
    "MaxTRESPU": "gres/gpu=-1",
    "MaxTRESPA": "gres/gpu=-1",
    "Fairshare": "1",
}
_SAME = {"GraceTime": {"00:00:00": "0"}}


@dataclass(slots=True)
class Accounting:
    """``qos``: settings by QoS as they become. ``changed``: of each object its settings with the
    value after and before."""

    qos: dict[str, dict[str, str]]
    added: list[str] = field(default_factory=list)
    changed: dict[tuple[str, str], dict[str, tuple[str, str]]] = field(default_factory=dict)

    @classmethod
    def of(cls, settings: Mapping[str, str]) -> Accounting:
        """From settings as stored: ``qos.NAME.KEY``."""
        found: dict[str, dict[str, str]] = {}
        for key, value in settings.items():
            if key.startswith("qos."):
                name, _, column = key[4:].rpartition(".")
                found.setdefault(name, {})[column] = _SAME.get(column, {}).get(value, value)
        return cls(found)

    def by_priority(self) -> list[str]:
        """QoS from the least to the most important."""
        return sorted(self.qos, key=lambda name: (int(self.qos[name].get("Priority", "0")), name))

    def add_qos(self, name: str) -> None:
        """A new QoS; nothing where it is there."""
        if name not in self.qos:
            self.qos[name] = {}
            self.added.append(name)

    def set_qos(self, name: str, key: str, value: str) -> None:
        """A setting of a QoS that is there."""
        own = self.qos.setdefault(name, {})
        self._set("qos", name, key, (value, own.get(key, _CLEARED[key])))
        own[key] = value

    def set_account(self, name: str, key: str, value: str, before: str | None) -> None:
        """A setting of an account, or of a user in one (ACCOUNT/USER); ``before`` None: unset."""
        old = _CLEARED.get(key, "") if before is None else before
        self._set("user" if "/" in name else "account", name, key, (value, old))

    def _set(self, kind: str, name: str, key: str, values: tuple[str, str]) -> None:
        own = self.changed.setdefault((kind, name), {})
        first = own.pop(key, values)[1]
        if values[0] != first:
            own[key] = (values[0], first)

    def runs(self) -> list[Run]:
        """New QoS in their order, then one command for each object that changes."""
        found = [
            Run(
                _command("add", "qos", name, self._values("qos", name, 0)),
                f"sacctmgr -i delete qos {name}",
            )
            for name in self.added
        ]
        for kind, name in self.changed:
            after, before = (self._values(kind, name, side) for side in (0, 1))
            if after and not (kind == "qos" and name in self.added):
                found.append(
                    Run(
                        _command("modify", kind, name, ["set", *after]),
                        _command("modify", kind, name, ["set", *before]),
                    )
                )
        return found

    def _values(self, kind: str, name: str, side: int) -> list[str]:
        rows = self.changed.get((kind, name), {})
        return [f"{key}={pair[side] or chr(39) * 2}" for key, pair in rows.items()]


def _command(act: str, kind: str, name: str, words: list[str]) -> str:
    if kind == "user":
        account, _, user = name.partition("/")
        name = f"where name={user} account={account}"
    return " ".join(["sacctmgr -i", act, kind, name, *words])
