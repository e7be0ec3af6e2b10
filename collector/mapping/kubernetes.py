"""Which pod holds which GPU: the kubelet's PodResources socket, with a check that the pod lives."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from collector.mapping import protobuf
from collector.mapping.attribution import Holding
from collector.mapping.device_ids import Places, resolve

# Distributions move the kubelet's folder: MicroK8s and k0s keep their own.
SOCKETS = tuple(
    Path(root, "pod-resources/kubelet.sock")
    for root in (
        "/var/lib/kubelet",
        "/var/snap/microk8s/common/var/lib/kubelet",
        "/var/lib/k0s/kubelet",
    )
)
# Busy nodes answer with more than gRPC's default of 4 MiB.
MOST_BYTES = 64 * 2**20
TIMEOUT_S = 5.0
_LIST = "/v1.PodResourcesLister/List"
_LIST_OLD = "/v1alpha1.PodResourcesLister/List"  # kubelets before 1.20; its messages are the same
_ALL = "/v1.PodResourcesLister/GetAllocatableResources"
_UNIMPLEMENTED = 12  # gRPC's status for a method that the server does not have
# Dynamic resource allocation: NVIDIA's driver calls a device gpu-MINOR, or
# gpu-MINOR-mig-PROFILE-START-SIZE; before 1.31 the kubelet says it in the CDI name only.
DRA_DRIVER = "gpu.nvidia.com"
_DRA_NAME = re.compile(r"(?:^|[=-])(gpu-\d+(?:-mig-\d+-\d+-\d+)?)$")
RESOURCES = ("nvidia.com/gpu", "nvidia.com/gpu.shared", "nvidia.com/mig-")


@dataclass(frozen=True, slots=True)
class PodDevice:
    """One device id that one container of a pod was given."""

    namespace: str
    pod: str
    container: str
    resource: str
    device_id: str


class Kubelet:
    """Asks the kubelet over its socket. Raises OSError when it cannot be asked."""

    def __init__(
        self,
        socket: Path | None = None,
        resources: Iterable[str] = RESOURCES,
        *,
        known_sockets: Iterable[Path] = SOCKETS,
    ) -> None:
        """``socket`` None: the first of the usual places that is there, looked for anew."""
        self._given = socket
        self._known = tuple(known_sockets)
        self._resources = tuple(resources)

    @property
    def _socket(self) -> Path:
        if self._given is not None:
            return self._given
        return next((path for path in self._known if path.exists()), self._known[0])

    def present(self) -> bool:
        """Whether this node has a kubelet socket at all."""
        return self._socket.exists()

    def read(self) -> tuple[list[PodDevice], Counter[str]]:
        """What containers hold, and how many replicas of each device there are."""
        # Loaded here: only nodes of a Kubernetes cluster need it.
        try:
            import grpc
        except ImportError as error:
            raise OSError("grpcio is not installed: pip install 'unstrand[k8s]'") from error
        options = [("grpc.max_receive_message_length", MOST_BYTES)]
        try:
            with grpc.insecure_channel(f"unix:{self._socket}", options=options) as channel:
                listed = _listed(channel, grpc.RpcError)
                advertised = self._advertised(channel, grpc.RpcError)
        except grpc.RpcError as error:
            raise OSError(
                f"the kubelet at {self._socket} did not answer: {_words(error)}"
            ) from error
        return self._pods(listed), advertised

    def _advertised(self, channel: Any, rpc_error: type[Exception]) -> Counter[str]:
        """Replicas per device; none known from a kubelet that is too old to say."""
        try:
            raw = _ask(channel, _ALL)
        except rpc_error:
            return Counter()
        ids = [i for d in protobuf.messages(raw, 1) if self._ours(d) for i in protobuf.texts(d, 2)]
        return Counter(device_id.partition("::")[0].partition("/vgpu")[0] for device_id in ids)

    def _pods(self, raw: bytes) -> list[PodDevice]:
        try:
            return [
                PodDevice(
                    _one(pod, 2), _one(pod, 1), _one(container, 1), _one(device, 1), device_id
                )
                for pod in protobuf.messages(raw, 1)
                for container in protobuf.messages(pod, 3)
                for device in protobuf.messages(container, 2)
                if self._ours(device)
                for device_id in protobuf.texts(device, 2)
            ] + _claimed(raw)
        except ValueError as error:
            raise OSError(f"the kubelet's answer cannot be read: {error}") from error

    def _ours(self, device: bytes) -> bool:
        name = _one(device, 1)
        return any(
            name.startswith(wanted) if wanted.endswith("-") else name == wanted
            for wanted in self._resources
        )


class PodFolders:
    """Names and lives of pods from the node's own folders, without asking the API server."""

    def __init__(
        self, logs: Path = Path("/var/log/pods"), cgroups: Path = Path("/sys/fs/cgroup")
    ) -> None:
        self._logs = logs
        self._cgroups = cgroups
        self._by_uid: dict[str, str] = {}
        self._by_name: dict[str, set[str]] = {}
        self._live: set[str] | None = None

    def refresh(self) -> None:
        """Look again; once per tick."""
        self._by_uid, self._by_name = {}, {}
        for folder in _children(self._logs):
            namespace, _, rest = folder.partition("_")
            name, _, uid = rest.rpartition("_")
            if uid and name:
                self._by_uid[uid] = f"{namespace}/{name}"
                self._by_name.setdefault(f"{namespace}/{name}", set()).add(uid)
        self._live = self._living()

    def name_of(self, uid: str) -> str | None:
        """``namespace/name`` of a pod's UID."""
        return self._by_uid.get(uid)

    def ended(self, name: str) -> bool:
        """Whether the pod is known to have no control group any more.

        The kubelet lists a finished pod for a while; it must not be charged for that.
        """
        uids = self._by_name.get(name, set())
        return bool(uids) and self._live is not None and uids.isdisjoint(self._live)

    def _living(self) -> set[str] | None:
        from collector.mapping.cgroup import membership

        roots = [
            r
            for r in (self._cgroups, self._cgroups / "devices")
            if (r / "kubepods.slice").is_dir() or (r / "kubepods").is_dir()
        ]
        if not roots:
            return None
        found = set()
        for root in roots:
            for top in root.glob("kubepods*"):
                for folder in (*top.glob("*pod*"), *top.glob("*/*pod*")):
                    uid = membership(f"/{folder.relative_to(root)}").pod_uid
                    if uid is not None:
                        found.add(uid)
        return found


