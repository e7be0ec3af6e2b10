"""Claims (DRA), old kubelets, moved sockets, and names of containers."""

from __future__ import annotations

import json
import socketserver
import threading
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest

from collector.mapping.containers import ContainerNames
from collector.mapping.device_ids import Places, resolve
from collector.mapping.kubernetes import Kubelet

A, B = "GPU-aaaa", "GPU-bbbb"  # minors 3 and 0 on the node of these tests
ID = "ab" * 32


def held(attribution):
    return {(h.key, h.gpu_uuid, h.mig_uuid, h.share_num, h.share_den) for h in attribution.holdings}


def test_a_claim_holds_the_gpu_of_that_device_file(node_mapper, kubelet, a_tick):
    kubelet.claim("ml", "train", ("gpu.nvidia.com", "gpu-3", "k8s.gpu.nvidia.com/claim=u-gpu-3"))
    found = node_mapper(kubelet.path).attribute(a_tick())
    assert held(found) == {("pod:ml/train", A, None, 1, 1)}
    assert found.errors == {}


def test_a_kubelet_that_knows_only_cdi_names_is_understood(node_mapper, kubelet, a_tick):
    kubelet.claim("ml", "train", ("", "", "k8s.gpu.nvidia.com/claim=5c1f-gpu-0"))
    kubelet.claim("ml", "other", ("", "", "example.org/nic=5c1f-gpu-3"))
    assert held(node_mapper(kubelet.path).attribute(a_tick())) == {("pod:ml/train", B, None, 1, 1)}


def test_claims_of_other_drivers_are_left_alone(node_mapper, kubelet, a_tick):
    kubelet.claim("ml", "net", ("dra.net", "gpu-3", "dra.net/nic=gpu-3"))
    found = node_mapper(kubelet.path).attribute(a_tick())
    assert (held(found), found.errors) == (set(), {})


def test_pods_that_share_a_claim_share_the_gpu(node_mapper, kubelet, a_tick):
    for name in ("one", "two"):
        kubelet.claim("ml", name, ("gpu.nvidia.com", "gpu-3", "x"))
    shares = {
        (h.share_num, h.share_den) for h in node_mapper(kubelet.path).attribute(a_tick()).holdings
    }
    assert shares == {(1, 2)}


def test_a_claimed_slice_is_found_by_where_it_begins():
    places = Places(frozenset({A}), {"MIG-1": A}, {}, {3: A}, {(A, 4): "MIG-1"})
    assert resolve("gpu-3-mig-19-4-1", places) == (A, "MIG-1")
    assert resolve("gpu-3-mig-19-5-1", places) is None
    assert resolve("gpu-9", places) is None


def test_a_kubelet_that_speaks_v1alpha1_is_asked_in_that(node_mapper, old_kubelet, a_tick):
    old_kubelet.hold("ml", "train", [A])
    found = node_mapper(old_kubelet.path).attribute(a_tick())
    assert held(found) == {("pod:ml/train", A, None, 1, 1)}
    assert found.errors == {}


def test_a_socket_in_another_usual_place_is_found(tmp_path, kubelet):
    kubelet.hold("ml", "train", [A])
    asked = Kubelet(known_sockets=(tmp_path / "none", kubelet.path))
    assert asked.present()
    assert [device.pod for device in asked.read()[0]] == ["train"]
    assert not Kubelet(known_sockets=(tmp_path / "none",)).present()


# --- names of containers -----------------------------------------------------------------------


def oci(root, folder, annotations):
    file = root / folder / ID / "config.json"
    if "userdata" in folder:
        file = root / folder.replace("userdata", ID) / "userdata/config.json"
    file.parent.mkdir(parents=True)
    file.write_text(json.dumps({"annotations": annotations}))


CRI = {
    "io.kubernetes.cri.sandbox-namespace": "ml",
    "io.kubernetes.cri.sandbox-name": "train",
    "io.kubernetes.cri.container-name": "main",
}
CRIO = {
    "io.kubernetes.pod.namespace": "ml",
    "io.kubernetes.pod.name": "train",
    "io.kubernetes.container.name": "main",
}


@pytest.mark.parametrize(
    ("folder", "annotations"),
    [
        ("run/containerd/io.containerd.runtime.v2.task/k8s.io", CRI),
        ("run/k3s/containerd/io.containerd.runtime.v2.task/k8s.io", CRI),
        ("run/containers/storage/overlay-containers/userdata", CRIO),
    ],
)
def test_runtimes_say_which_pod_a_container_is_of(tmp_path, folder, annotations):
    oci(tmp_path, folder, annotations)
    name = ContainerNames(tmp_path).of(ID)
    assert (name.pod, name.name) == ("ml/train", "main")


def test_a_pod_without_log_folders_is_named_by_its_runtime(node_mapper, proc, a_tick, tmp_path):
    oci(tmp_path / "root", "run/containerd/io.containerd.runtime.v2.task/k8s.io", CRI)
    uid = "12345678-1234-1234-1234-123456789abc"
    proc.add(100, f"/kubepods/burstable/pod{uid}/{ID}")
    found = node_mapper().attribute(a_tick(first=[100]))
    assert [(h.key, h.name) for h in found.holdings] == [("pod:ml/train", "main")]


def test_a_broken_configuration_costs_the_name_only(tmp_path):
    file = tmp_path / f"run/containerd/io.containerd.runtime.v2.task/moby/{ID}/config.json"
    file.parent.mkdir(parents=True)
    file.write_text("{not json")
    assert ContainerNames(tmp_path).of(ID).name is None


@pytest.fixture
def docker(tmp_path_factory):
    """A Docker daemon that knows one container."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            known = self.path == f"/containers/{ID}/json"
            body = json.dumps({"Name": "/fit-7", "Config": {"Labels": {}}}).encode()
            self.send_response(200 if known else 404)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *args):
            pass

        def address_string(self):
            return "docker"

    root = tmp_path_factory.mktemp("d")
    (root / "var/run").mkdir(parents=True)
    with socketserver.ThreadingUnixStreamServer(
        str(root / "var/run/docker.sock"), Handler
    ) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield root
        server.shutdown()


def test_docker_is_asked_over_its_socket(docker, node_mapper, proc, a_tick):
    names = ContainerNames(docker)
    assert names.of(ID).name == "fit-7"
    assert names.of("cd" * 32).name is None
    proc.add(100, f"/system.slice/docker-{ID}.scope")
    found = node_mapper(containers=names).attribute(a_tick(first=[100]))
    assert [(h.key, h.name) for h in found.holdings] == [(f"container:{ID[:12]}", "fit-7")]


def test_a_socket_that_nobody_answers_costs_the_name_only(tmp_path):
    assert ContainerNames(Path(tmp_path)).of(ID).name is None
