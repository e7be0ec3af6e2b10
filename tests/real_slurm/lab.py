"""A real Slurm on this host, in a folder of its own: munge, MariaDB, slurmdbd, slurmctld, slurmd.

Nodes ``gpu1`` to ``gpu3`` have 8 fake A100, ``gpu4`` has 4 fake T4. Nothing of the host's own
Slurm is touched; every daemon is a child of the test run and ends with it.
"""

from __future__ import annotations

import os
import pwd
import secrets
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from contextlib import suppress
from pathlib import Path

CLUSTER = "lab"
ACCOUNTS = {"nlp": "unstrand_ada", "vision": "unstrand_bob"}
"""One local user per account; they are added for the run and removed after it."""
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
AccountingStorageTRES={tres}
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


class LabError(RuntimeError):
    """The lab could not be brought up, or a job did not reach the state that was asked for."""


class SlurmLab:
    """One running Slurm. Submit as a team's user, wait for states, ask as root."""

    def __init__(self, *, tres: str = "gres/gpu,gres/gpu:a100,gres/gpu:t4") -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="unstrand-slurm-"))
        self._daemons: list[subprocess.Popen[bytes]] = []
        self._added_users: list[str] = []
        self._tres = tres
        self._ports = dict(zip(("ctld", "dbd", "sql", *NODES), _free_ports(7), strict=True))
        self._password = secrets.token_hex(16)
        self.environment = os.environ | {
            "SLURM_CONF": str(self.folder / "slurm.conf"),
            "TZ": "UTC",
            "LC_ALL": "C.UTF-8",
        }

    def start(self) -> None:
        """Bring everything up; about 15 s on an idle host of two cores."""
        self.folder.chmod(0o755)
        self._write_configuration()
        self._start_munge()
        self._start_database()
        self._start_slurm()

    def stop(self) -> None:
        """End every job and daemon, last started first, and remove the folder and the users."""
        with suppress(subprocess.SubprocessError, OSError):
            self.run("scancel", "--full", *(f"--user={user}" for user in self._added_users[:1]))
        for daemon in reversed(self._daemons):
            daemon.terminate()
        for daemon in reversed(self._daemons):
            with suppress(subprocess.TimeoutExpired):
                daemon.wait(timeout=10)
            if daemon.poll() is None:
                daemon.kill()
                daemon.wait()
        self._end_job_steps()
        for user in self._added_users:
            subprocess.run(["userdel", user], check=False, capture_output=True)
        shutil.rmtree(self.folder, ignore_errors=True)

    def run(self, *command: str, **environment: str) -> str:
        """The output of one of Slurm's commands, run as root against this lab."""
        done = subprocess.run(
            command,
            env=self.environment | environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        if done.returncode:
            raise LabError(f"{' '.join(command)}: {done.stderr.strip() or done.stdout.strip()}")
        return done.stdout

    def submit(self, account: str, *options: str, script: str = "sleep 2") -> str:
        """Submit a batch job as the account's user; the job id."""
        command = ["runuser", "-u", ACCOUNTS[account], "--", "sbatch", "--parsable"]
        command += [f"--account={account}", "--output=/dev/null", "--chdir=/tmp", *options]
        return self.run(*command, "--wrap", script).strip().split(";")[0]

    def states(self, job_id: str) -> list[str]:
        """The states of every run (and array task) of a job, in the order of accounting."""
        text = self.run("sacct", "-nPXD", "-j", job_id, "--format=state")
        return [line.split()[0] for line in text.splitlines() if line.strip()]

    def wait_for(self, job_id: str, *states: str, timeout_s: float = 60) -> None:
        """Until accounting shows a run of the job in each of ``states``."""
        self._until(
            lambda: set(states) <= set(self.states(job_id)),
            f"job {job_id} in {states}, it is in {self.states(job_id)}",
            timeout_s,
        )

    def wait_until_done(self, *job_ids: str, timeout_s: float = 90) -> None:
        """Until accounting shows an end for every run of the jobs."""

        def done() -> bool:
            text = self.run("sacct", "-nPXD", "-j", ",".join(job_ids), "--format=jobid,end")
            ends = [line.split("|")[1] for line in text.splitlines()]
            return bool(ends) and "Unknown" not in ends

        self._until(done, f"the end of the jobs {job_ids}", timeout_s)

    def _until(self, condition, what: str, timeout_s: float = 60) -> None:
        deadline = time.monotonic() + timeout_s
        while not condition():
            dead = [d.args for d in self._daemons if d.poll() is not None]
            if dead or time.monotonic() > deadline:
                raise LabError(f"waited for {what}; ended daemons: {dead}\n{self._last_words()}")
            time.sleep(0.25)

    def _write_configuration(self) -> None:
        host = socket.gethostname().split(".")[0]
        nodes = [
            f"NodeName={name} NodeHostname={host} NodeAddr=127.0.0.1 Port={self._ports[name]} "
            f"CPUs={CPUS} RealMemory={MEM_MIB} Gres=gpu:{kind}:{count} State=UNKNOWN"
            for name, (kind, count) in NODES.items()
        ]
        values = {
            "cluster": CLUSTER,
            "folder": self.folder,
            "host": host,
            "ports": self._ports,
            "plugins": _plugin_dir(),
            "password": self._password,
            "tres": self._tres,
            "nodes": "\n".join(nodes),
        }
        gres = [
            f"NodeName={name} Name=gpu Type={kind} File={self.folder}/fakegpu[0-{count - 1}]"
            for name, (kind, count) in NODES.items()
        ]
        self._write("slurm.conf", SLURM_CONF.format(**values))
        self._write("slurmdbd.conf", DBD_CONF.format(**values)).chmod(0o600)
        self._write("gres.conf", "\n".join(gres) + "\n")
        self._write(
            "topology.conf",
            "SwitchName=leaf1 Nodes=gpu[1-2]\nSwitchName=leaf2 Nodes=gpu[3-4]\n"
            "SwitchName=spine Switches=leaf[1-2]\n",
        )
        for index in range(8):
            # A device file is asked for by name only; /dev/null's numbers do no harm.
            os.mknod(self.folder / f"fakegpu{index}", 0o20666, os.makedev(1, 3))
        (self.folder / "state").mkdir()
        for name in NODES:
            (self.folder / f"spool-{name}").mkdir()

    def _write(self, name: str, text: str) -> Path:
        path = self.folder / name
        path.write_text(text)
        return path

    def _start_munge(self) -> None:
        key = self.folder / "munge.key"
        key.write_bytes(secrets.token_bytes(1024))
        shutil.chown(key, "munge", "munge")
        key.chmod(0o400)
        home = self.folder / "munge"
        home.mkdir()
        shutil.chown(home, "munge", "munge")
        # The socket lies where every user can reach it; the file name is munge's to make.
        link = self.folder / "munge.sock"
        link.symlink_to(home / "munge.sock")
        home.chmod(0o755)
        self._daemon(
            *("munged", "--foreground", "--force", f"--key-file={key}"),
            *(f"--socket={home}/munge.sock", f"--pid-file={home}/pid", f"--seed-file={home}/seed"),
            f"--log-file={home}/log",
            user="munge",
        )
        self._until((home / "munge.sock").exists, "munge")

    def _start_database(self) -> None:
        data = self.folder / "sql"
        data.mkdir()
        shutil.chown(data, "mysql", "mysql")
        subprocess.run(
            ["mariadb-install-db", "--no-defaults", "--user=mysql", f"--datadir={data}"]
            + ["--skip-test-db", "--auth-root-authentication-method=normal"],
            check=True,
            capture_output=True,
        )
        server = data / "sql.sock"
        self._daemon(
            *("mariadbd", "--no-defaults", f"--datadir={data}", f"--socket={server}"),
            *(f"--port={self._ports['sql']}", "--bind-address=127.0.0.1", "--skip-log-bin"),
            *("--innodb-buffer-pool-size=64M", "--innodb-flush-log-at-trx-commit=0"),
            *("--innodb-lock-wait-timeout=900", f"--pid-file={data}/pid"),
            user="mysql",
        )
        self._until(server.exists, "the database")
        sql = (
            f"CREATE USER slurm@'127.0.0.1' IDENTIFIED BY '{self._password}';"
            f"CREATE USER slurm@localhost IDENTIFIED BY '{self._password}';"
            "CREATE DATABASE slurm_acct; GRANT ALL ON slurm_acct.* TO slurm@'127.0.0.1';"
            "GRANT ALL ON slurm_acct.* TO slurm@localhost;"
        )
        client = ["mariadb", "--no-defaults", f"--socket={server}", "--user=root"]
        subprocess.run(client, input=sql, text=True, check=True, capture_output=True)

    def _start_slurm(self) -> None:
        conf = str(self.folder / "slurm.conf")
        self._daemon("slurmdbd", "-D")
        self._until(lambda: self._answers("sacctmgr", "-n", "show", "cluster"), "slurmdbd")
        self._add_accounts()
        self._daemon("slurmctld", "-D", "-f", conf)
        self._until(lambda: self._answers("scontrol", "ping"), "slurmctld")
        for name in NODES:
            self._daemon("slurmd", "-D", "-N", name, "-f", conf)
        self._until(self._all_idle, "four idle nodes")

    def _add_accounts(self) -> None:
        self.run("sacctmgr", "-i", "add", "cluster", CLUSTER)
        for account, user in ACCOUNTS.items():
            if not _user_exists(user):
                subprocess.run(
                    ["useradd", "--no-create-home", "--shell", "/bin/sh", user],
                    check=True,
                    capture_output=True,
                )
                self._added_users.append(user)
            self.run("sacctmgr", "-i", "add", "account", account, f"cluster={CLUSTER}")
            self.run("sacctmgr", "-i", "add", "user", user, f"account={account}")

    def _answers(self, *command: str) -> bool:
        try:
            text = self.run(*command)
        except (LabError, subprocess.TimeoutExpired):
            return False
        return "DOWN" not in text

    def _all_idle(self) -> bool:
        states = self.run("sinfo", "-h", "-N", "-p", "low", "-o", "%T").split()
        if any("inval" in state or "drain" in state for state in states):
            self.run("scontrol", "update", "nodename=gpu[1-4]", "state=resume")
        return states == ["idle"] * len(NODES)

    def _daemon(self, *command: str, user: str | None = None) -> None:
        """Start a child that the kernel ends should the test run die."""
        become = [f"--reuid={user}", f"--regid={user}", "--clear-groups"] if user else []
        log = (self.folder / f"{command[0]}.out").open("ab")
        with log:
            self._daemons.append(
                subprocess.Popen(
                    ["setpriv", *become, "--pdeathsig=TERM", "--", *command],
                    env=self.environment,
                    cwd=self.folder,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                )
            )

    def _end_job_steps(self) -> None:
        """Job steps outlive their slurmd: end those that carry this lab's configuration."""
        mark = f"SLURM_CONF={self.folder}/slurm.conf".encode()
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit() and int(entry.name) != os.getpid():
                with suppress(OSError):
                    if mark in (entry / "environ").read_bytes().split(b"\0"):
                        os.kill(int(entry.name), signal.SIGKILL)

    def _last_words(self) -> str:
        logs = sorted(self.folder.glob("*.log")) + sorted(self.folder.glob("*.out"))
        return "\n".join(f"== {log.name}\n{log.read_text()[-600:]}" for log in logs)


def _user_exists(name: str) -> bool:
    try:
        pwd.getpwnam(name)
    except KeyError:
        return False
    return True


def _plugin_dir() -> Path:
    """Where Debian keeps Slurm's plugins, by the multiarch name of this machine."""
    found = sorted(Path("/usr/lib").glob("*/slurm-wlm"))
    if not found:
        raise LabError("no plugins of slurm-wlm under /usr/lib")
    return found[0]


def _free_ports(count: int) -> list[int]:
    """Ports that are free now; held together so that they differ."""
    sockets = [socket.socket() for _ in range(count)]
    try:
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]
    finally:
        for each in sockets:
            each.close()
