"""Files of an archive that are not what its manifests name: nothing is made of them."""

from __future__ import annotations

import json
import shutil

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from seglog.errors import ConfigError, DataLossError, InvalidArgumentError
from seglog.spark.archive.archive import archive_store
from seglog.spark.archive.restore import restore_store
from tests.spark.archive.stores import NEW_SIZES, content, put

pytestmark = pytest.mark.spark


def without_first(table):
    return table.slice(5)


def with_two_twice(table):
    return pa.concat_tables([table, table.slice(3, 2)])


def with_another_record(table):
    tails = [tail.replace(b"k3", b"K3") for tail in table["tail"].to_pylist()]
    return table.set_column(table.schema.get_field_index("tail"), "tail", pa.array(tails, pa.binary()))


def with_another_offset(table):
    at = table.schema.get_field_index("queueOffset")
    return table.set_column(at, "queueOffset", pc.add(table["queueOffset"], 100))


def with_another_run(table):
    at = table.schema.get_field_index("run")
    return table.set_column(at, "run", pa.repeat(pa.scalar(7, pa.int32()), table.num_rows))


def with_other_numbers(name):
    def change(table):
        at = table.schema.get_field_index(name)
        other = pc.add(table[name], 1).cast(table.schema.field(name).type)
        return table.set_column(at, table.schema.field(name), other)

    change.__name__ = f"with_other_{name}"
    return change


def with_topics_swapped(table):
    at = table.schema.get_field_index("topic")
    return table.set_column(at, "topic", pa.repeat(pa.scalar("U"), table.num_rows))


BESIDE = ("queueId", "physicalOffset", "size", "flag", "sysFlag", "bornTimestamp")
CHANGES = [
    *(without_first, with_two_twice, with_another_record, with_another_offset, with_another_run),
    *(with_topics_swapped, *map(with_other_numbers, BESIDE)),
]


@pytest.fixture(scope="module")
def archive(spark: SparkSession, tmp_path_factory):
    folder = tmp_path_factory.mktemp("held")
    store = put(folder / "store", 60)
    archive_store(store, folder / "archive", spark, name="b")
    put(store, 40, begin=60)
    archive_store(store, folder / "archive", spark)
    return folder


@pytest.fixture
def copied(archive, tmp_path):
    shutil.copytree(archive / "archive", tmp_path / "archive")
    return tmp_path / "archive"


def refused(spark, folder, error, match, tmp_path):
    for apply in (False, True):
        with pytest.raises(error, match=match) as caught:
            restore_store(folder, tmp_path / "again", spark, apply=apply, sizes=NEW_SIZES)
        assert "archive" in caught.value.help
    assert not (tmp_path / "again").exists()
    assert not (tmp_path / "again.compact").exists()


def test_an_archive_that_is_whole_is_restored(spark: SparkSession, archive, copied, tmp_path):
    assert restore_store(copied, tmp_path / "again", spark, apply=True, sizes=NEW_SIZES).messages == 100
    assert content(tmp_path / "again") == content(archive / "store")


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
def test_rows_that_another_program_changed(spark: SparkSession, copied, tmp_path, change):
    for file in sorted((copied / "data").rglob("*.parquet")):
        pq.write_table(change(pq.read_table(file, partitioning=None)), file)
        break
    refused(spark, copied, DataLossError, "are not those|does not hold what", tmp_path)


def test_a_record_that_is_another_is_named(spark: SparkSession, copied, tmp_path):
    file = min((copied / "data").rglob("*.parquet"))
    pq.write_table(with_another_record(pq.read_table(file, partitioning=None)), file)
    said = rf"{file.name}: \d+ records of T/\d at queue offsets \d+ to \d+ are not those that were archived"
    refused(spark, copied, DataLossError, said, tmp_path)


def cut(data):
    return data[:-300]


