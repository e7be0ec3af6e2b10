"""`import --live` against recorded answers; a real Slurm answers in tests/real_slurm."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from collector.errors import ImportRefusedError
from collector.slurm import job_detail, reservation, squeue
from collector.slurm.live_import import import_live

NOW = datetime(2026, 11, 1, 4, tzinfo=UTC)
T0 = 1_793_491_200
HELP = "Cluster JobID JobIDRaw Account User QOS Partition Submit Eligible Start End ElapsedRaw "
HELP += "Suspended State ReqTRES AllocTRES NNodes NodeList Reserved TimelimitRaw Priority JobName "
HELP += "ExitCode"
QUEUED = "9|9|vision|li|a100|normal|PENDING|77|1793491300|1-00:00:00|gres:gpu:a100:4|"
QUEUED += "cpu=8,mem=64G,node=2,gres/gpu=8,gres/gpu:a100=8|Resources|\n"
EVENTS = "Cluster|NodeName|TimeStart|TimeEnd|State|Reason|User\n"
RUNNING = "1|1|nlp|amara|a100|normal|RUNNING|80|1793491200|1:00:00|N/A|cpu=16,gres/gpu=2|None|\n"


class FakeSlurm:
    """Answers by command; every question is kept."""

    def __init__(self, site):
        self.site, self.asked = site, []
        self.rows = [site.run(state="RUNNING", end="Unknown", elapsedraw=3600)]
        self.queue, self.jobs, self.reservations = (
            RUNNING + QUEUED,
            "",
            "No reservations in the system",
        )
        self.node = site.node(State="MIXED")
        self.events = ""

    def __call__(self, command):
        self.asked.append(tuple(command))
        return {
            "scontrol show config": "ClusterName     = lab\nTopologyPlugin = topology/none\n",
            "scontrol show node": self.node + "\n",
            "scontrol show partition": "PartitionName=a100 Nodes=gn01 MaxTime=1:00:00 State=UP\n",
            "scontrol show reservation": self.reservations + "\n",
            "scontrol show job": self.jobs,
            "sacct --helpformat": HELP,
            "sacctmgr -P show": EVENTS + self.events,
        }.get(" ".join(command[:3])) or self._longer(command)

    def _longer(self, command):
        if command[0] == "squeue":
            return self.queue
        if command[:2] == ("sacct", "--helpformat"):
            return HELP
        if command[0] == "scontrol":
            return self.jobs
        fields = command[-1].removeprefix("--format=").split(",")
        names = {"reserved": "planned"}
        self.site.fields = tuple(fields)
        lines = [
            "\x1f".join(str(row.get(names.get(f, f), row.get("priority", 80))) for f in fields)
            for row in self.rows
        ]
        return "\n".join(["\x1f".join(fields), *lines]) + "\n"


@pytest.fixture
def slurm(site):
    return FakeSlurm(site)


def ask(site, slurm, now=NOW, since=None, until=None):
    return import_live(site.store, "c", since, until, now, ask=slurm)


def test_accounting_is_asked_once_in_utc_for_the_fields_that_it_knows(site, slurm):
    ask(site, slurm)
    (question,) = [c for c in slurm.asked if c[0] == "sacct" and "-S" in c]
    assert question[question.index("-S") + 1] == "2026-10-04T04:00:00"
    assert question[question.index("-E") + 1] == "2026-11-01T04:00:00"
    fields = question[-1].removeprefix("--format=").split(",")
    assert "reserved" in fields
    assert not {"planned", "restarts", "wckey"} & set(fields)
    assert fields[-2:] == ["jobname", "exitcode"]


def test_the_next_import_asks_from_an_hour_before_the_last_one(site, slurm):
    ask(site, slurm)
    slurm.asked.clear()
    summary = ask(site, slurm, NOW + timedelta(minutes=5))
    (question,) = [c for c in slurm.asked if c[0] == "sacct" and "-S" in c]
    assert question[question.index("-S") + 1] == "2026-11-01T03:00:00"
    assert (summary.since, summary.until) == (NOW - timedelta(hours=1), NOW + timedelta(minutes=5))
    windows = site.store.rows("SELECT since, until FROM fact_window")
    assert windows == [{"since": NOW - timedelta(days=28), "until": NOW + timedelta(minutes=5)}]


def test_a_node_that_the_controller_shows_usable_has_ended_its_drain_before_accounting_says_so(
    site, slurm
):
    def states():
        return [
            tuple(row.values()) for row in site.store.rows("SELECT since, until FROM node_state")
        ]

    begin, end = T0 + 3600, T0 + 7200  # accounting closes the event late, with the true end
    slurm.node, slurm.events = (
        site.node(State="IDLE+DRAIN"),
        f"c|gn01|{begin}|Unknown|DRAIN|fan|r\n",
    )
    ask(site, slurm, NOW - timedelta(hours=1))
    assert [until for _, until in states()] == [None]
    slurm.node = site.node(State="IDLE")
    ask(site, slurm)
    assert [until for _, until in states()] == [NOW]
    slurm.events = f"c|gn01|{begin}|{end}|DRAIN|fan|r\n"
    ask(site, slurm, NOW + timedelta(minutes=1), since=NOW - timedelta(hours=4))
    assert states() == [(datetime.fromtimestamp(begin, UTC), datetime.fromtimestamp(end, UTC))]


def test_the_queue_is_kept_with_what_each_job_wants(site, slurm):
    ask(site, slurm)
    (row,) = site.store.rows("FROM queue_snapshot")
    wanted = {
        "ts": NOW, "job_id": "9", "gpus": 8, "gpus_per_node": 4, "gpu_model": "a100", "nodes": 2,
        "cpus": 8, "mem_mib": 65536, "priority": 77, "reason": "Resources", "limit_s": 86400,
    }  # fmt: skip
    assert {name: row[name] for name in wanted} == wanted


def test_a_run_that_the_queue_does_not_show_counts_only_while_it_was_seen(site, slurm):
    ask(site, slurm)
    assert site.gpu_seconds() == 2 * 3600
    slurm.queue, slurm.rows[0]["elapsedraw"] = QUEUED, 10_000
    summary = ask(site, slurm, NOW + timedelta(hours=1))
    assert site.gpu_seconds() == 2 * 3600
    assert any("runawayjobs" in remark for remark in summary.remarks)


def test_the_controllers_split_is_used_where_it_agrees_with_accounting(site, slurm):
    slurm.rows = [
        site.run(
            state="RUNNING", end="Unknown", nodelist="gn[01-02]", nnodes=2,
            alloctres="cpu=4,gres/gpu=5,mem=4000M,node=2",
        )
    ]  # fmt: skip
    slurm.jobs = (
        f"JobId=1 JobName=x JobState=RUNNING SubmitTime={T0} EligibleTime={T0} StartTime={T0 + 60} "
        "JOB_GRES=gpu:a100:5   Nodes=gn01 CPU_IDs=0-2 Mem=3000 GRES=gpu:a100:4(IDX:0-3)   "
        "Nodes=gn02 CPU_IDs=7 Mem=1000 GRES=gpu:a100:1(IDX:0) MinCPUsNode=1\n"
    )
    ask(site, slurm)
    held = "SELECT node, gpus, cpus, mem_mib, source FROM allocation ORDER BY node"
    assert [tuple(row.values()) for row in site.store.rows(held)] == [
        ("gn01", 4, 3, 3000, "slurm-detail"),
        ("gn02", 1, 1, 1000, "slurm-detail"),
    ]
    slurm.rows[0]["alloctres"] = "cpu=4,gres/gpu=6,mem=4000M,node=2"
    ask(site, slurm, NOW + timedelta(minutes=1))
    assert sum(row["gpus"] for row in site.store.rows(held)) == 6


def test_a_node_that_is_powered_down_is_so_since_it_was_last_seen_up(site, slurm):
    states = "SELECT state, since, until FROM node_state ORDER BY since"
    ask(site, slurm)
    slurm.node = site.node(State="IDLE+POWERED_DOWN")
    for minutes in (10, 20, 30):
        ask(site, slurm, NOW + timedelta(minutes=minutes))
    slurm.node = site.node()
    ask(site, slurm, NOW + timedelta(minutes=40))
    assert [tuple(row.values()) for row in site.store.rows(states)] == [
        ("powered_down", NOW, NOW + timedelta(minutes=30))
    ]


def test_a_maintenance_reservation_is_a_state_and_another_one_is_kept(site, slurm):
    slurm.node = site.node(State="IDLE+MAINTENANCE")
    slurm.reservations = (
        f"ReservationName=fix StartTime={T0} EndTime={T0 + 90000} Nodes=gn01 Flags=MAINT\n"
        f"ReservationName=demo StartTime={T0 + 50000} EndTime={T0 + 60000} Nodes=gn[01-02] "
        "Flags= TRES=cpu=8,gres/gpu=3 Accounts=nlp,bio"
    )
    ask(site, slurm)
    state = site.store.rows("SELECT state, reason, since, until FROM node_state")
    began = datetime.fromtimestamp(T0, UTC)
    assert [tuple(row.values()) for row in state] == [("maintenance", "fix", began, None)]
    kept = site.store.rows("SELECT name, node, gpus, accounts FROM reservation ORDER BY node")
    assert [tuple(row.values()) for row in kept] == [
        ("demo", "gn01", 2, ["nlp", "bio"]),
        ("demo", "gn02", 1, ["nlp", "bio"]),
    ]
    slurm.reservations = "No reservations in the system"
    ask(site, slurm, NOW + timedelta(minutes=1))
    assert site.store.value("SELECT count(*) FROM reservation") == 0


def test_asking_again_about_a_cluster_at_rest_changes_no_fact(site, slurm):
    slurm.rows = [site.run()]
    ask(site, slurm)
    before = site.facts()
    ask(site, slurm, NOW + timedelta(minutes=1))
    after = site.facts()
    for table in ("node", "job", "job_run", "allocation", "node_state"):
        assert after[table] == before[table]


def test_rows_that_say_what_is_stored_are_not_written_again(site, slurm):
    def places():
        return {
            table: site.store.rows(f"SELECT rowid, * FROM {table} ORDER BY rowid")
            for table in ("job", "allocation")
        } | {"job_run": site.store.rows("SELECT rowid, run_id, state FROM job_run ORDER BY rowid")}

    ended = [site.run(jobid=str(number)) for number in (2, 3)]
    slurm.rows = [*ended, site.run(state="RUNNING", end="Unknown", elapsedraw=3600)]
    ask(site, slurm)
    before = places()
    slurm.rows[2]["elapsedraw"] = 3660
    summary = ask(site, slurm, NOW + timedelta(minutes=1), since=NOW - timedelta(hours=4))
    assert summary.kept["job_run"] == 3
    assert places() == before
    known = site.store.value("SELECT last_known_at FROM job_run WHERE job_id = '1'")
    assert known == datetime.fromtimestamp(T0 + 60 + 3660, UTC)


def test_an_answer_that_is_broken_leaves_everything_as_it_was(site, slurm):
    ask(site, slurm)
    before = site.facts()
    slurm.rows[0]["end"] = "soon"
    with pytest.raises(ImportRefusedError, match="sacct, line 2: end: time 'soon'"):
        ask(site, slurm, NOW + timedelta(minutes=1))
    assert site.facts() == before


def test_an_empty_window_is_refused(site, slurm):
    with pytest.raises(ImportRefusedError, match="is empty"):
        ask(site, slurm, since=NOW)


def test_of_a_huge_array_only_its_first_tasks_are_kept():
    line = "7_{}|7|nlp|ada|low|normal|PENDING|1|1793491200|10:00|N/A|cpu=1,gres/gpu=1|Priority|\n"
    queue = squeue.parse("q", "".join(line.format(task) for task in range(1500)))
    assert (len(queue.waiting), queue.left_out) == (1000, 500)
    assert queue.waiting[3].job_id == "7_3"


def test_jobs_without_detail_have_no_split():
    assert job_detail.parse("j", "JobId=1 JobState=PENDING SubmitTime=1 StartTime=2 x\n\n") == {}
    assert job_detail.parse("j", "No jobs in the system\n") == {}


def test_no_reservation_is_none():
    assert reservation.parse("r", "No reservations in the system\n") == []
