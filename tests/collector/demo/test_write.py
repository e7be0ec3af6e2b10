"""The demo goes into a file of its own, whole or not at all."""

from __future__ import annotations

import pytest

from collector.demo import SINCE, UNTIL, DemoFacts, holds_demo, write_demo
from collector.errors import StoreError
from collector.model import Node


def a_site_node():
    return Node(
        cluster="site", node="n1", gpu_model="H100", gpus=8, valid_from=SINCE, source="slurm"
    )


def test_the_file_says_that_it_is_a_demo(store, demo):
    assert not holds_demo(store)
    rows = write_demo(store, demo)
    assert holds_demo(store)
    assert rows == sum(store.value(f'SELECT count(*) FROM "{table}"') for table in demo.tables)
    assert store.value("SELECT value FROM store_info WHERE key = 'demo_until'") == UNTIL.isoformat()


def test_a_file_with_real_facts_is_refused_and_unchanged(store, demo):
    with store.work() as work:
        work.append_facts([a_site_node()])
    with pytest.raises(StoreError, match="holds facts already"):
        write_demo(store, demo)
    assert not holds_demo(store)
    assert store.value("SELECT count(*) FROM job_run") == 0


def test_a_write_that_fails_half_way_leaves_an_empty_file(store, demo):
    broken = DemoFacts(demo.tables | {"sample": {"no_such_column": [1]}}, demo.runs, True)
    with pytest.raises(Exception, match="no_such_column"):
        write_demo(store, broken)
    assert not holds_demo(store)
    assert store.value("SELECT count(*) FROM job") == 0
