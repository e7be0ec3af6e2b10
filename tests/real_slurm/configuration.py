"""What the daemons of a lab read: slurm.conf, slurmdbd.conf, gres.conf, topology.conf."""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping
from pathlib import Path

CLUSTER = "lab"
ACCOUNTS = {"nlp": "unstrand_ada", "vision": "unstrand_bob"}
"""One local user per account; they must exist, see `users`."""
NODES = {"gpu1": ("a100", 8), "gpu2": ("a100", 8), "gpu3": ("a100", 8), "gpu4": ("t4", 4)}
CPUS, MEM_MIB = 64, 512_000
PACKAGES = ("slurm-wlm", "slurmdbd", "mariadb-server", "munge")

SLURM_CONF = """\
ClusterName={cluster}
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={ports[ctld]}
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge.sock,cred_expire=5
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool-%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd-%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd-%n.log
PluginDir={plugins}
AccountingStorageType=accounting_storage/slurmdbd
AccountingStorageHost=127.0.0.1
AccountingStoragePort={ports[dbd]}
AccountingStoragePass={folder}/munge.sock
AccountingStorageTRES=gres/gpu,gres/gpu:a100,gres/gpu:t4
JobAcctGatherType=jobacct_gather/linux
JobAcctGatherFrequency=0
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
DefMemPerCPU=1000
SlurmdParameters=config_overrides
SchedulerParameters=bf_interval=2,sched_interval=2,bf_resolution=1
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
TopologyPlugin=topology/tree
KillWait=2
MinJobAge=300
ReturnToService=2
GresTypes=gpu
{nodes}
PartitionName=low Nodes=gpu[1-4] Default=YES MaxTime=60 PriorityTier=1 State=UP
PartitionName=high Nodes=gpu[1-4] MaxTime=60 PriorityTier=10 State=UP
"""
DBD_CONF = """\
AuthType=auth/munge
AuthInfo=socket={folder}/munge.sock
DbdHost=localhost
DbdAddr=127.0.0.1
DbdPort={ports[dbd]}
SlurmUser=root
LogFile={folder}/slurmdbd.log
PidFile={folder}/slurmdbd.pid
PluginDir={plugins}
StorageType=accounting_storage/mysql
StorageHost=127.0.0.1
StoragePort={ports[sql]}
StorageUser=slurm
StoragePass={password}
StorageLoc=slurm_acct
"""
TOPOLOGY_CONF = """\
SwitchName=leaf1 Nodes=gpu[1-2]
SwitchName=leaf2 Nodes=gpu[3-4]
SwitchName=spine Switches=leaf[1-2]
"""


def write(
    folder: Path, ports: Mapping[str, int], password: str, settings: Mapping[str, str | None]
) -> None:
    """Every file that the daemons read, and the folders that they write to."""
    values = {
        "cluster": CLUSTER,
        "folder": folder,
        "host": socket.gethostname().split(".")[0],
        "ports": ports,
        "plugins": _plugin_dir(),
        "password": password,
    }
    values["nodes"] = "\n".join(_node_lines(values["host"], ports))
    gres = [
        f"NodeName={name} Name=gpu Type={kind} File={folder}/fakegpu[0-{count - 1}]"
        for name, (kind, count) in NODES.items()
    ]
    (folder / "slurm.conf").write_text(_changed(SLURM_CONF.format(**values), settings))
    (folder / "slurmdbd.conf").write_text(DBD_CONF.format(**values))
    (folder / "slurmdbd.conf").chmod(0o600)
    (folder / "gres.conf").write_text("\n".join(gres) + "\n")
    (folder / "topology.conf").write_text(TOPOLOGY_CONF)
    for index in range(8):
        # A device file is asked for by name only; the numbers are those of /dev/null.
        os.mknod(folder / f"fakegpu{index}", 0o20666, os.makedev(1, 3))
    for name in ("state", *(f"spool-{node}" for node in NODES)):
        (folder / name).mkdir()


def _node_lines(host: str, ports: Mapping[str, int]) -> list[str]:
    return [
        f"NodeName={name} NodeHostname={host} NodeAddr=127.0.0.1 Port={ports[name]} "
        f"CPUs={CPUS} RealMemory={MEM_MIB} Gres=gpu:{kind}:{count} State=UNKNOWN"
        for name, (kind, count) in NODES.items()
    ]


def _changed(conf: str, settings: Mapping[str, str | None]) -> str:
    lines = [line for line in conf.splitlines() if line.split("=", 1)[0] not in settings]
    lines += [f"{name}={value}" for name, value in settings.items() if value is not None]
    return "\n".join(lines) + "\n"


def _plugin_dir() -> Path:
    """Where Debian keeps Slurm's plugins, by the multiarch name of this machine."""
    found = sorted(Path("/usr/lib").glob("*/slurm-wlm"))
    if not found:
        raise FileNotFoundError("no plugins of slurm-wlm under /usr/lib")
    return found[0]


def free_ports(count: int) -> list[int]:
    """Ports that are free now; held together so that they differ."""
    sockets = [socket.socket() for _ in range(count)]
    try:
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]
    finally:
        for each in sockets:
            each.close()
