"""Names of containers, from what runtimes keep on the node; nothing is asked of a cluster.

containerd and CRI-O write each container's configuration (OCI) beside it, with the pod and the
name as annotations. Docker is asked over its socket. All of it is optional: without it a container
is known by the first digits of its id.
"""

from __future__ import annotations

import json
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import Any

_TIMEOUT_S = 2.0
_MOST_KNOWN = 4096
# (pod's namespace, pod's name, container's name) in the annotations of containerd and of CRI-O.
_ANNOTATIONS = (
    (
        "io.kubernetes.cri.sandbox-namespace",
        "io.kubernetes.cri.sandbox-name",
        "io.kubernetes.cri.container-name",
    ),
    ("io.kubernetes.pod.namespace", "io.kubernetes.pod.name", "io.kubernetes.container.name"),
)
# Where containerd (k3s keeps its own), CRI-O and podman keep a container's config.json.
OCI_FOLDERS = (
    "run/containerd/io.containerd.runtime.v2.task/*/{id}",
    "run/k3s/containerd/io.containerd.runtime.v2.task/*/{id}",
    "run/containers/storage/overlay-containers/{id}/userdata",
    "var/lib/containers/storage/overlay-containers/{id}/userdata",
)
DOCKER_SOCKET = "var/run/docker.sock"


@dataclass(frozen=True, slots=True)
class ContainerName:
    """``pod``: ``namespace/name`` where Kubernetes made it. ``name``: what people call it."""

    name: str | None = None
    pod: str | None = None


class ContainerNames:
    """Looks each container up once. ``root``: another root of the files, for the host's."""

    def __init__(self, root: Path = Path("/")) -> None:
        self._root = root
        self._known: dict[str, ContainerName] = {}

    def of(self, container_id: str) -> ContainerName:
        """What the container is called; empty where no runtime says it."""
        if container_id not in self._known:
            if len(self._known) >= _MOST_KNOWN:
                self._known.clear()
            found = self._from_files(container_id) or self._from_docker(container_id)
            self._known[container_id] = found or ContainerName()
        return self._known[container_id]

    def _from_files(self, container_id: str) -> ContainerName | None:
        for folder in OCI_FOLDERS:
            for file in self._root.glob(folder.format(id=container_id) + "/config.json"):
                try:
                    config = json.loads(file.read_bytes())
                except (OSError, ValueError):
                    continue  # the container is being made or taken away
                annotations = config.get("annotations") if isinstance(config, dict) else None
                return _annotated(annotations if isinstance(annotations, dict) else {})
        return None

    def _from_docker(self, container_id: str) -> ContainerName | None:
        path = self._root / DOCKER_SOCKET
        if not path.is_socket():
            return None
        connection = _UnixConnection(path)
        try:
            connection.request("GET", f"/containers/{container_id}/json")
            answer = connection.getresponse()
            found = json.loads(answer.read()) if answer.status == 200 else None
        except (OSError, HTTPException, ValueError):
            return None
        finally:
            connection.close()
        return _docker(found) if isinstance(found, dict) else None


def _annotated(annotations: Mapping[str, Any]) -> ContainerName:
    for namespace, pod, name in _ANNOTATIONS:
        if pod in annotations:
            full = f"{annotations.get(namespace, 'default')}/{annotations[pod]}"
            return ContainerName(annotations.get(name), full)
    return ContainerName()


def _docker(found: Mapping[str, Any]) -> ContainerName:
    labels = (found.get("Config") or {}).get("Labels") or {}
    named = _annotated(labels)
    if named.pod is not None:
        return named
    return ContainerName(str(found.get("Name", "")).lstrip("/") or None)


class _UnixConnection(HTTPConnection):
    """HTTP over a socket in the file system, as Docker speaks it."""

    def __init__(self, path: Path) -> None:
        super().__init__("localhost", timeout=_TIMEOUT_S)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(_TIMEOUT_S)
        self.sock.connect(str(self._path))
