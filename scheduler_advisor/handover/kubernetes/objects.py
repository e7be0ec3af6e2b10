"""Kubernetes objects as they are and as they shall be, and the kubectl commands between them."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import yaml

from scheduler_advisor.handover.errors import HandoverError
from scheduler_advisor.handover.steps import Edit, Known, Run

Body = dict[str, Any]
# What the API server writes; an object that is applied must not carry it.
_SERVER = ("uid", "resourceVersion", "creationTimestamp", "generation", "managedFields", "selfLink")
GPU = "nvidia.com/gpu"
# A controller's own configuration lies in a ConfigMap and has no name of its own.
CONFIG, CONFIG_NAME = "Configuration", "kueue-manager-config"
CONFIG_KEY = "controller_manager_config.yaml"
_MANAGER = "kubectl -n kueue-system rollout restart deployment/kueue-controller-manager"


@dataclass(frozen=True, slots=True)
class Key:
    """Kind and name of an object; ``namespace`` empty: of the whole cluster."""

    kind: str
    name: str
    namespace: str = ""

    @property
    def file(self) -> str:
        """Where it is written."""
        return f"{self.kind.lower()}-{self.name}.yaml"

    @property
    def options(self) -> str:
        """For kubectl."""
        kind = "configmap" if self.kind == CONFIG else self.kind.lower()
        place = f" -n {self.namespace}" if self.namespace else ""
        return f"{kind} {self.name}{place}"


class Objects:
    """Objects by kind and name. ``today`` is kept beside what they become."""

    def __init__(self, text: str | None, source: str) -> None:
        """From YAML documents, such as of `kubectl get ... -o yaml`; None: nothing is known."""
        self.known = Known.ASSUMED if text is None else Known.FILE
        self.today: dict[Key, Body] = {}
        for body in _documents(text or "", source):
            self.today[_key(body, source)] = body
        self.after = deepcopy(self.today)
        self._given = frozenset(self.today)

    def assume(self) -> None:
        """What has been put so far counts as how it is today."""
        self.today = deepcopy(self.after)

    def of_kind(self, kind: str) -> list[Body]:
        """Objects of a kind, by name."""
        return [self.after[key] for key in sorted(self.after, key=str) if key.kind == kind]

    def get(self, kind: str, name: str) -> Body | None:
        """One object to be changed in place."""
        return next(
            (body for key, body in self.after.items() if (key.kind, key.name) == (kind, name)), None
        )

    def put(self, body: Body) -> Body:
        """A new object, or the one that is there already under its kind and name."""
        key = _key(body, "")
        return self.after.setdefault(key, body)

    def drop(self, kind: str, name: str) -> None:
        """Delete an object."""
        for key in [one for one in self.after if (one.kind, one.name) == (kind, name)]:
            del self.after[key]

    def edits(self) -> tuple[Edit, ...]:
        """A file for each object that changes."""
        keys = dict.fromkeys([*self.today, *self.after])
        return tuple(
            Edit(key.file, dumped(self.today.get(key)), dumped(self.after.get(key)), self.known)
            for key in keys
            if self.today.get(key) != self.after.get(key)
        )

    def runs(self) -> tuple[Run, ...]:
        """What makes the cluster as the files are: written ones applied, others deleted."""
        found = []
        for key in dict.fromkeys([*self.today, *self.after]):
            if self.today.get(key) == self.after.get(key):
                continue
            there, here = f"kubectl apply -f {key.file}", f"kubectl delete {key.options}"
            if key.kind == CONFIG:
                put = _replaced(key) if key in self._given else _merged(key)
                found.append(Run(put, put))
                continue
            found.append(
                Run(there if key in self.after else here, there if key in self.today else here)
            )
        return tuple(found)

    def check(self) -> list[str]:
        """The API server's own validation, without effect."""
        files = [
            key.file
            for key, body in self.after.items()
            if key.kind != CONFIG and self.today.get(key) != body
        ]
        names = "".join(f" -f {name}" for name in files)
        if not files:
            return []
        return [f"kubectl apply --dry-run=server --validate=strict{names}", f"kubectl diff{names}"]

    def verify(self) -> list[str]:
        """The objects as the cluster has them."""
        return [
            f"kubectl get {key.options} -o yaml"
            for key in self.after
            if self.today.get(key) != self.after[key]
        ]


def dumped(body: Body | None) -> str | None:
    """YAML with keys in their order, and texts of several lines as they are read."""
    return None if body is None else str(yaml.dump(body, Dumper=_Lines, sort_keys=False))


class _Lines(yaml.SafeDumper):  # type: ignore[misc]
    """Texts of several lines as blocks."""


def _block(dumper: yaml.SafeDumper, text: str) -> yaml.Node:
    style = "|" if "\n" in text else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Lines.add_representer(str, _block)


def made(api: str, kind: str, name: str, spec: Body | None = None, namespace: str = "") -> Body:
    """A new object."""
    metadata = {"name": name} | ({"namespace": namespace} if namespace else {})
    body: Body = {"apiVersion": api, "kind": kind, "metadata": metadata}
    return body if spec is None else body | {"spec": spec}


def clean(name: str) -> str:
    """A name that Kubernetes takes."""
    kept = "".join(letter if letter.isalnum() else "-" for letter in name.lower()).strip("-")
    if not kept.isascii() or not kept:
        raise HandoverError(f"queue {name!r}: no name of a Kubernetes object can be made of it")
    return kept


def _replaced(key: Key) -> str:
    return (
        f"kubectl -n {key.namespace} create configmap {key.name} --dry-run=client -o yaml"
        f" --from-file={CONFIG_KEY}={key.file} | kubectl apply -f - && {_MANAGER}"
    )


def _merged(key: Key) -> str:
    # Only a part of the file is known: as a whole it would drop everything else.
    return f"kubectl edit {key.options}    # {CONFIG_KEY}: as in {key.file}; then {_MANAGER}"


def _documents(text: str, source: str) -> list[Body]:
    try:
        found = [body for body in yaml.safe_load_all(text) if body]
    except yaml.YAMLError as error:
        raise HandoverError(f"{source}: not YAML: {error}") from error
    flat: list[Body] = []
    for body in found:
        if not isinstance(body, dict):
            raise HandoverError(f"{source}: expected Kubernetes objects, found {str(body)[:40]!r}")
        flat += body.get("items", []) if str(body.get("kind", "")).endswith("List") else [body]
    for body in flat:
        body.pop("status", None)
        for key in _SERVER:
            body.get("metadata", {}).pop(key, None)
    return flat


def _key(body: Body, source: str) -> Key:
    if body.get("kind") == CONFIG:
        return Key(CONFIG, CONFIG_NAME, "kueue-system")
    metadata = body.get("metadata") or {}
    if "kind" not in body or "name" not in metadata:
        raise HandoverError(f"{source}: an object without kind or metadata.name")
    return Key(str(body["kind"]), str(metadata["name"]), str(metadata.get("namespace", "")))
