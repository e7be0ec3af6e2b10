"""Batches on disk: whole or not there, bounded, and never in the way of the collection."""

from __future__ import annotations

import pytest

from collector.agent.batch import unpack
from collector.agent.spool import Spool, unframe


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "spool"


def sequences(spool):
    found = []
    while (waiting := spool.oldest()) is not None:
        found.append(unpack(waiting[1]).sequence)
        spool.done(waiting[0])
    return found


def test_batches_come_out_in_the_order_they_were_made(folder, a_batch):
    spool = Spool(folder)
    for sequence in range(12):
        spool.keep(a_batch(sequence))
    assert sequences(spool) == list(range(12))


def test_a_new_process_finds_what_the_old_one_kept(folder, a_batch):
    Spool(folder).keep(a_batch(7))
    assert sequences(Spool(folder)) == [7]


def test_a_batch_stays_until_it_is_done(folder, a_batch):
    spool = Spool(folder)
    spool.keep(a_batch(1))
    assert spool.oldest() == spool.oldest()
    spool.done(spool.oldest()[0])
    assert (spool.oldest(), spool.batches, spool.size_bytes) == (None, 0, 0)


@pytest.mark.parametrize("cut", [0, 1, 11, 12, 30])
def test_a_torn_file_is_dropped_and_the_next_one_sent(folder, a_batch, cut):
    spool = Spool(folder)
    spool.keep(a_batch(1))
    spool.keep(a_batch(2))
    first = sorted(folder.glob("*.batch"))[0]
    first.write_bytes(first.read_bytes()[:cut])
    again = Spool(folder)
    assert sequences(again) == [2]
    assert again.figures.dropped_torn == 1


def test_a_flipped_bit_is_found(folder, a_batch):
    spool = Spool(folder)
    spool.keep(a_batch(1))
    file = next(folder.glob("*.batch"))
    framed = bytearray(file.read_bytes())
    framed[len(framed) // 2] ^= 1
    assert unframe(bytes(framed)) is None
    file.write_bytes(bytes(framed))
    assert spool.oldest() is None


def test_a_file_that_was_being_written_at_a_crash_is_not_there(folder, a_batch):
    Spool(folder)
    (folder / "1-x-1.batch.new").write_bytes(b"half")
    assert Spool(folder).batches == 0
    assert list(folder.glob("*.new")) == []


def test_a_full_spool_drops_the_oldest_and_counts_them(folder, a_batch):
    spool = Spool(folder, most_bytes=14_000)
    for sequence in range(10):
        spool.keep(a_batch(sequence))
    assert spool.size_bytes == 3 * 4096, "whole blocks, as the disk counts"
    assert spool.figures.dropped_full == 7
    assert sequences(spool) == [7, 8, 9]


def test_a_disk_that_takes_nothing_costs_nothing_until_memory_is_full(folder, a_batch, monkeypatch):
    spool = Spool(folder)
    monkeypatch.setattr(spool, "_write", lambda *_: (_ for _ in ()).throw(OSError(28, "full")))
    for sequence in range(5):
        spool.keep(a_batch(sequence))
    assert spool.figures.disk_errors >= 5
    assert spool.batches == 5
    assert unpack(spool.oldest()[1]).sequence == 0, "it is sent from memory"
    monkeypatch.undo()
    assert sequences(spool) == [0, 1, 2, 3, 4]


def test_memory_is_bounded_when_the_disk_takes_nothing_for_long(folder, a_batch, monkeypatch):
    spool = Spool(folder)
    monkeypatch.setattr(spool, "_write", lambda *_: (_ for _ in ()).throw(OSError(28, "full")))
    for sequence in range(300):
        spool.keep(a_batch(sequence))
    assert spool.batches == 200
    assert spool.figures.dropped_full == 100


def test_a_refused_batch_is_put_aside_and_only_so_many(folder, a_batch):
    spool = Spool(folder)
    for sequence in range(105):
        spool.keep(a_batch(sequence))
        spool.refuse(*spool.oldest())
    assert spool.batches == 0
    aside = sorted((folder / "refused").glob("*.batch"))
    assert len(aside) == 100
    assert unpack(unframe(aside[-1].read_bytes())).sequence == 104
