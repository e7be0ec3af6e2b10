from __future__ import annotations

import json
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collector.agent.batch import unpack
from collector.errors import BatchRefusedError


def raw(**plain):
    return zlib.compress(json.dumps(plain).encode())


def test_a_batch_comes_back_as_it_was_packed(a_batch):
    batch = a_batch(rows=3)
    assert unpack(batch.pack()) == batch
    assert batch.row_count == 3


def test_columns_and_tables_of_a_newer_agent_are_left_out(a_batch):
    batch = a_batch()
    batch.tables["sample"]["colour"] = ["blue"]
    batch.tables["weather"] = {"rain": [1]}
    tables = unpack(batch.pack()).tables
    assert "colour" not in tables["sample"]
    assert "weather" not in tables


def test_a_newer_format_is_refused_with_both_numbers(a_batch):
    plain = json.loads(zlib.decompress(a_batch().pack())) | {"format": 2}
    with pytest.raises(BatchRefusedError, match="format 2, this service 1"):
        unpack(raw(**plain))


@given(st.binary(max_size=200))
def test_no_bytes_do_worse_than_a_refusal(junk):
    with pytest.raises(BatchRefusedError):
        unpack(junk)


def test_a_torn_batch_is_refused(a_batch):
    packed = a_batch().pack()
    for length in range(len(packed)):
        with pytest.raises(BatchRefusedError):
            unpack(packed[:length])


@pytest.mark.parametrize("key", ["cluster", "node", "agent_id", "boot_id", "sequence", "tables"])
def test_a_batch_without_a_name_is_refused(a_batch, key):
    plain = json.loads(zlib.decompress(a_batch().pack()))
    del plain[key]
    with pytest.raises(BatchRefusedError):
        unpack(raw(**plain))


@pytest.mark.parametrize(
    "change", [{"node": ""}, {"node": 7}, {"sequence": -1}, {"sequence": True}, {"tables": []}]
)
def test_a_batch_with_a_name_of_the_wrong_kind_is_refused(a_batch, change):
    plain = json.loads(zlib.decompress(a_batch().pack())) | change
    with pytest.raises(BatchRefusedError):
        unpack(raw(**plain))


def test_columns_of_different_length_are_refused(a_batch):
    batch = a_batch()
    batch.tables["sample"]["util_ratio"] = [0.1, 0.2]
    with pytest.raises(BatchRefusedError, match="differ in length"):
        unpack(batch.pack())


def test_a_row_without_its_time_is_refused(a_batch):
    batch = a_batch()
    batch.tables["sample"]["ts"] = [None]
    with pytest.raises(BatchRefusedError, match=r"sample\.ts"):
        unpack(batch.pack())


def test_a_small_batch_that_unpacks_to_a_huge_one_is_refused():
    with pytest.raises(BatchRefusedError, match="larger than"):
        unpack(zlib.compress(b" " * (33 * 2**20)))
