"""A file that the user names is made outside of the store, and written by the descriptor that made it."""

from __future__ import annotations

from typing import Any

import pytest

from seglog.errors import InvalidArgumentError
from seglog.storage.files.output_path import new_file_outside
from seglog.storage.files.store_root import StoreRoot
from tests.support.material import golden


@pytest.fixture
def root(tmp_path):
    return golden.extract("basic", tmp_path)


def test_what_is_written_goes_to_the_file_that_was_made(root, tmp_path):
    log = root / "commitlog" / ("0" * 20)
    paper, moved = tmp_path / "papers" / "paper.json", tmp_path / "moved.json"
    before = golden.tree_digest(root)
    with new_file_outside(StoreRoot(root), paper) as file:
        paper.rename(moved)
        paper.symlink_to(log)
        file.write(b"text")
    assert moved.read_bytes() == b"text"
    assert golden.tree_digest(root) == before


def fail_in(root, paper, before_it):
    """Makes a file, does something, and fails."""
    with new_file_outside(StoreRoot(root), paper):
        before_it()
        raise OSError("the disk is gone")


def test_an_error_leaves_no_file_and_touches_no_other(root, tmp_path):
    paper, mine = tmp_path / "paper.json", tmp_path / "mine"
    mine.write_text("mine")
    with pytest.raises(OSError, match="gone"):
        fail_in(root, paper, paper.stat)
    assert not paper.exists()
    with pytest.raises(OSError, match="gone"):
        fail_in(root, paper, lambda: mine.replace(paper))
    assert paper.read_text() == "mine"


class _Switch:
    """The folders that a store follows: none; who asks for them comes too late."""

    def __init__(self, switch):
        self._switch = switch

    def __iter__(self):
        self._switch()
        return iter(())


def test_a_path_that_leads_into_the_store_by_then_is_refused(root, tmp_path):
    papers, files = tmp_path / "papers", StoreRoot(root)
    papers.mkdir()
    (root / "config").mkdir(exist_ok=True)

    def switch():
        if not papers.is_symlink():
            papers.rmdir()
            papers.symlink_to(root / "config")

    switching: Any = _Switch(switch)
    files.follow = switching
    before = golden.tree_digest(root)
    with (
        pytest.raises(InvalidArgumentError, match="in the store"),
        new_file_outside(files, papers / "paper.json"),
    ):
        pytest.fail("it was made")
    assert papers.is_symlink()
    assert golden.tree_digest(root) == before
