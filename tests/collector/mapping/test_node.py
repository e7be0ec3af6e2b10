"""Who holds and who uses, on nodes of every kind."""

from __future__ import annotations

import os
from fractions import Fraction

import pytest

from collector.mapping.attribution import Holding
from collector.mapping.device_ids import Places, resolve
from collector.mapping.protobuf import fields

A, B = "GPU-aaaa", "GPU-bbbb"
SCOPE = "/system.slice/slurmstepd.scope"
UID = "0a1b2c3d-1111-2222-3333-444455556666"
POD_CGROUP = (
    f"/kubepods.slice/kubepods-pod{UID.replace('-', '_')}.slice/cri-containerd-{'ab' * 32}.scope"
)


def held(attribution):
    return {
        (h.key, h.gpu_uuid, h.mig_uuid): Fraction(h.share_num, h.share_den)
        for h in attribution.holdings
    }


# --- Slurm -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "cgroup", ["/slurm/uid_1000/job_17/step_0", f"{SCOPE}/job_17/step_0/user/task_0"]
)
def test_a_process_of_a_job_belongs_to_the_job(node_mapper, proc, a_tick, cgroup):
    proc.add(100, cgroup, uid=1000)
    found = node_mapper().attribute(a_tick([100]))
    assert found.owners[100].key == "slurm:17"
    assert held(found) == {("slurm:17", A, None): 1}


def test_a_sluid_is_resolved_by_the_environment(node_mapper, proc, a_tick):
    proc.add(100, f"{SCOPE}/s8FXKTA79XAR00/step_0", environ={"SLURM_JOB_ID": "17"})
    assert node_mapper().attribute(a_tick([100])).owners[100].key == "slurm:17"


def test_a_sluid_without_an_environment_keeps_its_own_name(node_mapper, proc, a_tick):
    proc.add(100, f"{SCOPE}/s8FXKTA79XAR00/step_0")
    assert node_mapper().attribute(a_tick([100])).owners[100].key == "sluid:s8FXKTA79XAR00"


def test_a_form_of_path_that_is_not_known_raises_an_alarm(node_mapper, proc, a_tick):
    proc.add(100, f"{SCOPE}/workload_9/step_0", environ={"SLURM_JOB_ID": "17"})
    found = node_mapper().attribute(a_tick([100]))
    assert "workload_9" in found.errors["slurm_cgroup"]
    assert found.owners[100].key == "slurm:17"


def test_a_variable_with_a_similar_name_is_not_the_job_id(node_mapper, proc, a_tick):
    proc.add(100, "/", environ={"MY_SLURM_JOB_ID": "99", "SLURM_JOB_IDX": "98"})
    assert node_mapper().attribute(a_tick([100])).owners[100].key == "user:root"


def test_a_job_that_holds_a_gpu_and_runs_nothing_on_it_is_its_holder(node_mapper, tmp_path, a_tick):
    (tmp_path / "map").mkdir()
    (tmp_path / "map" / B).write_text("23 1000\n")
    assert held(node_mapper().attribute(a_tick())) == {("slurm:23", B, None): 1}


def test_a_map_by_number_identifies_nothing_and_says_so(node_mapper, tmp_path, a_tick):
    (tmp_path / "map").mkdir()
    (tmp_path / "map" / "0").write_text("23 1000\n")
    found = node_mapper().attribute(a_tick())
    assert found.holdings == ()
    assert "a number does not identify a GPU" in found.errors["slurm"]


def test_jobs_that_share_a_gpu_in_the_map_have_equal_parts_of_it(node_mapper, tmp_path, a_tick):
    (tmp_path / "map").mkdir()
    (tmp_path / "map" / A).write_text("1\n2\n3\n")
    found = held(node_mapper().attribute(a_tick()))
    assert found == {(f"slurm:{job}", A, None): Fraction(1, 3) for job in (1, 2, 3)}


def test_uuids_in_the_environment_name_devices_and_numbers_do_not(node_mapper, proc, a_tick):
    job = f"{SCOPE}/job_17/step_0"
    proc.add(100, job, environ={"CUDA_VISIBLE_DEVICES": f"{A},{B}"})
    proc.add(
        101,
        f"{SCOPE}/job_18/step_0",
        environ={"CUDA_VISIBLE_DEVICES": "0,1", "SLURM_JOB_GPUS": "0,1"},
    )
    found = held(node_mapper().attribute(a_tick([100])))
    assert found == {("slurm:17", A, None): 1, ("slurm:17", B, None): 1}
    assert held(node_mapper().attribute(a_tick([], [101]))) == {("slurm:18", B, None): 1}


def test_a_map_may_name_an_instance(node_mapper, tmp_path, a_tick):
    (tmp_path / "map").mkdir()
    (tmp_path / "map" / "MIG-2").write_text("23\n")
    assert held(node_mapper().attribute(a_tick(mig=True))) == {("slurm:23", B, "MIG-2"): 1}


