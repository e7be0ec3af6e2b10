"""Broken files: each is refused with its line and a remedy, and nothing of it is taken in."""

from __future__ import annotations

from contextlib import suppress
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collector.errors import ImportRefusedError
from collector.slurm import node, node_event, partition, reservation, sacct, squeue, topology
from collector.slurm.importer import import_files

BROKEN_ROWS = {
    "end is no time": ({"end": "soon"}, "end: time 'soon'"),
    "end in milliseconds": ({"end": 1793491200000}, "end: time '1793491200000' is not between"),
    "no submit": ({"submit": "Unknown"}, "no Submit time"),
    "negative GPUs": ({"alloctres": "cpu=1,gres/gpu=-2"}, "gres/gpu has the amount '-2'"),
    "TRES without amounts": ({"alloctres": "cpu,gpu"}, "holds 'cpu', not name=amount"),
    "node list cut": ({"nodelist": "gn[01-03"}, "unbalanced brackets"),
    "node list too large": ({"nodelist": "gn[0-9999999]"}, "more than 100000 names"),
    "job id is text": ({"jobid": "total", "jobidraw": "total"}, "'total' is no Slurm job id"),
    "elapsed is text": ({"elapsedraw": "long"}, "elapsedraw: 'long' is no whole number"),
    "limit is text": ({"timelimitraw": "much"}, "timelimitraw: time span 'much'"),
    "suspended is text": ({"suspended": "x"}, "suspended: time span 'x'"),
}


def refused(site, **options):
    """The message of a refusal; the store must be as empty as before."""
    before = site.facts()
    with pytest.raises(ImportRefusedError) as caught:
        site.take_in(**options)
    assert site.facts() == before
    assert str(caught.value).endswith("Nothing was imported.")
    return str(caught.value)


@pytest.mark.parametrize(("changes", "said"), BROKEN_ROWS.values(), ids=BROKEN_ROWS.keys())
def test_a_broken_cell_is_refused_with_its_line(site, changes, said):
    site.rows = [site.run(), site.run(jobid="2"), site.run(jobid="3") | changes]
    message = refused(site)
    assert "sacct.txt, line 4: " in message
    assert said in message
    assert "sacct -a -X -D -P" in message


def lines_of(site, *edits):
    site.rows = [site.run(jobid=str(number)) for number in range(1, 4)]
    lines = site.sacct_text().splitlines()
    for edit in edits:
        edit(lines)
    return "\n".join(lines) + "\n"


BROKEN_LINES = {
    "a line is cut": (lambda lines: lines.__setitem__(2, lines[2][:60]), 3, "the line is cut"),
    "the last line is cut": (lambda lines: lines.__setitem__(3, lines[3][:60]), 4, "is cut"),
    "a line of words": (lambda lines: lines.insert(2, "sacct: error: slurmdbd"), 3, "no row"),
    "a row too short by one": (lambda lines: lines.__setitem__(2, lines[2][2:]), 3, "25 cells"),
    "two rows on one line": (
        lambda lines: lines.__setitem__(1, lines[1].rsplit("|", 1)[0].split("|", 3)[0] + "|x"),
        2,
        "cells",
    ),
}


@pytest.mark.parametrize(("edit", "line", "said"), BROKEN_LINES.values(), ids=BROKEN_LINES.keys())
def test_a_broken_line_is_refused_with_its_number(site, edit, line, said):
    message = refused(site, sacct=lines_of(site, edit))
    assert f"sacct.txt, line {line}: " in message
    assert said in message


NOT_SACCT = {
    "empty": ("", "the file is empty"),
    "blank": ("\n \n\n", "the file is empty"),
    "binary": (b"clus\x00ter", "zero byte"),
    "latin-1": ("job|ücho".encode("latin-1"), "is not UTF-8"),
    "padded output": (
        "JobID    JobName  Partition\n------- -------- ---------\n1  train a100\n",
        "no header line",
    ),
    "needed column missing": (
        "JobID|State|Start\n1|COMPLETED|1793491200\n",
        "no column submit, end",
    ),
    "column twice": ("JobID|JobID|State\n1|1|COMPLETED\n", "names jobid twice"),
    "another program": ("PID|USER|CPU\n1|root|3\n", "fit no known format"),
    "json": ('{"jobs": []}', "no header line"),
}


