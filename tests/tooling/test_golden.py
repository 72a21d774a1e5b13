"""The golden stores unpack to the bytes that were packed, and the digests see every change."""

from __future__ import annotations

import hashlib
import time

import pytest

from tests.support.material.golden import (
    config_names,
    expected,
    extract,
    file_digest,
    golden_names,
    meta,
    shared,
    tree_digest,
)
from tests.support.rows import every_row

INTACT = {
    "basic", "basic-halt", "big", "broker-store", "comp", "delay", "empty", "idxroll", "innerbatch",
    "ipv6", "outerbatch", "propcrc", "roll", "roll-halt", "tx",
}  # fmt: skip


def test_all_intact_stores_are_there():
    assert set(golden_names(damaged=False)) == INTACT


def test_damaged_and_intact_make_all():
    assert sorted(golden_names(damaged=True) + golden_names(damaged=False)) == golden_names()
    assert len(golden_names(damaged=True)) == 28


def test_a_store_unpacks_to_the_files_that_were_packed():
    with every_row() as row:
        for name in golden_names() + config_names():
            with row(name):
                before = {file: tuple(size_and_sha) for file, size_and_sha in meta(name)["before"].items()}
                assert file_digest(shared(name), is_exact=True) == before


def test_a_copy_of_a_sparse_store_takes_little_disk_and_time(tmp_path):
    started = time.process_time()
    store = extract("broker-store", tmp_path)
    assert time.process_time() - started < 20
    files = [path.stat() for path in store.rglob("*") if path.is_file()]
    assert sum(file.st_size for file in files) > 1 << 30
    assert sum(file.st_blocks * 512 for file in files) < 16 << 20


def test_answers_begin_with_the_store_line():
    with every_row() as row:
        for name in golden_names():
            with row(name):
                kinds = [line["kind"] for line in expected(name)]
                assert kinds[0] in {"store", "openFailed"}
                assert set(kinds) <= {"store", "queue", "msg", "log", "walkStop", "openFailed"}


def test_unknown_store_is_named_with_the_known_ones(tmp_path):
    with pytest.raises(LookupError, match=r"no golden store 'rol'; there are basic, .*, roll, "):
        extract("rol", tmp_path)


def test_config_stores_have_no_answers():
    with pytest.raises(LookupError, match="'real-conf' has no after-open"):
        expected("real-conf")


def test_extract_does_not_mix_two_stores(tmp_path):
    extract("empty", tmp_path)
    with pytest.raises(FileExistsError):
        extract("empty", tmp_path)


@pytest.mark.parametrize(
    "damage",
    [
        pytest.param(lambda root: (root / "file").write_bytes(b"\0" * 5000 + b"\1"), id="one byte"),
        pytest.param(lambda root: (root / "file").write_bytes(b"\0" * 5002), id="one byte longer"),
        pytest.param(lambda root: (root / "other").touch(), id="empty file added"),
        pytest.param(lambda root: (root / "other").mkdir(), id="empty folder added"),
        pytest.param(lambda root: (root / "file").rename(root / "moved"), id="file renamed"),
    ],
)
def test_digest_sees(damage, tmp_path):
    (tmp_path / "file").write_bytes(b"\0" * 5001)
    digest = tree_digest(tmp_path)
    damage(tmp_path)
    assert tree_digest(tmp_path) != digest


@pytest.mark.parametrize(
    "pieces",
    [
        pytest.param([], id="empty"),
        pytest.param([(0, b"abc")], id="dense"),
        pytest.param([(3 << 20, b"abc")], id="hole first"),
        pytest.param([(0, b"abc"), (5 << 20, b"def"), (9 << 20, b"")], id="holes between and last"),
        pytest.param([(0, b"\0" * 70_000), (1 << 20, b"\0")], id="written zeros"),
    ],
)
def test_digest_of_a_sparse_file_is_that_of_its_bytes(pieces, tmp_path):
    path = tmp_path / "sparse"
    with path.open("wb") as file:
        for position, data in pieces:
            file.truncate(position)
            file.seek(position)
            file.write(data)
    data = path.read_bytes()
    assert tree_digest(tmp_path) == {"sparse": (len(data), hashlib.sha256(data).hexdigest())}
