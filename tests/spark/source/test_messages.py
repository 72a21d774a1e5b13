"""What the data source reads, without Spark: the messages of every golden store, for any splits."""

from __future__ import annotations

import hashlib

import pyarrow as pa
import pytest

from seglog import MessageStore
from seglog.errors import CorruptError
from seglog.spark.source.read.read_plan import plan_pieces, read_piece
from seglog.spark.source.values.columns import BIGINT, COLUMNS, Wanted
from seglog.spark.source.wanted.options import Options
from seglog.storage.files.files import RealFiles
from seglog.storage.format.record.host import Host
from seglog.storage.format.record.tombstone import LOST_FLAG
from seglog.storage.survey.store_survey import survey
from tests.support.material.golden import expected, extract, golden_names, shared
from tests.support.rows import every_row

EVERYTHING = tuple(
    Wanted(column.name, BIGINT if BIGINT in column.types else column.types[0]) for column in COLUMNS
)


def read(*paths, **options):
    parsed = Options(tuple(map(str, paths)), **{"inner_batches": "records", **options})
    batches = [
        batch
        for piece in plan_pieces(parsed)
        for batch in read_piece(piece, parsed, parsed.selection, EVERYTHING)
    ]
    for batch in batches:
        batch.validate(full=True)
    return pa.Table.from_batches(batches, pa.schema([(one.name, one.type) for one in EVERYTHING])).to_pylist()


def as_served(row):
    """Returns what RocketMQ's lines say of the same message."""
    return {
        "cqTopic": row["topic"],
        "cqQueueId": row["queueId"],
        "cqOffset": row["queueOffset"],
        "cqPos": row["physicalOffset"],
        "cqSize": row["size"],
        "tagsCode": row["tagsCode"],
        "topic": row["topic"],
        "queueId": row["queueId"],
        "queueOffset": row["queueOffset"],
        "commitLogOffset": row["physicalOffset"],
        "storeSize": row["size"],
        "bodyCRC": row["bodyCrc"],
        "sysFlag": row["sysFlag"],
        "flag": row["flag"],
        "bornTimestamp": row["bornTimestamp"],
        "storeTimestamp": row["storeTimestamp"],
        "bornHost": Host.parse(row["bornHost"]).java_text(),
        "storeHost": Host.parse(row["storeHost"]).java_text(),
        "reconsumeTimes": row["reconsumeTimes"],
        "preparedTransactionOffset": row["preparedTransactionOffset"],
        "bodyLen": len(row["body"]),
        "bodySha256": hashlib.sha256(row["body"]).hexdigest(),
        "properties": dict(row["properties"]),
    }


def served(name):
    lines = [line for line in expected(name) if line["kind"] == "msg"]
    return sorted(lines, key=lambda line: line["cqPos"])


def test_intact_stores_give_what_rocketmq_serves():
    with every_row() as row_of:
        for name in golden_names(damaged=False):
            lines = served(name)
            for split_bytes in (128 << 20, 30_000):
                with row_of(name, split_bytes):
                    rows = read(shared(name), max_partition_bytes=split_bytes)
                    assert len(rows) == len(lines)
                    for row, line in zip(rows, lines, strict=True):
                        found = as_served(row)
                        # RocketMQ's own dump fails at messages without properties.
                        names = [
                            name
                            for name in line
                            if name in found and ("dumpError" not in line or name.startswith("cq"))
                        ]
                        assert {name: found[name] for name in names} == {name: line[name] for name in names}


def test_damage_is_an_error_that_says_where_it_lies():
    root = shared("d-magic")
    with pytest.raises(CorruptError, match=r"commitlog/\d{20} \+\d+: magic") as caught:
        read(root)
    assert "failOnDataLoss" in caught.value.help


def test_damaged_stores_give_every_message_that_can_be_read():
    intact = {
        name: {line["cqPos"]: line for line in served(name)} for name in ("propcrc", "roll-halt", "roll")
    }
    with every_row() as row_of:
        for name in golden_names(damaged=True):
            root = shared(name)
            found = survey(root, RealFiles())
            whole = "propcrc" if "propcrc" in name else "roll-halt" if name.endswith("-halt") else "roll"
            for split_bytes in (128 << 20, 5000):
                with row_of(name, split_bytes):
                    rows = read(root, max_partition_bytes=split_bytes, fail_on_data_loss=False)
                    assert [row["physicalOffset"] for row in rows] == found.rows["phy_offset"].tolist()
                    for row in rows:
                        line = intact[whole][row["physicalOffset"]]
                        if name != "d-propflip":  # where a checksum would tell, there is none
                            assert as_served(row) == {name: line[name] for name in as_served(row)}


def test_bodies_are_inflated_if_that_is_wanted():
    root = shared("comp")
    stored, inflated = read(root), read(root, decompress=True)
    assert {row["sysFlag"] & 0x701 for row in stored} == {0x101, 0x201, 0x301}
    for before, after in zip(stored, inflated, strict=True):
        assert before["body"] != after["body"]
        assert hashlib.sha256(after["body"]).hexdigest() == dict(after["properties"])["rawSha"]
        assert after["sysFlag"] == before["sysFlag"] & ~0x701


@pytest.mark.parametrize("kind", [0x101, 0x201, 0x301])
def test_bodies_that_do_not_inflate_stay_as_they_are(tmp_path, kind):
    (whole,) = [row["body"] for row in read(shared("comp")) if row["sysFlag"] & 0x701 == kind][:1]
    with MessageStore.open(tmp_path / "store") as store:
        for body in (whole, whole[:-5], b"no " + whole, b""):
            store.append("T", 0, body, b"", 0, sys_flag=kind)
    stored, inflated = read(tmp_path / "store"), read(tmp_path / "store", decompress=True)
    assert [after == before for before, after in zip(stored, inflated, strict=True)] == [
        False,
        True,
        True,
        True,
    ]


def test_a_body_that_would_be_huge_stays_as_it_is(tmp_path):
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, "zstd") as stream:
        for _ in range(65):
            stream.write(bytes(1 << 20))
    with MessageStore.open(tmp_path) as store:
        store.append("T", 0, sink.getvalue().to_pybytes(), b"", 0, sys_flag=0x201)
    assert read(tmp_path) == read(tmp_path, decompress=True)


def test_a_tombstone_is_no_row(tmp_path):
    root = extract("d-trunclast", tmp_path)
    with MessageStore.open(root):
        pass  # puts tombstones where the end of the log was cut
    assert len(survey(root, RealFiles()).rows) == 400
    rows = read(root)
    assert len(rows) == 400 - 32
    assert [row for row in rows if row["flag"] == LOST_FLAG] == []


def test_only_what_is_whole_is_read_beside_a_writer(tmp_path):
    with MessageStore.open(tmp_path, segment_size_bytes=1 << 16) as store:
        for number in range(100):
            store.put("T", b"%d" % number + bytes(900))
        assert [row["queueOffset"] for row in read(tmp_path)] == [*range(100)]
        # The next record half written: its size and magic are there, its end is not.
        end = store.max_phy_offset
        file = tmp_path / "commitlog" / f"{end - end % 65536:020}"
        with file.open("r+b") as opened:
            record = bytes(read(tmp_path)[-1]["record"])
            opened.seek(end % 65536)
            opened.write(record[: len(record) // 2])
        assert [row["queueOffset"] for row in read(tmp_path)] == [*range(100)]
