from __future__ import annotations

import pytest

from collector.mapping.cgroup import Membership, membership

CONTAINER = "ab" * 32
POD = "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod"
UID = "0a1b2c3d-1111-2222-3333-444455556666"


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/slurm/uid_1000/job_7/step_0/task_0", Membership(job_id="7", step="0")),
        ("/slurm_n01/uid_1000/job_7/step_batch", Membership(job_id="7", step="batch")),
        (
            "/system.slice/slurmstepd.scope/job_81/step_extern/user/task_special",
            Membership(job_id="81", step="extern"),
        ),
        (
            "/system.slice/n01_slurmstepd.scope/job_81/step_interactive",
            Membership(job_id="81", step="interactive"),
        ),
        (
            "/system.slice/slurmstepd.scope/s8FXKTA79XAR00/step_batch",
            Membership(sluid="s8FXKTA79XAR00", step="batch"),
        ),
        ("/system.slice/slurmstepd.scope/system", Membership()),
        ("/system.slice/slurmstepd.scope/task_group_9/x", Membership(strange="task_group_9")),
        (
            f"{POD}{UID.replace('-', '_')}.slice/cri-containerd-{CONTAINER}.scope",
            Membership(pod_uid=UID, container_id=CONTAINER),
        ),
        (
            f"/kubepods/besteffort/pod{UID}/{CONTAINER}",
            Membership(pod_uid=UID, container_id=CONTAINER),
        ),
        (
            f"/kubepods/burstable/pod{'0f' * 16}/{CONTAINER}",
            Membership(pod_uid="0f" * 16, container_id=CONTAINER),
        ),
        (
            f"/kubepods.slice/kubepods-pod{UID.replace('-', '_')}.slice/crio-{CONTAINER}.scope",
            Membership(pod_uid=UID, container_id=CONTAINER),
        ),
        (f"/docker/{CONTAINER}", Membership(container_id=CONTAINER)),
        (f"/system.slice/docker-{CONTAINER}.scope", Membership(container_id=CONTAINER)),
        (f"/machine.slice/libpod-{CONTAINER}.scope/container", Membership(container_id=CONTAINER)),
        (
            f"/system.slice/containerd.service/x:cri-containerd:{CONTAINER}",
            Membership(container_id=CONTAINER),
        ),
        ("/lxc/training-box", Membership(container_id="training-box")),
        ("/user.slice/user-1000.slice/session-3.scope", Membership()),
        ("/", Membership()),
        ("", Membership()),
    ],
)
def test_a_path_names_its_owner(path, expected):
    assert membership(path) == expected