@pytest.mark.parametrize(("text", "said"), NOT_SACCT.values(), ids=NOT_SACCT.keys())
def test_what_is_no_sacct_output_is_refused(site, text, said):
    assert said in refused(site, sacct=text)


NOT_NODES = {
    "empty": ("", "no node in it"),
    "words": ("slurm_load_node error: Unable to contact\n", "line 1: expected a line that starts"),
    "sinfo": ("NODELIST   NODES\ngn01  1\n", "line 1: expected"),
    "no state": ("NodeName=gn01 Gres=gpu:8\n", "line 1: the node has no State"),
    "memory is text": ("NodeName=gn01 RealMemory=lots State=IDLE\n", "line 1: RealMemory=lots"),
    "gres is broken": (
        "NodeName=a State=IDLE\nNodeName=b Gres=gpu:a100:many State=IDLE\n",
        "line 2: Gres 'gpu:a100:many'",
    ),
    "twice": ("NodeName=a State=IDLE\nNodeName=a State=IDLE\n", "line 2: node a is listed twice"),
    "stamp is broken": (
        "NodeName=a State=DOWN Reason=fan [root@soon]\n",
        "line 1: time 'soon'",
    ),
}


@pytest.mark.parametrize(("text", "said"), NOT_NODES.values(), ids=NOT_NODES.keys())
def test_what_is_no_node_list_is_refused(site, text, said):
    site.rows = [site.run()]
    message = refused(site, nodes=text)
    assert said in message
    assert "scontrol show node -d -o" in message


BESIDE = {
    "events": (
        "events",
        "NodeName|Start|End|State\ngn01|soon|Unknown|DOWN\n",
        "line 2: start: time",
    ),
    "events without state": ("events", "NodeName|Start|End\ngn01|1|2\n", "no column state"),
    "topology": ("topology", "SwitchName=s1 Nodes=gn[1\n", "line 1: hostlist"),
    "topology of words": ("topology", "# none\nfoo bar\n", "line 2: expected SwitchName="),
    "topology with two leaves": (
        "topology",
        "SwitchName=s1 Nodes=gn01\nSwitchName=s2 Nodes=gn01\n",
        "line 2: node gn01 hangs on s1 and on s2",
    ),
    "yaml": ("topology", "---\n- topology: [\n", "no YAML"),
    "partitions": ("partitions", "PartitionName=a MaxTime=x\n", "line 1: time span"),
    "no partitions": ("partitions", "\n", "no partition"),
    "config": ("config", "ClusterName = c\n", "it does not say SchedulerType"),
    "qos": ("qos", "normal|0\n", "line 1: no column Name"),
    "accounts": ("associations", "Account|User\nnlp|ada\n", "line 1: no column GrpTRES"),
}


@pytest.mark.parametrize(("option", "text", "said"), BESIDE.values(), ids=BESIDE.keys())
def test_a_broken_file_beside_refuses_the_whole_import(site, option, text, said):
    site.rows = [site.run()]
    assert said in refused(site, **{option: text})


def test_a_file_that_is_not_there_is_named(site):
    site.rows = [site.run()]
    with pytest.raises(ImportRefusedError, match=r"nowhere.txt: cannot be read: No such file"):
        import_files(site.store, "c", sacct=site.folder / "nowhere.txt", nodes="x", now=site.now)


def test_a_site_without_gpu_accounting_is_refused_instead_of_costing_nothing(site):
    site.rows = [site.run(alloctres="cpu=16,mem=65536M,node=1", reqtres="cpu=16")]
    site.nodes = [site.node(CfgTRES="cpu=128,mem=1T,billing=128")]
    message = refused(site)
    assert "no job of the file holds a GPU" in message
    assert "AccountingStorageTRES=gres/gpu" in message


def test_gpus_in_use_prove_that_they_are_not_accounted_for(site):
    site.rows = [site.run(alloctres="cpu=16,mem=65536M,node=1")]
    site.nodes = [site.node(GresUsed="gpu:a100:5(IDX:0-4)")]
    assert "GPUs in use on gn01" in refused(site)


