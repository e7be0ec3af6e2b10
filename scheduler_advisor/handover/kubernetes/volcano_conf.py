"""The file of Volcano's scheduler, which lies inside a ConfigMap."""

from __future__ import annotations

from typing import Any

import yaml

from scheduler_advisor.handover.errors import HandoverError
from scheduler_advisor.handover.kubernetes.objects import Body, Objects, made

FILE, MAP, NAMESPACE = "volcano.yaml", "volcano-scheduler-configmap", "volcano-system"
CONF = "volcano-scheduler.conf"
ACTIONS = ("enqueue", "allocate", "preempt", "reclaim", "backfill")
DEFAULT = {
    "actions": "enqueue, allocate, backfill",
    "tiers": [
        {"plugins": [{"name": "priority"}, {"name": "gang"}, {"name": "conformance"}]},
        {
            "plugins": [
                {"name": "overcommit"},
                {"name": "drf"},
                {"name": "predicates"},
                {"name": "proportion"},
                {"name": "nodeorder"},
            ]
        },
    ],
}


class SchedulerConf:
    """The scheduler's own file inside its ConfigMap."""

    def __init__(self, objects: Objects) -> None:
        """From the map, or the release's default where there is none."""
        body = made("v1", "ConfigMap", MAP, namespace=NAMESPACE)
        self._map = objects.put(body | {"data": {CONF: yaml.safe_dump(DEFAULT, sort_keys=False)}})
        try:
            self.body: Body = yaml.safe_load(self._map["data"][CONF])
        except (KeyError, yaml.YAMLError) as error:
            raise HandoverError(f"{FILE}: {MAP} has no readable {CONF}: {error}") from error
        self._read = yaml.safe_dump(self.body)

    def action(self, name: str, on: bool) -> None:
        """One of the actions, in the order that Volcano runs them."""
        have = [one.strip() for one in str(self.body.get("actions", "")).split(",")]
        wanted = [one for one in have if one and one != name] + [name] * on
        rank = {one: at for at, one in enumerate(ACTIONS)}
        self.body["actions"] = ", ".join(sorted(wanted, key=lambda one: rank.get(one, 9)))

    def plugin(self, name: str, tier: int = 1, arguments: Body | None = None) -> None:
        """A plugin with its arguments; nothing else about it changes."""
        found = self._find(name)
        if found is None:
            found = {"name": name}
            tiers = self.body.setdefault("tiers", [])
            while len(tiers) <= tier:
                tiers.append({"plugins": []})
            tiers[tier]["plugins"].append(found)
        if arguments:
            found.setdefault("arguments", {}).update(arguments)

    def drop(self, name: str) -> None:
        """Take a plugin out."""
        for tier in self.body.get("tiers", []):
            tier["plugins"] = [one for one in tier["plugins"] if one["name"] != name]

    def write(self) -> None:
        """Back into the map, where something changed."""
        if yaml.safe_dump(self.body) != self._read:
            self._map["data"][CONF] = yaml.safe_dump(self.body, sort_keys=False)

    def _find(self, name: str) -> dict[str, Any] | None:
        plugins = (one for tier in self.body.get("tiers", []) for one in tier["plugins"])
        return next((one for one in plugins if one["name"] == name), None)
