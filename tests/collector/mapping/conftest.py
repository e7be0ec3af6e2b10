from __future__ import annotations

from concurrent import futures
from datetime import UTC, datetime

import pytest

from collector.mapping.containers import ContainerNames
from collector.mapping.kubernetes import Kubelet, PodFolders
from collector.mapping.node import NodeMapper
from collector.mapping.process import ProcReader
from collector.mapping.slurm import PrologMap
from collector.telemetry.device import Device, MigInstance
from collector.telemetry.tick import DeviceTick, ProcessUse, Tick

NOW = datetime(2026, 11, 2, 12, tzinfo=UTC)
A, B = "GPU-aaaa", "GPU-bbbb"


class MadeUpProc:
    """A /proc tree of our own."""

    def __init__(self, root):
        self.root = root
        (root / "sys/kernel").mkdir(parents=True)
        (root / "stat").write_text("cpu 1\nbtime 1793600000\n")

    def add(self, pid, cgroup="/", *, uid=0, environ=None, comm="python", start=500):
        folder = self.root / str(pid)
        folder.mkdir(exist_ok=True)
        (folder / "stat").write_text(f"{pid} ({comm}) S " + " ".join(["0"] * 18) + f" {start} 0\n")
        (folder / "status").write_text(f"Name:\t{comm}\nUid:\t{uid}\t{uid}\t{uid}\t{uid}\n")
        (folder / "cgroup").write_text(f"0::{cgroup}\n")
        (folder / "comm").write_text(comm + "\n")
        pairs = (f"{name}={value}" for name, value in (environ or {}).items())
        (folder / "environ").write_bytes("\0".join(pairs).encode() + b"\0")
        return pid

    def remove(self, pid):
        folder = self.root / str(pid)
        for file in folder.iterdir():
            file.unlink()
        folder.rmdir()


@pytest.fixture
def proc(tmp_path):
    return MadeUpProc(tmp_path / "proc")


@pytest.fixture
def node_mapper(tmp_path, proc):
    """A mapper that sees only made-up files of this test."""

    def make(socket=None, **more):
        values = {
            "proc": ProcReader(proc.root),
            "prolog": PrologMap([tmp_path / "map"]),
            "kubelet": Kubelet(socket or tmp_path / "no.sock"),
            "pods": PodFolders(tmp_path / "logs", tmp_path / "cgroup"),
            "containers": ContainerNames(tmp_path / "root"),
        }
        return NodeMapper(**(values | more))

    return make


@pytest.fixture
def a_tick():
    """Two GPUs, the second one in two slices if asked, and the processes on them."""

    def make(first=(), second=(), mig=False):
        instances = (
            (MigInstance("MIG-1", 1, 0, "1g"), MigInstance("MIG-2", 2, 0, "1g")) if mig else ()
        )
        devices = [Device(A, 0, minor_number=3), Device(B, 1, minor_number=0, mig=instances)]
        uses = [[ProcessUse(pid, "compute", 10.0) for pid in pids] for pids in (first, second)]
        ticks = [DeviceTick(A, processes=uses[0]), DeviceTick(B, processes=uses[1])]
        return Tick(NOW, 1.0, devices, ticks)

    return make


# --- a kubelet of our own ----------------------------------------------------------------------


def varint(number):
    out = bytearray()
    while True:
        number, low = number >> 7, number & 0x7F
        out.append(low | (0x80 if number else 0))
        if not number:
            return bytes(out)


def entry(number, value):
    raw = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(raw)) + raw


def device(resource, ids):
    return entry(1, resource) + b"".join(entry(2, one) for one in ids)


def pod(namespace, name, container, resource, ids):
    return (
        entry(1, name)
        + entry(2, namespace)
        + entry(3, entry(1, container) + entry(2, device(resource, ids)))
    )


class FakeKubelet:
    """Answers PodResources' two questions over a unix socket."""

    def __init__(self, path):
        self.path = path
        self.pods = []
        self.allocatable = []
        self.padding = 0
        self.fail = False
        self.server = None

    def start(self, version="v1"):
        grpc = pytest.importorskip("grpc", reason="grpcio (extra k8s) is not installed")

        def answer(listed):
            def call(_request, context):
                if self.fail:
                    context.abort(grpc.StatusCode.UNAVAILABLE, "kubelet is restarting")
                if listed:
                    return b"".join(entry(1, one) for one in self.pods) + entry(
                        9, b"x" * self.padding
                    )
                return b"".join(entry(1, one) for one in self.allocatable)

            return grpc.unary_unary_rpc_method_handler(call)

        handler = grpc.method_handlers_generic_handler(
            f"{version}.PodResourcesLister",
            {"List": answer(True)}
            | ({"GetAllocatableResources": answer(False)} if version == "v1" else {}),
        )
        options = [("grpc.max_send_message_length", -1)]
        self.server = grpc.server(futures.ThreadPoolExecutor(2), options=options)
        self.server.add_generic_rpc_handlers((handler,))
        self.server.add_insecure_port(f"unix:{self.path}")
        self.server.start()

    def stop(self):
        if self.server is not None:
            self.server.stop(0).wait()

    def hold(self, namespace, name, ids, *, container="main", resource="nvidia.com/gpu"):
        self.pods.append(pod(namespace, name, container, resource, ids))

    def claim(self, namespace, name, *resources, container="main"):
        """A pod with claims (DRA); each resource is (driver, device name, CDI name)."""
        told = b"".join(
            entry(
                4,
                entry(1, entry(1, cdi))
                + (entry(2, driver) + entry(3, "pool") + entry(4, given) if driver else b""),
            )
            for driver, given, cdi in resources
        )
        claim = entry(2, "claim") + entry(3, namespace) + told
        self.pods.append(
            entry(1, name) + entry(2, namespace) + entry(3, entry(1, container) + entry(5, claim))
        )

    def advertise(self, ids, resource="nvidia.com/gpu"):
        self.allocatable.append(device(resource, ids))


@pytest.fixture
def kubelet(tmp_path_factory):
    made = FakeKubelet(tmp_path_factory.mktemp("k") / "s")
    made.start()
    yield made
    made.stop()


@pytest.fixture
def old_kubelet(tmp_path_factory):
    """One that speaks v1alpha1 only."""
    made = FakeKubelet(tmp_path_factory.mktemp("k") / "s")
    made.start("v1alpha1")
    yield made
    made.stop()
