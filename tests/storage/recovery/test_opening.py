"""Opening says clearly what cannot be opened, and then has changed nothing; a store keeps its own ways."""

from __future__ import annotations

import os
import shutil
import subprocess

import pytest

from seglog.errors import (
    ClosedError,
    InvalidArgumentError,
    NotAStoreError,
    NotFoundError,
    ReadOnlyError,
    SeglogError,
    StoreError,
    UnsupportedStoreError,
)
from seglog.storage.directory.geometry import StoreGeometry
from seglog.storage.files.files import RealFiles
from seglog.storage.store import MessageStore
from seglog.storage.survey.store_survey import survey
from tests.support.material.golden import tree_digest
from tests.support.material.stores import SMALL, OpenStore, fill, read_all, served

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root may mount file systems")
SMALL_GEOMETRY = StoreGeometry(SMALL["segment_size_bytes"], SMALL["queue_file_size_bytes"])


def test_new_store_has_rocketmqs_lengths_and_takes_little_disk(tmp_path):
    with MessageStore.open(tmp_path / "store") as store:
        assert store.recovery.mode == "created"
        assert store.geometry == StoreGeometry(1 << 30, 6_000_000)
        store.put("T", b"x")
        lengths = {path.name: path.stat().st_size for path in store.path.glob("c*/**/0*") if path.is_file()}
        used = sum(path.stat().st_blocks * 512 for path in store.path.rglob("*"))
    assert lengths == {"0" * 20: 6_000_000} | lengths
    assert (tmp_path / "store" / "commitlog" / ("0" * 20)).stat().st_size == 1 << 30
    assert used < 20 << 20


def test_new_store_that_was_closed_at_once_opens_again(tmp_path):
    for mode in ("created", "normal", "normal"):
        with MessageStore.open(tmp_path / "store", **SMALL) as store:
            assert (store.recovery.mode, store.recovery.findings, store.queues()) == (mode, (), [])
            assert (store.min_phy_offset, store.max_phy_offset) == (0, 0)


def test_directories_above_the_store_are_made(tmp_path):
    MessageStore.open(tmp_path / "a" / "b" / "c", **SMALL).close()
    assert (tmp_path / "a" / "b" / "c" / "commitlog").is_dir()


def test_path_may_be_text_and_relative_and_survives_chdir(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with MessageStore.open("store", **SMALL) as store:
        monkeypatch.chdir("/")
        store.put("T", b"x")
        assert store.path == tmp_path / "store"
    assert not (tmp_path / "store" / "abort").exists()


def test_mode_tells_a_clean_stop_from_a_crash(tmp_path):
    store = MessageStore.open(tmp_path / "store", **SMALL)
    store.put("T", b"x")
    shutil.copytree(store.path, tmp_path / "killed")
    store.close()
    for name, mode in (("store", "normal"), ("killed", "abnormal")):
        with MessageStore.open(tmp_path / name) as again:
            assert (again.recovery.mode, again.recovery.records) == (mode, 1)
            assert again.recovery.end_phy_offset == again.max_phy_offset


@pytest.mark.parametrize(
    "name", ["commitlog/" + "0" * 20, "consumequeue/T/0/" + "0" * 20], ids=["segment", "queue file"]
)
def test_a_first_file_that_lost_its_length_says_nothing_of_lengths(tmp_path, name):
    MessageStore.open(tmp_path / "store", **SMALL).close()
    (tmp_path / "store" / name).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / "store" / name).touch()
    with MessageStore.open(tmp_path / "store", **SMALL) as store:
        assert store.put("T", b"x").queue_offset == 0
    found = survey(tmp_path / "store", RealFiles())
    assert (found.geometry, found.findings) == (
        SMALL_GEOMETRY,
        [],
    )


# ---------------------------------------------------------------------------------- what is no store


def _files(root, *names):
    for name in names:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"data")
    return root


# name: (makes the folder, what is asked for, the error)
REFUSED = {
    "missing": (lambda root: root / "none", {"create": False}, NotFoundError),
    "missing, to read": (lambda root: root / "none", {"read_only": True}, NotFoundError),
    "empty folder": (lambda root: root, {"create": False}, NotFoundError),
    "empty folder, to read": (lambda root: root, {"read_only": True}, NotFoundError),
    "a file": (lambda root: _files(root, "file") / "file", {}, NotAStoreError),
    "below a file": (lambda root: _files(root, "file") / "file" / "store", {}, StoreError),
    "a name with NUL": (lambda root: root / "a\0b", {}, SeglogError),
    "an empty text": (lambda _root: "", {}, SeglogError),
    "a name too long": (lambda root: root / ("x" * 300), {}, StoreError),
    "other things": (lambda root: _files(root, "photo.jpg", "notes.txt"), {}, NotAStoreError),
    "other things, to read": (lambda root: _files(root, "photo.jpg"), {"read_only": True}, NotAStoreError),
    "only config": (lambda root: _files(root, "config/x.json", "src/main.py"), {}, NotAStoreError),
    "DLedger": (lambda root: _files(root, "dledger-n0/data/0", "checkpoint"), {}, UnsupportedStoreError),
    "RocksDB": (
        lambda root: _files(root, f"commitlog/{'0' * 20}", "consumequeue/MANIFEST-000005"), {},
        UnsupportedStoreError,
    ),
    "new store with tiny segments": (
        lambda root: root / "new", {"segment_size_bytes": 100}, InvalidArgumentError,
    ),
    "new store with segments of no length": (
        lambda root: root / "new", {"segment_size_bytes": 0}, InvalidArgumentError,
    ),
    "new store with cut units": (
        lambda root: root / "new", {"queue_file_size_bytes": 50}, InvalidArgumentError,
    ),
}  # fmt: skip


