"""What a scheduler and an inventory would have recorded of the simulated weeks, as facts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta

from collector.demo.fleet import CLUSTER, FLEET, NODE_INDEX, SINCE, UNTIL, instant, seconds
from collector.demo.jobs import DemoJob, DemoRun
from collector.demo.planted import PLANTED, XID_TO_DOWN_S
from collector.model import Allocation, Event, FactWindow, Job, JobRun, Node, NodeState, Reservation

SOURCE = "demo"
_LAST = seconds(UNTIL)


def nodes() -> Iterator[Node]:
    """The inventory, unchanged over the window and still so."""
    for node in FLEET:
        yield Node(
            cluster=CLUSTER, node=node.name, gpu_model=node.kind.model, gpus=node.gpus,
            cpus=node.cpus, mem_mib=node.mem_mib, partitions=(node.partition,), rack=node.rack,
            leaf=node.leaf, spine="spine1", valid_from=SINCE, source=SOURCE,
        )  # fmt: skip


def device_columns() -> dict[str, dict[str, list[object]]]:
    """`device` and `device_seen`: every GPU in its slot for the whole window."""
    slots = [(node, index) for node in FLEET for index in range(node.gpus)]
    uuids: list[object] = [node.uuid(index) for node, index in slots]
    device: dict[str, list[object]] = {
        "cluster": [CLUSTER] * len(slots),
        "gpu_uuid": uuids,
        "gpu_model": [node.kind.model for node, _ in slots],
        "raw_name": [node.kind.raw_name for node, _ in slots],
        "mem_total_mib": [node.kind.mem_mib for node, _ in slots],
        "first_seen_at": [SINCE] * len(slots),
        "source": [SOURCE] * len(slots),
    }
    seen: dict[str, list[object]] = {
        "cluster": [CLUSTER] * len(slots),
        "node": [node.name for node, _ in slots],
        "gpu_uuid": uuids,
        "gpu_index": [index for _, index in slots],
        "minor_number": [index for _, index in slots],
        "valid_from": [SINCE] * len(slots),
        "source": [SOURCE] * len(slots),
    }
    return {"device": device, "device_seen": seen, "nvlink": _links()}


def _links() -> dict[str, list[object]]:
    """`nvlink`: every link of an A100 goes to a switch, so that its node is one island."""
    ends = [
        (node, index, link)
        for node in FLEET
        for index in range(node.gpus)
        for link in range(node.kind.nvlinks)
    ]
    return {
        "cluster": [CLUSTER] * len(ends),
        "node": [node.name for node, _, _ in ends],
        "gpu_uuid": [node.uuid(index) for node, index, _ in ends],
        "link": [link for _, _, link in ends],
        "remote_type": ["switch"] * len(ends),
        "version": [3] * len(ends),
        "valid_from": [SINCE] * len(ends),
        "source": [SOURCE] * len(ends),
    }


def jobs(runs: Sequence[DemoRun]) -> Iterator[Job]:
    """Each job once, in the order of its first run."""
    for job in {run.job.job_id: run.job for run in runs}.values():
        yield _job(job)


def _job(job: DemoJob) -> Job:
    return Job(
        cluster=CLUSTER, job_id=job.job_id, name=job.name, account=job.account,
        user_name=job.user, project=job.project, qos=job.qos, partitions=(job.partition,),
        submit_at=instant(job.submit), req_nodes=job.nodes, req_gpus=job.nodes * job.gpus,
        req_gpu_model=_model_of(job.partition), req_cpus=job.nodes * job.cpus,
        req_mem_mib=job.nodes * job.mem_mib, limit_s=job.limit_s, source=SOURCE,
    )  # fmt: skip


def _model_of(partition: str) -> str:
    return next(node.kind.model for node in FLEET if node.partition == partition)


def job_runs(runs: Iterable[DemoRun]) -> Iterator[JobRun]:
    """Each run; one that is still open is known to hold until the window's end."""
    for run in runs:
        job = run.job
        yield JobRun(
            cluster=CLUSTER, run_id=run.run_id, job_id=job.job_id, attempt=run.attempt,
            account=job.account, user_name=job.user, project=job.project, qos=job.qos,
            partition=job.partition, submit_at=instant(run.eligible),
            eligible_at=instant(run.eligible), start_at=_at(run.start), end_at=_at(run.end),
            state=run.state, state_raw=run.state, reason=run.reason, priority=job.priority,
            exit_code="1:0" if run.state == "FAILED" else "0:0",
            gpus=job.nodes * job.gpus, cpus=job.nodes * job.cpus,
            mem_mib=job.nodes * job.mem_mib, nodes=job.nodes, suspended_s=0,
            limit_s=job.limit_s, last_known_at=UNTIL if run.end is None else None,
            source=SOURCE,
        )  # fmt: skip


