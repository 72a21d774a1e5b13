"""A RocksDB of a store that cannot be opened as it is: never called clean."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seglog.doctor.check import check_store, ending_of_check, verdict_on
from seglog.doctor.check.broker_start import Start
from seglog.errors import CorruptError, Ending
from seglog.storage.format.rocksdb_manifest import live_tables
from tests.support.material import rocksdb_stores
from tests.support.material.golden import tree_digest
from tests.support.material.rocksdb_stores import BROKERS, FILES, NAMES, QUEUE_FOLDERS
from tests.support.scale import scaled

ALL = (*NAMES, FILES, *BROKERS)


def manifest_of(folder):
    return folder / (folder / "CURRENT").read_text().strip()


def without_current(folder):
    (folder / "CURRENT").unlink()


def empty_current(folder):
    (folder / "CURRENT").write_bytes(b"")


def current_without_end(folder):
    (folder / "CURRENT").write_bytes((folder / "CURRENT").read_bytes().rstrip())


def without_manifest(folder):
    manifest_of(folder).unlink()


def empty_manifest(folder):
    manifest_of(folder).write_bytes(b"")


def garbage_manifest(folder):
    path = manifest_of(folder)
    path.write_bytes(b"\xa5" * path.stat().st_size)


def cut_manifest(folder):
    path = manifest_of(folder)
    path.write_bytes(path.read_bytes()[:-3])


def tables(folder):
    return sorted(folder.glob("*.sst"))


def without_table(folder):
    tables(folder)[0].unlink()


def cut_table(folder):
    path = tables(folder)[-1]
    path.write_bytes(path.read_bytes()[:-1])


def table_without_end(folder):
    path = tables(folder)[0]
    path.write_bytes(path.read_bytes()[:-8] + bytes(8))


OF_ANY = (
    without_current, empty_current, current_without_end, without_manifest, empty_manifest, garbage_manifest,
    cut_manifest,
)  # fmt: skip
OF_TABLES = (without_table, cut_table, table_without_end)


@pytest.mark.parametrize("name", ALL)
def test_a_rocksdb_of_rocketmq_is_whole(name, tmp_path):
    report = check_store(rocksdb_stores.extract(name, tmp_path))
    assert not [one for one in report.findings if one.code == "rocksdb-damaged"]


@pytest.mark.parametrize("harm", OF_ANY + OF_TABLES)
@pytest.mark.parametrize("name", NAMES)
def test_whether_rocketmq_starts_on_a_damaged_rocksdb_is_not_known(name, harm, tmp_path):
    root = rocksdb_stores.extract(name, tmp_path)
    harm(root / QUEUE_FOLDERS[name])
    before = tree_digest(root)
    report = check_store(root)
    assert not report.is_clean
    assert ending_of_check(report) is Ending.FINDINGS
    (found,) = (one for one in report.findings if one.code == "rocksdb-damaged")
    assert found.file.startswith(f"{QUEUE_FOLDERS[name]}/")
    verdict = verdict_on(report)
    assert verdict.start.start is Start.UNKNOWN
    assert verdict.lost == 0
    assert tree_digest(root) == before


@pytest.mark.parametrize("harm", OF_ANY)
@pytest.mark.parametrize(("name", "folder"), [
    (FILES, "rocksdbstore"), ("broker-rdb54", "config/rdb"), ("broker-rocks54", "config/topics"),
])  # fmt: skip
def test_every_rocksdb_of_a_store_is_looked_at(name, folder, harm, tmp_path):
    root = rocksdb_stores.extract(name, tmp_path)
    harm(root / folder)
    report = check_store(root)
    assert [one.file.rpartition("/")[0] for one in report.findings if one.code == "rocksdb-damaged"] == [
        folder
    ]
    assert verdict_on(report).start.start is Start.UNKNOWN


@settings(max_examples=scaled(40, 400), deadline=None)
@given(st.data())
def test_no_flipped_bit_of_a_manifest_goes_unseen(data):
    whole = manifest_of(_folder(data)).read_bytes()
    at = data.draw(st.integers(0, 8 * len(whole) - 1))
    harmed = bytearray(whole)
    harmed[at // 8] ^= 1 << at % 8
    assert live_tables(whole)
    with pytest.raises(CorruptError):
        live_tables(harmed)


@settings(max_examples=scaled(60, 600), deadline=None)
@given(st.binary(max_size=200))
def test_no_bytes_make_the_reader_of_a_manifest_fail_in_another_way(data):
    try:
        live_tables(data)
    except CorruptError:
        return


def _folder(data):
    name = data.draw(st.sampled_from(NAMES))
    return rocksdb_stores.unpacked() / name / QUEUE_FOLDERS[name]
