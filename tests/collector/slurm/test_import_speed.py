"""How many rows of sacct the import takes per CPU-second; figures only, nothing asserts time."""

from __future__ import annotations

import random
import time

import pytest


def row(site, number, rng):
    submit = site.t0 + number * 10
    start = submit + rng.randrange(3000)
    elapsed = rng.randrange(60, 86_400)
    gpus = rng.choice([0, 1, 1, 2, 4, 8, 8, 16])
    cpus, nodes = max(1, gpus) * rng.choice([4, 8, 12, 16]), max(1, gpus // 8)
    first = rng.randrange(200)
    typed = f",gres/gpu:a100={gpus},gres/gpu={gpus}" if gpus else ""
    wanted = f"billing={cpus},cpu={cpus},mem={cpus * rng.choice([2, 4, 8])}G,node={nodes}"
    return site.run(
        jobid=str(number),
        account=f"account{number % 37}",
        user=f"user{number % 211}",
        submit=submit,
        eligible=submit,
        start=start,
        end=start + elapsed,
        elapsedraw=elapsed,
        state=rng.choice(["COMPLETED"] * 8 + ["FAILED", "CANCELLED by 1000", "TIMEOUT"]),
        reqtres=wanted,
        alloctres=wanted + typed,
        nnodes=nodes,
        nodelist=f"gn{first:03}" if nodes == 1 else f"gn[{first:03}-{first + 1:03}]",
        jobname=f"train-{number % 1000}",
    )


@pytest.mark.bench
@pytest.mark.prove
def test_rows_of_sacct_per_cpu_second(site, proof_size, record_proof):
    rng = random.Random(1)
    count = proof_size(250_000)
    site.rows = [row(site, number, rng) for number in range(count)]
    site.nodes = [site.node(NodeName=f"gn{number:03}") for number in range(201)]
    text = site.sacct_text()
    begin = time.process_time()
    summary = site.take_in(sacct=text)
    cpu_s = time.process_time() - begin
    assert summary.kept["job_run"] == count
    print(f"{count} rows, {len(text) >> 20} MiB: {count / cpu_s:,.0f} rows per CPU-second")
    record_proof(
        "slurm_import", rows=count, cpu_s=round(cpu_s, 2), rows_per_cpu_s=int(count / cpu_s)
    )