# --- Kubernetes --------------------------------------------------------------------------------


def test_a_pod_holds_its_gpus_whether_or_not_it_runs_on_them(node_mapper, kubelet, a_tick):
    kubelet.hold("research", "train-0", [A, B])
    found = node_mapper(kubelet.path).attribute(a_tick())
    assert held(found) == {
        ("pod:research/train-0", A, None): 1,
        ("pod:research/train-0", B, None): 1,
    }
    assert found.holdings[0].account == "research"
    assert found.errors == {}


def test_replicas_are_shares_of_what_is_advertised_and_never_whole_gpus(
    node_mapper, kubelet, a_tick
):
    kubelet.advertise([f"{A}::{n}" for n in range(4)], "nvidia.com/gpu.shared")
    kubelet.hold("ns", "one", [f"{A}::0"], resource="nvidia.com/gpu.shared")
    kubelet.hold("ns", "two", [f"{A}::2", f"{A}::3"], resource="nvidia.com/gpu.shared")
    found = held(node_mapper(kubelet.path).attribute(a_tick()))
    assert found == {
        ("pod:ns/one", A, None): Fraction(1, 4),
        ("pod:ns/two", A, None): Fraction(1, 2),
    }


def test_an_instance_of_a_pod_is_found_by_its_resource_and_uuid(node_mapper, kubelet, a_tick):
    kubelet.hold("ns", "p", ["MIG-2"], resource="nvidia.com/mig-1g.10gb")
    assert held(node_mapper(kubelet.path).attribute(a_tick(mig=True))) == {
        ("pod:ns/p", B, "MIG-2"): 1
    }


def test_resources_that_are_no_gpus_are_left_alone(node_mapper, kubelet, a_tick):
    kubelet.hold("ns", "p", ["mlx5_0"], resource="rdma/hca")
    assert node_mapper(kubelet.path).attribute(a_tick()).holdings == ()


def test_an_answer_larger_than_grpcs_default_is_read(node_mapper, kubelet, a_tick):
    kubelet.padding = 9 * 2**20
    kubelet.hold("ns", "p", [A])
    assert held(node_mapper(kubelet.path).attribute(a_tick())) == {("pod:ns/p", A, None): 1}


def test_a_kubelet_that_does_not_answer_costs_the_mapping_and_nothing_else(
    node_mapper, kubelet, proc, a_tick
):
    proc.add(100)
    kubelet.hold("ns", "p", [A])
    mapper = node_mapper(kubelet.path)
    assert mapper.attribute(a_tick()).age_s == 0
    kubelet.fail = True
    found = mapper.attribute(a_tick([], [100]))
    assert "kubelet is restarting" in found.errors["kubernetes"]
    assert ("pod:ns/p", A, None) in held(found), "the last good answer, with its age"
    assert found.age_s > 0
    assert found.owners[100].key == "user:root"


def test_a_finished_pod_that_the_kubelet_still_lists_holds_nothing(
    node_mapper, kubelet, tmp_path, a_tick
):
    (tmp_path / "logs" / f"ns_old_{UID}").mkdir(parents=True)
    (tmp_path / "logs" / "ns_new_ffffffff-1111-2222-3333-444455556666").mkdir()
    top = tmp_path / "cgroup" / "kubepods.slice"
    (top / "kubepods-podffffffff_1111_2222_3333_444455556666.slice").mkdir(parents=True)
    kubelet.hold("ns", "old", [A])
    kubelet.hold("ns", "new", [B])
    assert held(node_mapper(kubelet.path).attribute(a_tick())) == {("pod:ns/new", B, None): 1}


def test_a_process_in_a_pod_is_named_by_the_pod(node_mapper, kubelet, tmp_path, proc, a_tick):
    (tmp_path / "logs" / f"ns_p_{UID}").mkdir(parents=True)
    proc.add(100, POD_CGROUP)
    kubelet.hold("ns", "p", [A])
    found = node_mapper(kubelet.path).attribute(a_tick([100]))
    assert found.owners[100].key == "pod:ns/p"
    assert held(found) == {("pod:ns/p", A, None): 1}


def test_a_device_id_that_is_not_on_this_node_is_named(node_mapper, kubelet, a_tick):
    kubelet.hold("ns", "p", ["GPU-elsewhere"])
    found = node_mapper(kubelet.path).attribute(a_tick())
    assert "GPU-elsewhere" in found.errors["kubernetes"]


@pytest.mark.parametrize(
    ("device_id", "expected"),
    [
        (A, (A, None)),
        (f"{A}::3", (A, None)),
        ("MIG-2", (B, "MIG-2")),
        ("MIG-2::0", (B, "MIG-2")),
        (f"MIG-{B}/2/0", (B, "MIG-2")),
        ("nvidia3", (A, None)),
        ("nvidia3/vgpu1", (A, None)),
        ("nvidia0/gi2", (B, "MIG-2")),
        ("nvidia0/gi2/vgpu0", (B, "MIG-2")),
        ("nvidia7", None),
        ("nvidia0/gi9", None),
        ("GPU-unknown", None),
        ("", None),
    ],
)
def test_every_form_of_device_id_finds_its_place(device_id, expected):
    places = Places(frozenset({A, B}), {"MIG-2": B}, {(B, 2): "MIG-2"}, {3: A, 0: B})
    assert resolve(device_id, places) == expected