def test_cpu_jobs_on_gpu_nodes_are_fine_where_gpus_are_accounted_for(site):
    site.rows = [site.run(alloctres="cpu=16,mem=65536M,node=1")]
    summary = site.take_in()
    assert any("stood free the whole time" in remark for remark in summary.remarks)
    assert site.store.rows("SELECT gpus, cpus FROM allocation") == [{"gpus": 0, "cpus": 16}]


def test_a_window_that_cannot_be_told_is_asked_for(site):
    site.rows = [
        site.run(
            state="PENDING",
            start="Unknown",
            end="Unknown",
            alloctres="",
            nodelist="None assigned",
            elapsedraw=0,
        )
    ]
    assert "Give --since and --until" in refused(site)


@pytest.mark.parametrize("name", ["", " "])
def test_a_cluster_without_a_name_is_refused(site, name, tmp_path):
    with pytest.raises(ImportRefusedError, match=r"cluster: its name is empty\. Give --cluster"):
        import_files(
            site.store, name, sacct=tmp_path, nodes=tmp_path, now=datetime(2026, 11, 30, tzinfo=UTC)
        )
    assert site.store.value("SELECT count(*) FROM fact_window") == 0


@pytest.mark.parametrize("years", [(1, 2026), (1999, 2026), (2026, 2201), (2026, 9999)])
def test_a_window_of_absurd_years_is_refused_before_the_store_believes_it(site, years):
    site.rows = [site.run()]
    since, until = (datetime(year, 11, 30, tzinfo=UTC) for year in years)
    message = refused(site, since=since, until=until)
    assert "is not between the years 2000 and 2200" in message
    assert "--since and --until" in message
    assert site.store.value("SELECT count(*) FROM fact_window") == 0


def test_a_file_of_several_clusters_needs_the_right_name(site):
    site.rows = [site.run(cluster="a"), site.run(cluster="b")]
    assert "rows of the clusters a, b, none of c" in refused(site)


READERS = {
    "sacct": lambda text: sacct.parse("f", text.encode(), cluster="c"),
    "nodes": lambda text: node.parse("f", text),
    "events": lambda text: node_event.parse("f", text.encode(), cluster="c"),
    "partitions": lambda text: partition.parse("f", text),
    "topology": lambda text: topology.parse("f", text),
    "reservations": lambda text: reservation.parse("f", text),
    "squeue": lambda text: squeue.parse("f", text),
}
SEEDS = {
    "sacct": "jobid|submit|start|end|state|alloctres|nodelist\n"
    "1_2|1793491200|1793491260|None|RUNNING|cpu=1,gres/gpu=1|gn[01-02]\n",
    "nodes": "NodeName=gn[01-02] Gres=gpu:a100:8(S:0) State=DOWN Reason=x [r@1793491200]\n",
    "events": "NodeName|Start|End|State|Reason|User\ngn01|1793491200|Unknown|DRAIN|x|root\n",
    "partitions": "PartitionName=a Nodes=gn[01-02] MaxTime=1-00:00:00 State=UP\n",
    "topology": "SwitchName=s1 Nodes=gn[1-2]\nSwitchName=r Switches=s1\n",
    "reservations": "ReservationName=a StartTime=1793491200 EndTime=Unknown Nodes=n1 TRES=cpu=1\n",
    "squeue": "2_1|2|nlp|ada|low|normal|PENDING|17|1793491200|1:00:00|N/A|cpu=1,gres/gpu=1|None|\n",
}


@pytest.mark.parametrize("kind", READERS)
@given(data=st.data())
def test_damaged_text_is_read_or_refused_and_never_anything_else(kind, data):
    text = SEEDS[kind] * 2
    for _ in range(data.draw(st.integers(1, 4))):
        begin = data.draw(st.integers(0, len(text)))
        end = data.draw(st.integers(begin, min(len(text), begin + 12)))
        piece = st.text(
            alphabet=st.sampled_from("0123456789[]-,|=+_%.:\n\r\t\x1f\x00 aGM#ü"), max_size=6
        )
        text = text[:begin] + data.draw(piece) + text[end:]
    with suppress(ImportRefusedError):
        READERS[kind](text)