def without_end(data):
    return data[: len(data) // 2]


def garbled(data):
    return data[:40] + bytes(byte ^ 0xA5 for byte in data[40:-2000]) + data[-2000:]


def with_one_bit_flipped(data):
    # In the first page of the bodies, whose statistics and offsets are elsewhere.
    bodies = pq.ParquetFile(pa.BufferReader(data)).metadata.row_group(0)
    at = next(c for c in map(bodies.column, range(bodies.num_columns)) if c.path_in_schema == "body")
    place = at.data_page_offset + at.total_compressed_size - 20
    return data[:place] + bytes([data[place] ^ 4]) + data[place + 1 :]


@pytest.mark.parametrize("change", [cut, without_end, garbled, with_one_bit_flipped])
def test_a_file_that_is_no_whole_parquet_is_damage_and_named(spark: SparkSession, copied, tmp_path, change):
    file = min((copied / "data").rglob("*.parquet"))
    file.write_bytes(change(file.read_bytes()))
    (file.parent / f".{file.name}.crc").unlink(missing_ok=True)
    said = rf"data/store=b/.*{file.name} is damaged: it is cut or its bytes were changed"
    refused(spark, copied, DataLossError, said, tmp_path)


def test_a_damaged_file_is_named_to_a_store_that_is_there_too(spark: SparkSession, archive, copied, tmp_path):
    file = min((copied / "data").rglob("*.parquet"))
    file.write_bytes(without_end(file.read_bytes()))
    shutil.copytree(archive / "store", tmp_path / "store")
    with pytest.raises(DataLossError, match=rf"{file.name} is damaged"):
        restore_store(copied, tmp_path / "store", spark)


def test_a_file_that_is_empty_or_gone(spark: SparkSession, archive, copied, tmp_path):
    file = min((copied / "data").rglob("*.parquet"))
    file.write_bytes(b"")
    refused(spark, copied, DataLossError, rf"data/store=b/.*{file.name} is empty", tmp_path)
    file.unlink()
    refused(spark, copied, DataLossError, rf"data/store=b/.*{file.name} is missing", tmp_path)
    with pytest.raises(DataLossError, match="is missing"):
        archive_store(archive / "store", copied, spark)


@pytest.mark.parametrize("field", ["messages", "placeholders", "size_bytes"])
def test_a_manifest_that_counts_otherwise(spark: SparkSession, copied, tmp_path, field):
    path = copied / "_manifest/00000002.json"
    fields = json.loads(path.read_text())
    path.write_text(json.dumps(fields | {field: fields[field] + 1}))
    refused(spark, copied, DataLossError, r"run 2 does not hold what its manifest names", tmp_path)


def test_a_file_that_no_manifest_names(spark: SparkSession, archive, copied, tmp_path):
    path = copied / "_manifest/00000002.json"
    fields = json.loads(path.read_text())
    kept = path.read_text()
    path.write_text(json.dumps(fields | {"files": fields["files"][1:]}))
    refused(spark, copied, ConfigError, "is in no manifest of the archive", tmp_path)
    path.unlink()
    refused(spark, copied, ConfigError, "is in no manifest of the archive", tmp_path)
    with pytest.raises(ConfigError, match="is in no manifest of the archive"):
        archive_store(archive / "store", copied, spark)
    path.write_text(kept)
    (copied / "_manifest/00000001.json").unlink()
    refused(spark, copied, ConfigError, r"_manifest/00000001.json is missing", tmp_path)


def test_names_that_readers_of_folders_take_for_one_number(spark: SparkSession, tmp_path):
    store = put(tmp_path / "store", 10)
    archive_store(store, tmp_path / "archive", spark, name="1")
    for name in ("01", "1.0", "1e0"):
        with pytest.raises(InvalidArgumentError, match=r"takes .* for the same number"):
            archive_store(store, tmp_path / "archive", spark, name=name)
    archive_store(put(tmp_path / "other", 10, word="o"), tmp_path / "archive", spark, name="2")
    assert spark.read.parquet(str(tmp_path / "archive/data")).groupBy("store").count().count() == 2


def test_a_restore_only_reads_its_archive(spark: SparkSession, archive, copied, tmp_path):
    # As an archive that was interrupted before its files were moved leaves it.
    run = json.loads((copied / "_manifest/00000002.json").read_text())
    for name in run["files"]:
        staged = copied / "_staged/00000002" / name
        staged.parent.mkdir(parents=True, exist_ok=True)
        (copied / "data" / name).rename(staged)
    before = sorted(path.relative_to(copied) for path in copied.rglob("*"))
    assert restore_store(copied, tmp_path / "again", spark, apply=True, sizes=NEW_SIZES).messages == 100
    assert content(tmp_path / "again") == content(archive / "store")
    assert sorted(path.relative_to(copied) for path in copied.rglob("*")) == before