@pytest.mark.parametrize("raw", [b"\x0a\xff", b"\x80", b"\x0b", b"\x0d\x01"])
def test_bytes_that_are_no_message_are_an_error_and_not_a_crash(raw):
    with pytest.raises(ValueError, match=r"cut off|not known"):
        list(fields(raw))


# --- containers, users, sharing ----------------------------------------------------------------


def test_a_container_and_a_bare_user_hold_what_they_run_on(node_mapper, proc, a_tick):
    proc.add(100, f"/docker/{'ab' * 32}")
    proc.add(101, "/user.slice/user-4711.slice/session-1.scope", uid=4711)
    found = held(node_mapper().attribute(a_tick([100], [101])))
    assert found == {("container:abababababab", A, None): 1, ("user:4711", B, None): 1}


def test_users_on_one_gpu_share_it_and_the_parts_are_one(node_mapper, proc, a_tick):
    for pid, uid in ((100, 4711), (101, 4712), (102, 4712)):
        proc.add(pid, uid=uid)
    found = held(node_mapper().attribute(a_tick([100, 101, 102])))
    assert found == {("user:4711", A, None): Fraction(1, 2), ("user:4712", A, None): Fraction(1, 2)}


def test_under_mps_the_part_of_the_sms_weighs_and_the_daemon_holds_nothing(
    node_mapper, proc, a_tick
):
    proc.add(99, comm="nvidia-cuda-mps-server"[:15])
    proc.add(100, uid=4711, environ={"CUDA_MPS_ACTIVE_THREAD_PERCENTAGE": "75"})
    proc.add(101, uid=4712, environ={"CUDA_MPS_ACTIVE_THREAD_PERCENTAGE": "25"})
    found = held(node_mapper().attribute(a_tick([99, 100, 101])))
    assert found == {("user:4711", A, None): Fraction(3, 4), ("user:4712", A, None): Fraction(1, 4)}


def test_limits_that_exceed_the_gpu_together_are_scaled_to_it(node_mapper, proc, a_tick):
    for pid, uid in ((100, 4711), (101, 4712)):
        proc.add(pid, uid=uid, environ={"CUDA_MPS_ACTIVE_THREAD_PERCENTAGE": "100"})
    assert sum(held(node_mapper().attribute(a_tick([100, 101]))).values()) == 1


def test_who_was_given_a_gpu_pays_for_it_even_when_another_runs_on_it(
    node_mapper, kubelet, proc, a_tick
):
    kubelet.hold("ns", "p", [A])
    proc.add(100, uid=4711)
    found = node_mapper(kubelet.path).attribute(a_tick([100]))
    assert held(found) == {("pod:ns/p", A, None): 1}
    assert found.owners[100].key == "user:4711"


# --- processes ---------------------------------------------------------------------------------


def test_a_pid_that_is_reused_is_a_new_process(node_mapper, proc, a_tick):
    mapper = node_mapper()
    proc.add(100, "/", uid=4711, start=500)
    assert mapper.attribute(a_tick([100])).owners[100].user_name == "4711"
    proc.add(100, f"{SCOPE}/job_9/step_0", uid=4712, start=900)
    owner = mapper.attribute(a_tick([100])).owners[100]
    assert (owner.user_name, owner.key) == ("4712", "slurm:9")


def test_a_pid_that_is_not_there_is_counted_and_stays_nobodys(node_mapper, proc, a_tick):
    proc.add(100)
    found = node_mapper().attribute(a_tick([100, 101]))
    assert found.unattributed == 1
    assert set(found.owners) == {100}
    assert "processes" not in found.errors


def test_when_no_pid_is_visible_the_missing_permission_is_named(node_mapper, a_tick):
    assert "hostPID" in node_mapper().attribute(a_tick([100, 101])).errors["processes"]


def test_this_very_process_is_found_with_its_user_and_start(a_tick):
    from collector.mapping.node import NodeMapper

    found = NodeMapper().attribute(a_tick([os.getpid()]))
    owner = found.owners[os.getpid()]
    assert owner.started_at is not None
    assert owner.user_name


def test_nothing_is_remembered_of_processes_that_ended(node_mapper, proc, a_tick):
    mapper = node_mapper()
    for pid in range(100, 200):
        proc.add(pid)
    mapper.attribute(a_tick(range(100, 200)))
    mapper.attribute(a_tick([100]))
    assert len(mapper._owners._known) == 1


def test_a_holding_is_a_share_of_at_most_the_whole():
    assert Fraction(Holding("user:x", A).share_num, Holding("user:x", A).share_den) == 1