def _at(second: int | None) -> datetime | None:
    return None if second is None else instant(second)


def allocations(runs: Iterable[DemoRun]) -> Iterator[Allocation]:
    """One row per GPU held; a node's CPUs and memory are split evenly over its rows."""
    for run in runs:
        if run.start is None:
            continue
        for node_index, gpus in run.placement:
            node = FLEET[node_index]
            for position, gpu in enumerate(gpus):
                yield Allocation(
                    cluster=CLUSTER, run_id=run.run_id, node=node.name,
                    gpu_model=node.kind.model, gpu_uuid=node.uuid(gpu), gpus=1,
                    cpus=_part(run.job.cpus, position, len(gpus)),
                    mem_mib=_part(run.job.mem_mib, position, len(gpus)),
                    start_at=instant(run.start), end_at=_at(run.end), source=SOURCE,
                )  # fmt: skip


def _part(whole: int, position: int, parts: int) -> int:
    return whole * (position + 1) // parts - whole * position // parts


def faulty_records() -> Iterator[NodeState | Reservation | Event]:
    """Node states, the reservation and the events of the planted faults."""
    drained, failed, kept = (
        PLANTED[key] for key in ("drained_node", "failed_node", "unused_reservation")
    )
    yield NodeState(
        cluster=CLUSTER, node=drained.place, since=drained.begin, state="drained",
        state_raw="DRAIN", reason=drained.reason, user_name="root", source=SOURCE,
    )  # fmt: skip
    yield Event(
        cluster=CLUSTER, ts=failed.begin, kind="xid", node=failed.place,
        gpu_uuid=FLEET[NODE_INDEX[failed.place]].uuid(0), code=79, fatal=True,
        text="GPU has fallen off the bus", source=SOURCE,
    )  # fmt: skip
    yield NodeState(
        cluster=CLUSTER, node=failed.place, since=failed.begin + timedelta(seconds=XID_TO_DOWN_S),
        until=failed.until, state="down", state_raw="DOWN*", reason="Not responding", source=SOURCE,
    )  # fmt: skip
    yield Reservation(
        cluster=CLUSTER, name=kept.reason or kept.what, node=kept.place, gpus=kept.gpus,
        accounts=("course",), since=kept.begin, until=kept.until, source=SOURCE,
    )  # fmt: skip


def checkpoint_marks(runs: Iterable[DemoRun]) -> Iterator[Event]:
    """Begin and end of every checkpoint that a run wrote; writing takes a minute."""
    for run in runs:
        every = run.job.checkpoint_every_s
        if every is None or run.start is None:
            continue
        end = run.end if run.end is not None else run.start + run.length_s
        for done in range(run.start + every, min(end, _LAST), every):
            for kind, second in (("checkpoint_begin", done - 60), ("checkpoint_end", done)):
                yield Event(
                    cluster=CLUSTER, ts=instant(second), kind=kind, job_id=run.job.job_id,
                    run_id=run.run_id, node=FLEET[run.placement[0][0]].name, source=SOURCE,
                )  # fmt: skip


def fact_windows(*, faults: bool) -> Iterator[FactWindow]:
    """What is known: everything, less the gaps that are planted."""
    yield from _windows("scheduler", None, "scheduler_gap" if faults else None)
    for node in FLEET:
        has_gap = faults and node.name == PLANTED["telemetry_gap"].node
        yield from _windows("telemetry", node.name, "telemetry_gap" if has_gap else None)


def _windows(kind: str, node: str | None, gap_key: str | None) -> Iterator[FactWindow]:
    spans = [(SINCE, UNTIL)]
    if gap_key is not None:
        gap = PLANTED[gap_key]
        spans = [(SINCE, gap.begin), (gap.end, UNTIL)]
    for since, until in spans:
        yield FactWindow(
            cluster=CLUSTER, kind=kind, node=node, since=since, until=until, source=SOURCE
        )
