"""Batches are the same however they are made, and stay what they were when others are read."""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql.types import TimestampType

from seglog import MessageStore
from seglog.spark.source.read.batches import Constants, Messages
from seglog.spark.source.read.read_plan import plan_pieces, read_piece
from seglog.spark.source.read.split_rows import Window
from seglog.spark.source.values.columns import COLUMNS, Wanted, named_columns
from seglog.spark.source.values.times import END_MS, FIRST_MS, timestamps
from seglog.spark.source.wanted.options import Options
from seglog.storage.format.record.sys_flag import COMPRESSED, INNER_BATCH, TRANSACTION_PREPARED
from seglog.storage.format.record.tombstone import LOST_FLAG
from seglog.storage.kernels import NATIVE, PYTHON
from seglog.storage.kernels.walk import QueueTable, walk
from tests.storage.kernels.test_message_columns import records
from tests.support.machine.kernels import BOTH, running
from tests.support.material.records import Record

FIRST = 1 << 30
DAY_MS = 86_400_000
EVERY_TYPE = tuple(
    Wanted(column.name, kind, f"{column.name}_{number}")
    for column in COLUMNS
    for number, kind in enumerate(column.types)
)
stored = records.flatmap(
    lambda record: st.builds(
        replace,
        st.just(record),
        flag=st.sampled_from([0, 5, LOST_FLAG, 0x434D5054]),
        topic=st.sampled_from([b"T", b"Orders", b"L" * 200]),
        sys_flag=st.sampled_from([0, 0, TRANSACTION_PREPARED, INNER_BATCH, COMPRESSED]),
        body=st.sampled_from([b"", b"body", bytes.fromhex("789c4bca4fa90400044a01ae")]),
    )
)


@pytest.mark.parametrize("inflates", [False, True])
@given(values=st.lists(stored, min_size=1, max_size=8))
def test_columns_made_natively_are_those_made_by_numpy(inflates, values):
    log = b""
    for value in values:
        log += replace(value, phy_offset=FIRST + len(log)).pack()
    queues = QueueTable()
    rows = walk(memoryview(log), FIRST, FIRST + (1 << 30), queues, verify=False).rows
    found = []
    for kernels in (NATIVE, PYTHON):
        with running(kernels):
            messages = Messages(Window(memoryview(log), FIRST, rows), queues.names, inflates=inflates)
            if not len(messages.rows):
                return
            found.append(messages.batch(EVERY_TYPE, Constants("broker-a", "/store")))
            found[-1].validate(full=True)
    assert found[0].equals(found[1])


@pytest.mark.parametrize("kernels", BOTH)
@pytest.mark.parametrize("born_ms", [-(1 << 63), -(1 << 54), FIRST_MS - 1, END_MS, 1 << 55, (1 << 63) - 1])
def test_times_that_python_has_none_for_are_null(kernels, born_ms):
    log = Record(born_timestamp_ms=born_ms).pack()
    queues = QueueTable()
    rows = walk(memoryview(log), 0, 1 << 30, queues).rows
    with running(kernels):
        batch = Messages(Window(memoryview(log), 0, rows), queues.names).batch(
            named_columns(["bornTimestamp"]), Constants(None, "/store")
        )
    assert batch.to_pylist() == [{"bornTimestamp": None}]


@pytest.fixture
def in_zone(monkeypatch):
    """Has this process be in a time zone."""

    def go(zone):
        monkeypatch.setenv("TZ", zone)
        time.tzset()

    yield go
    monkeypatch.undo()
    time.tzset()


def collected_ms(time_us):
    """Returns a time as Spark makes it of the number that it collects, in milliseconds."""
    return TimestampType().fromInternal(time_us).astimezone().timestamp() * 1000


@pytest.mark.parametrize("zone", ["UTC", "Pacific/Kiritimati", "Etc/GMT+12"])
def test_times_that_are_no_null_can_be_collected_in_every_zone(in_zone, zone):
    times = timestamps(np.array([FIRST_MS - 1, FIRST_MS, 0, END_MS - 1, END_MS]))
    given = [time_us for time_us in times.cast("int64").to_pylist() if time_us is not None]
    in_zone(zone)
    assert [collected_ms(time_us) for time_us in given] == [FIRST_MS, 0, END_MS - 1]


def test_beyond_the_bounds_some_zone_cannot_collect_a_time(in_zone):
    """So the days at each end are not given away for nothing."""
    late_ms = END_MS + DAY_MS * 3 // 2
    for time_ms, zone in ((FIRST_MS - DAY_MS, "Etc/GMT+12"), (late_ms, "Pacific/Kiritimati")):
        in_zone(zone)
        with pytest.raises((ValueError, OverflowError), match="is out of range"):
            collected_ms(time_ms * 1000)


@pytest.mark.parametrize("keeps", [False, True])
def test_batches_stay_what_they_were_while_others_are_read(tmp_path, keeps):
    with MessageStore.open(tmp_path) as store:
        for number in range(700):
            store.put("T", b"%05d" % number + bytes(60_000))
    options = Options((str(tmp_path),))
    wanted = named_columns(["record", "queueOffset"])
    (piece,) = plan_pieces(options)
    batches: list[pa.RecordBatch] = []
    log = b"".join(path.read_bytes() for path in sorted((tmp_path / "commitlog").iterdir()))
    position = 0
    for batch in read_piece(piece, options, options.selection, wanted):
        batches.append(batch)
        if not keeps:
            position = compare(batches.pop(), log, position)
    assert keeps == (len(batches) > 2)
    for batch in batches:
        position = compare(batch, log, position)
    assert position > 700 * 60_000


def compare(batch, log, position):
    for record in batch.column(0).to_pylist():
        assert record == log[position : position + len(record)]
        position += len(record)
    return position


def test_a_batch_of_whole_messages_is_of_one_window_of_the_log(tmp_path):
    count = 2_000
    with MessageStore.open(tmp_path) as store:
        for _number in range(count):
            store.put("T", bytes(10_000))
    options = Options((str(tmp_path),))
    (piece,) = plan_pieces(options)
    rows = {}
    for name in ("body", "record", "size"):
        wanted = named_columns([name, "queueOffset"])
        batches = list(read_piece(piece, options, options.selection, wanted))
        offsets = [offset for batch in batches for offset in batch.column(1).to_pylist()]
        assert offsets == list(range(count))
        rows[name] = [batch.num_rows for batch in batches]
    assert rows["body"] == rows["record"]
    assert max(rows["body"]) <= (8 << 20) // 10_000 < max(rows["size"])