def holdings(
    devices: Iterable[PodDevice],
    advertised: Counter[str],
    places: Places,
    ended: Callable[[str], bool],
) -> tuple[list[Holding], list[str]]:
    """Shares of each pod in each device, and the ids that name no device of this node.

    A pod's share is the replicas it holds of those that are advertised.
    """
    held: Counter[tuple[str, str, str, str, str | None]] = Counter()
    base_of: dict[tuple[str, str | None], str] = {}
    unknown: list[str] = []
    for device in devices:
        if ended(f"{device.namespace}/{device.pod}"):
            continue
        place = resolve(device.device_id, places)
        if place is None:
            unknown.append(device.device_id)
            continue
        base_of[place] = device.device_id.partition("::")[0].partition("/vgpu")[0]
        held[device.namespace, device.pod, device.container, *place] += 1
    taken: Counter[tuple[str, str | None]] = Counter()
    for (_, _, _, gpu, mig), count in held.items():
        taken[gpu, mig] += count
    found = []
    for (namespace, pod, container, gpu, mig), count in held.items():
        whole = max(advertised.get(base_of[gpu, mig], 0), taken[gpu, mig])
        found.append(
            Holding(
                f"pod:{namespace}/{pod}", gpu, mig, count, whole, account=namespace, name=container
            )
        )
    return found, unknown


def _claimed(raw: bytes) -> list[PodDevice]:
    """Devices that containers were given by claims (DRA), of NVIDIA's driver only."""
    return [
        PodDevice(_one(pod, 2), _one(pod, 1), _one(container, 1), DRA_DRIVER, name)
        for pod in protobuf.messages(raw, 1)
        for container in protobuf.messages(pod, 3)
        for claim in protobuf.messages(container, 5)
        for resource in protobuf.messages(claim, 4)
        for name in _claimed_names(resource)
    ]


def _claimed_names(resource: bytes) -> list[str]:
    driver, name = _one(resource, 2), _one(resource, 4)
    if driver:
        return [name] if driver == DRA_DRIVER else []
    cdi = [_one(device, 1) for device in protobuf.messages(resource, 1)]
    ours = [one for one in cdi if DRA_DRIVER in one.partition("=")[0]]
    return [found[1] for one in ours if (found := _DRA_NAME.search(one))]


def _listed(channel: Any, rpc_error: type[Exception]) -> bytes:
    try:
        return _ask(channel, _LIST)
    except rpc_error as error:
        code = getattr(error, "code", None)
        if not callable(code) or code().value[0] != _UNIMPLEMENTED:
            raise
        return _ask(channel, _LIST_OLD)


def _ask(channel: Any, method: str) -> bytes:
    call = channel.unary_unary(method, request_serializer=bytes, response_deserializer=bytes)
    answer: bytes = call(b"", timeout=TIMEOUT_S)
    return answer


def _one(raw: bytes, number: int) -> str:
    found = protobuf.texts(raw, number)
    return found[0] if found else ""


def _words(error: Any) -> str:
    details = getattr(error, "details", None)
    return str(details() if callable(details) else error)[:200]


def _children(folder: Path) -> list[str]:
    try:
        return [child.name for child in folder.iterdir()]
    except OSError:
        return []
