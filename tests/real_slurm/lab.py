"""A real Slurm on this host, in a folder of its own: munge, MariaDB, slurmdbd, slurmctld, slurmd.

Nodes ``gpu1`` to ``gpu3`` have 8 fake A100, ``gpu4`` has 4 fake T4. Nothing of the host's own
Slurm is touched; every daemon is a child of the test run and ends with it.
"""

from __future__ import annotations

import os
import secrets
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import ModuleType


class LabError(RuntimeError):
    """The lab could not be brought up, or a job did not reach the state that was asked for."""


class SlurmLab:
    """One running Slurm. Submit as a team's user, wait for states, ask as root."""

    def __init__(self, configuration: ModuleType, **settings: str | None) -> None:
        """``settings``: lines of slurm.conf to change; None leaves one out."""
        self.configuration = configuration
        self._settings = settings
        self.folder = Path(tempfile.mkdtemp(prefix="unstrand-slurm-"))
        self._daemons: list[subprocess.Popen[bytes]] = []
        self._ports = dict(
            zip(
                ("ctld", "dbd", "sql", *self.configuration.NODES),
                configuration.free_ports(7),
                strict=True,
            )
        )
        self._password = secrets.token_hex(16)
        self.environment = os.environ | {
            "SLURM_CONF": str(self.folder / "slurm.conf"),
            "TZ": "UTC",
            "LC_ALL": "C.UTF-8",
        }

    def start(self) -> None:
        """Bring everything up; about 15 s on an idle host of two cores."""
        self.folder.chmod(0o755)
        self.configuration.write(self.folder, self._ports, self._password, self._settings)
        self._start_munge()
        self._start_database()
        self._start_slurm()

    def stop(self) -> None:
        """End every job and daemon, last started first, and remove the folder."""
        with suppress(LabError, subprocess.SubprocessError, OSError):
            self._cancel_everything()
        for daemon in reversed(self._daemons):
            daemon.terminate()
        for daemon in reversed(self._daemons):
            with suppress(subprocess.TimeoutExpired):
                daemon.wait(timeout=10)
            if daemon.poll() is None:
                daemon.kill()
                daemon.wait()
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
        command = [
            "runuser",
            "-u",
            self.configuration.ACCOUNTS[account],
            "--",
            "sbatch",
            "--parsable",
        ]
        command += [f"--account={account}", "--output=/dev/null", "--chdir=/tmp", *options]
        return self.run(*command, "--wrap", script).strip().split(";")[0]

    def restart_controller(self) -> None:
        """End slurmctld and start it on the slurm.conf of now; jobs go on running."""
        [old] = [each for each in self._daemons if "slurmctld" in each.args]
        old.terminate()
        old.wait(timeout=30)
        self._daemons.remove(old)
        self._daemon("slurmctld", "-D", "-f", str(self.folder / "slurm.conf"))
        self._until(lambda: self._answers("scontrol", "ping"), "slurmctld")
        show = ("sinfo", "-h", "-N", "-p", "low", "-o", "%T")
        up = {"idle", "mixed", "allocated"}
        self._until(lambda: set(self.run(*show).split()) <= up, "nodes that answer")

    def sacct(self, fields: str, *options: str, **environment: str) -> str:
        """All runs of the last day and, waiting for a later begin, of the next."""
        window = ("-S", "now-1day", "-E", "now+1day")
        return self.run("sacct", "-aXDP", *window, *options, f"--format={fields}", **environment)

    def states(self, job_id: str) -> list[str]:
        """The states of every run (and array task) of a job, in the order of accounting."""
        text = self.sacct("state", "-n", "-j", job_id)
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
            # A requeued job may be unknown to accounting until it is eligible again.
            if self.run("squeue", "-h", "-a", "-j", ",".join(job_ids)).strip():
                return False
            ends = self.sacct("end", "-n", "-j", ",".join(job_ids)).split()
            return bool(ends) and "Unknown" not in ends

        self._until(done, f"the end of the jobs {job_ids}", timeout_s)

    def wait_for_nodes(self, state: str, nodes: str) -> None:
        """Until every one of ``nodes`` is in ``state``, as sinfo words it."""
        show = ("sinfo", "-h", "-N", "-p", "low", "-n", nodes, "-o", "%T")
        self._until(lambda: set(self.run(*show).split()) == {state}, f"{nodes} {state}")

    def wait_for_accounting(self) -> None:
        """Until accounting shows runs in a window: slurmdbd commits with a delay of a second."""
        self._until(lambda: bool(self.sacct("jobid", "-n").strip()), "rows of sacct")

    def until(self, condition: Callable[[], bool], what: str) -> None:
        """Until ``condition`` holds, a minute at most."""
        self._until(condition, what)

    def _until(self, condition: Callable[[], bool], what: str, timeout_s: float = 60) -> None:
        deadline = time.monotonic() + timeout_s
        while not condition():
            dead = [d.args for d in self._daemons if d.poll() is not None]
            if dead or time.monotonic() > deadline:
                raise LabError(f"waited for {what}; ended daemons: {dead}\n{self._last_words()}")
            time.sleep(0.25)

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
            [
                *("mariadb-install-db", "--no-defaults", "--user=mysql", f"--datadir={data}"),
                *("--skip-test-db", "--auth-root-authentication-method=normal"),
            ],
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
        for name in self.configuration.NODES:
            self._daemon("slurmd", "-D", "-N", name, "-f", conf)
        self._until(self._all_idle, "four idle nodes")

    def _add_accounts(self) -> None:
        self.run("sacctmgr", "-i", "add", "cluster", self.configuration.CLUSTER)
        for account, user in self.configuration.ACCOUNTS.items():
            self.run(
                "sacctmgr", "-i", "add", "account", account, f"cluster={self.configuration.CLUSTER}"
            )
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
        return states == ["idle"] * len(self.configuration.NODES)

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

    def _cancel_everything(self) -> None:
        for user in self.configuration.ACCOUNTS.values():
            self.run("scancel", f"--user={user}")
        self._until(lambda: not self.run("squeue", "-h", "-a").strip(), "an empty queue", 15)

    def _last_words(self) -> str:
        logs = sorted(self.folder.glob("*.log")) + sorted(self.folder.glob("*.out"))
        return "\n".join(f"== {log.name}\n{log.read_text()[-600:]}" for log in logs)
