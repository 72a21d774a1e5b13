"""A store at an address is read as the same store in a folder."""

from __future__ import annotations

import sys

import pyarrow as pa
import pytest

from seglog.errors import MissingDependencyError, NotFoundError, ReadOnlyError
from seglog.spark.remote_files import RemoteFiles, locate
from seglog.spark.source.read.read_plan import plan_pieces, read_piece
from seglog.spark.source.values.columns import usual_columns
from seglog.spark.source.wanted.options import Options
from seglog.storage.files.files import RealFiles
from seglog.storage.survey.store_survey import survey
from tests.support.material.golden import extract


def rows(path, **options):
    parsed = Options((path,), max_partition_bytes=30_000, **options)
    pieces = plan_pieces(parsed)
    batches = [
        batch for piece in pieces for batch in read_piece(piece, parsed, parsed.selection, usual_columns())
    ]
    return pa.Table.from_batches(batches).to_pylist()


@pytest.mark.parametrize("access_path", ["scan", "cq"])
def test_an_address_gives_the_same_rows(tmp_path, access_path):
    root = extract("roll", tmp_path)
    wanted = {"topics": frozenset({"TopicA"}), "access_path": access_path}
    found = rows(root.as_uri(), **wanted)
    assert found == rows(str(root), **wanted)
    assert len(found) > 50


def test_a_survey_sees_the_same(tmp_path):
    root = extract("d-zeropage-last-halt", tmp_path)
    files, there = locate(root.as_uri())
    assert survey(there, files).findings == survey(root, RealFiles()).findings


def test_nothing_is_written(tmp_path):
    files, root = locate(tmp_path.as_uri())
    assert isinstance(files, RemoteFiles)
    (tmp_path / "file").write_bytes(b"content")
    with pytest.raises(ReadOnlyError):
        files.write_file(root / "x", b"")
    with pytest.raises(ReadOnlyError):
        files.lock(root)
    with pytest.raises(ReadOnlyError):
        files.open(root / "file", writable=True)
    opened = files.open(root / "file", writable=False)
    for write in (lambda: opened.write_at(b"x", 0), lambda: opened.set_size(1), lambda: opened.reserve(0, 1)):
        with pytest.raises(ReadOnlyError):
            write()
    opened.close()
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_files_and_folders_that_are_not_there(tmp_path):
    files, root = locate(tmp_path.as_uri())
    (tmp_path / "file").write_bytes(b"content")
    assert files.list_dir(root / "none") == []
    assert not files.exists(root / "none")
    assert files.exists(root / "file")
    assert files.is_dir(root)
    assert not files.is_dir(root / "file")
    assert files.read_file(root / "file") == b"content"
    with pytest.raises(FileNotFoundError):
        files.open(root / "none", writable=False)


def test_a_store_in_memory_through_fsspec(tmp_path):
    fsspec = pytest.importorskip("fsspec")
    root = extract("comp", tmp_path)
    fsspec.filesystem("memory").put(str(root), "/stores/comp", recursive=True)
    assert rows("memory://stores/comp") == rows(str(root))
    with pytest.raises(NotFoundError, match="nothing-knows"):
        locate("nothing-knows://this")


def test_without_fsspec_it_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "fsspec", None)
    with pytest.raises(MissingDependencyError, match="cannot read nothing-knows://this") as caught:
        locate("nothing-knows://this")
    assert "fsspec" in caught.value.help
