"""Index files are rebuilt from the records of the log alone, byte for byte, and found in as RocketMQ does."""

from __future__ import annotations

import mmap

import pytest

from seglog.storage.format.index.index import is_index_file_name, key_hash
from seglog.storage.format.index.index_geometry import index_damage, infer_index_geometry
from seglog.storage.format.index.index_keys import IndexedRecord, record_keys
from seglog.storage.format.index.index_rows import key_rows
from seglog.storage.format.index.index_view import IndexView
from tests.support.material.golden import config_names, expected, golden_names, shared
from tests.support.material.index_files import build_index_files, indexes_tags, select_from_files
from tests.support.material.log_records import iter_log

INTACT = golden_names(damaged=False)
CHUNK_BYTES = 1 << 22


@pytest.fixture(scope="module")
def store(request):
    return shared(request.param)


@pytest.fixture(scope="module")
def records(store):
    return [
        IndexedRecord(
            record.phy_offset,
            record.row.store_timestamp_ms,
            record.row.sys_flag,
            record.topic,
            record.properties,
        )
        for record in iter_log(store)
    ]


@pytest.fixture(scope="module")
def buffers(store):
    folder = store / "index"
    paths = sorted(folder.iterdir()) if folder.exists() else []
    assert all(is_index_file_name(path.name) for path in paths)
    opened = []
    for path in paths:
        with path.open("rb") as file:
            opened.append(memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)))
    return opened


def indexes_the_tags_of(name):
    return name != "real-conf"  # the only store of 5.3.3; 5.4.0 began to


@pytest.mark.parametrize("store", [*INTACT, *config_names()], indirect=True)
def test_rebuilt_files_equal_those_of_rocketmq(store, records, buffers):
    if not buffers:
        assert not records
        return
    geometry = infer_index_geometry(buffers[0])
    views = [IndexView(buffer, geometry) for buffer in buffers]
    assert [index_damage(view) for view in views] == [None] * len(views)
    told = [tags for view in views if (tags := indexes_tags(view, records)) is not None]
    assert told == [indexes_the_tags_of(store.name)] * len(views)
    rows = key_rows(records, tags=indexes_the_tags_of(store.name))
    rebuilt = list(build_index_files(rows, geometry))
    assert len(rebuilt) == len(buffers)
    for mine, real in zip(rebuilt, buffers, strict=True):
        for at in range(0, len(real), CHUNK_BYTES):
            assert mine[at : at + CHUNK_BYTES] == real[at : at + CHUNK_BYTES], f"at {at}"


@pytest.mark.parametrize("store", [*INTACT, *config_names()], indirect=True)
def test_every_key_leads_to_its_record(store, records, buffers):
    views = [IndexView(buffer, infer_index_geometry(buffer)) for buffer in buffers]
    for record in records:
        for key in record_keys(
            record.topic, record.properties, record.sys_flag, tags=indexes_the_tags_of(store.name)
        ):
            found = select_from_files(reversed(views), key_hash(key), limit=1000)
            assert record.phy_offset in found
            at_its_time = select_from_files(
                reversed(views),
                key_hash(key),
                begin_ms=record.store_timestamp_ms,
                end_ms=record.store_timestamp_ms,
                limit=1000,
            )
            assert record.phy_offset in at_its_time
            assert set(at_its_time) <= set(found)


@pytest.mark.parametrize("store", INTACT, indirect=True)
def test_as_many_records_are_found_as_the_real_store_found(store, buffers):
    views = [IndexView(buffer, infer_index_geometry(buffer)) for buffer in buffers]
    answers = [
        (f"{line['topic']}#{key}", hits if hits > 0 else -hits - 1)
        for line in expected(store.name)
        for key, hits in line.get("keyFound", {}).items()
    ]
    assert [
        (key, len(select_from_files(reversed(views), key_hash(key)))) for key, _hits in answers
    ] == answers
