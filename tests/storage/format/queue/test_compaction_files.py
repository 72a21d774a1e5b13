"""The files of a compaction topic and of LMQ queues follow from the log, byte for byte.

The stores were written by RocketMQ 5.4.0 with compactionMappedFileSize=10000,
compactionCqMappedFileSize=1000, enableLmq and enableMultiDispatch: 240 messages to the compaction topic
``Comp``, with empty bodies among them, and 60 to ``Multi`` that ask for further queues. ``filled`` was
stopped before a compaction, ``compacted`` after one.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from seglog.storage.format.queue.batch_consume_queue import (
    END_UNIT,
    make_batch_units,
    valid_batch_prefix,
    view_batch_units,
)
from seglog.storage.format.queue.compaction import (
    compaction_key,
    compaction_record,
    compaction_rolls,
    compaction_sizes,
    decode_positions,
    encode_positions,
)
from seglog.storage.format.queue.consume_queue import CQ_UNIT
from seglog.storage.format.queue.lmq import lmq_names, multi_queues
from seglog.storage.format.record.record import FILLER, MAGIC_BLANK
from tests.support.material.archives import unpack
from tests.support.material.compactions import is_kept
from tests.support.material.log_records import iter_log

ARCHIVE = Path(__file__).parents[1] / "stores" / "compaction-5.4.0.tar.xz"
SIZES = compaction_sizes(10_000, 1000)


@pytest.fixture(scope="module")
def stores(module_folders):
    folder = module_folders.mktemp("compaction")
    unpack(ARCHIVE, folder)
    return folder


def files_of(folder):
    return {int(path.name): path.read_bytes() for path in folder.iterdir()}


def records_of(store, queue_id):
    return [record for record in iter_log(store) if (record.topic, record.row.queue_id) == ("Comp", queue_id)]


def unit_of(record, phy_offset):
    row = record.row
    values = (phy_offset, row.size_bytes, row.tags_code, row.store_timestamp_ms, row.queue_offset)
    return make_batch_units(*(np.array([value]) for value in values)).tobytes()


@pytest.mark.parametrize("queue_id", [0, 1])
def test_both_kinds_of_files_are_made_from_the_log(stores, queue_id):
    store = stores / "filled"
    logs, queues = {0: b""}, {0: b""}
    first = 0
    for record in records_of(store, queue_id):
        if compaction_rolls(record.row.size_bytes, len(logs[first]), len(queues[first]), SIZES):
            queues[first] += END_UNIT
            logs[first] += FILLER.struct.pack(SIZES.log_bytes - len(logs[first]), MAGIC_BLANK)
            first += SIZES.log_bytes
            logs[first] = queues[first] = b""
        phy_offset = first + len(logs[first])
        logs[first] += compaction_record(record.record, phy_offset)
        queues[first] += unit_of(record, phy_offset)
    assert len(logs) == 6
    for made, size, kind in (
        (logs, SIZES.log_bytes, "compactionLog"),
        (queues, SIZES.queue_bytes, "compactionCq"),
    ):
        real = files_of(store / "compaction" / kind / "Comp" / str(queue_id))
        # A full queue file has no room for an end unit: what is over is cut off.
        assert {at: data[:size].ljust(size, b"\0") for at, data in made.items()} == real


@pytest.mark.parametrize("queue_id", [0, 1])
def test_a_compaction_kept_what_the_rule_keeps(stores, queue_id):
    store = stores / "compacted"
    positions = decode_positions((store / "compaction" / "position-checkpoint").read_bytes())
    last_mapped = positions["Comp", queue_id]
    records = records_of(store, queue_id)
    last_of_key = {
        compaction_key(record.properties): record.row.queue_offset
        for record in records
        if record.row.queue_offset <= last_mapped
    }
    kept = [
        record.row.queue_offset
        for record in records
        if is_kept(
            record.row.queue_offset,
            last_of_key.get(compaction_key(record.properties), -1),
            record.row.body_bytes,
            last_mapped,
        )
    ]
    found = []
    for _first, data in sorted(
        files_of(store / "compaction" / "compactionCq" / "Comp" / str(queue_id)).items()
    ):
        units = view_batch_units(data)
        found += units[: valid_batch_prefix(units)]["base_queue_offset"].tolist()
    assert found == kept
    assert len(kept) < len(records)


def test_the_positions_are_written_again_byte_for_byte(stores):
    text = (stores / "compacted" / "compaction" / "position-checkpoint").read_text()
    assert decode_positions(text) == {("Comp", 0): 99, ("Comp", 1): 99}
    assert encode_positions(decode_positions(text)) == text


def test_lmq_queues_have_the_units_that_their_records_ask_for(stores):
    store = stores / "filled"
    asked, units = set(), {}
    for record in iter_log(store):
        asked.update(lmq_names(record.properties))
        for name, queue_id, queue_offset in multi_queues(
            record.topic, record.row.queue_id, record.properties
        ):
            unit = (record.phy_offset, record.row.size_bytes, record.row.tags_code)
            units.setdefault((name, queue_id), {})[queue_offset] = unit
    for (name, queue_id), mine in units.items():
        data = b"".join(files_of(store / "consumequeue" / name / str(queue_id)).values())
        real = np.frombuffer(data, CQ_UNIT.dtype)
        assert {at: unit for at, unit in enumerate(real.tolist()) if unit[1]} == mine
    # Plain names get no offset, and then RocketMQ dispatches none of the record's names.
    assert asked == {"%LMQ%a", "plainq", "%LMQ%a/b", "%LMQ%c", "%LMQ%x", "%LMQ%y"}
    assert {folder.name for folder in (store / "consumequeue").iterdir()} == {
        "Comp",
        "Multi",
        *(name for name, _queue_id in units),
    }