@pytest.mark.parametrize(("make", "options", "error"), REFUSED.values(), ids=REFUSED)
def test_what_cannot_be_opened_is_refused_with_advice_and_nothing_changes(
    tmp_path, monkeypatch, make, options, error
):
    monkeypatch.chdir(tmp_path)  # where an empty text would make a store
    path = make(tmp_path)
    before = tree_digest(tmp_path)
    with pytest.raises(error) as refused:
        MessageStore.open(path, **options)
    assert refused.value.help
    assert "\0" not in str(refused.value)
    assert tree_digest(tmp_path) == before


@pytest.mark.parametrize("wrong", [{"segment_size_bytes": 8192}, {"queue_file_size_bytes": 400}])
def test_existing_store_keeps_its_lengths(tmp_path, wrong):
    with MessageStore.open(tmp_path / "store", **SMALL) as store:
        fill(store, 10)
    before = tree_digest(tmp_path)
    with pytest.raises(InvalidArgumentError, match="but the files of"):
        MessageStore.open(tmp_path / "store", **wrong)
    assert tree_digest(tmp_path) == before
    with MessageStore.open(tmp_path / "store", **SMALL) as again:
        assert again.geometry == SMALL_GEOMETRY


def test_store_emptied_of_files_takes_lengths_anew(tmp_path):
    MessageStore.open(tmp_path / "store", **SMALL).close()
    with MessageStore.open(tmp_path / "store", segment_size_bytes=8192) as store:
        assert store.geometry.segment_size_bytes == 8192
        store.put("T", b"x")


# ------------------------------------------------------------------------------------- record CRC


@pytest.mark.parametrize(("asked", "first"), [(None, True), (True, True), (False, False)])
def test_existing_store_keeps_its_way_with_record_crcs(tmp_path, asked, first):
    with MessageStore.open(tmp_path / "store", record_crc=asked, **SMALL) as store:
        assert store.record_crc is first
        store.put("T", b"x")
    with MessageStore.open(tmp_path / "store") as store:
        assert store.record_crc is first
    with MessageStore.open(tmp_path / "store", record_crc=not first) as store:
        assert store.record_crc is not first
        store.put("T", b"y")
        properties = [
            message.properties_raw.startswith(b"__CRC32#\x01") for message in read_all(store, "T", 0)
        ]
    assert properties == [first, not first]
    assert survey(tmp_path / "store", RealFiles()).findings == []


# ----------------------------------------------------------------------------- file systems that refuse


@pytest.fixture
def read_only_disk(tmp_path):
    """A folder whose file system can be made read-only, and the function that does it."""
    folder = tmp_path / "disk"
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8m", "none", folder], check=True)
    yield folder, lambda: subprocess.run(["mount", "-o", "remount,ro", folder], check=True)
    subprocess.run(["umount", "--lazy", folder], check=True)


@as_root
def test_read_only_disk_can_be_read_and_refuses_to_be_written(read_only_disk):
    folder, make_read_only = read_only_disk
    with MessageStore.open(folder / "store", **SMALL) as store:
        written = fill(store, 50)
    make_read_only()
    for path in (folder / "store", folder / "new"):
        with pytest.raises(ReadOnlyError) as refused:
            MessageStore.open(path)
        assert refused.value.help
    with MessageStore.open(folder / "store", read_only=True) as reader:
        assert sum(map(len, served(reader).values())) == len(written)


# -------------------------------------------------------------------------------------------- closed


def test_closed_store_says_so_whatever_is_asked(open_store: OpenStore):
    store = open_store()
    store.put("T", b"x")
    store.close()
    store.close()
    for call in (
        lambda: store.put("T", b"x"),
        lambda: store.put_batch("T", [b"x"]),
        lambda: store.append("T", 0, b"x", b"", 0),
        lambda: store.get("T", 0, 0),
        lambda: store.message_at(0),
        lambda: store.offset_by_time("T", 0, 0),
        lambda: store.wait_for("T", 0, 5, 1000),
        store.flush,
        store.refresh,
    ):
        with pytest.raises(ClosedError, match="was closed"):
            call()


def test_store_is_closed_by_its_with_block_also_after_an_error(tmp_path):
    with pytest.raises(ZeroDivisionError), MessageStore.open(tmp_path / "store", **SMALL):
        _ = 1 // 0
    assert not (tmp_path / "store" / "abort").exists()
    with MessageStore.open(tmp_path / "store") as again:
        assert again.recovery.mode == "normal"
