"""A store whose log is gone as a whole is not opened: its offsets would be given again."""

from __future__ import annotations

import shutil

import pytest

from seglog.doctor.check import check_store
from seglog.errors import FileKindError, LogMissingError
from seglog.storage.findings import Severity
from seglog.storage.store import MessageStore
from seglog.storage.verify import verify_store
from tests.support.golden import extract, tree_digest
from tests.support.stores import SMALL, fill, new_clock, served


@pytest.fixture(params=["folder", "files"])
def gone(request, tmp_path):
    """A store of which the folder of the log is gone, or all that was in it; and the log."""
    root = tmp_path / "store"
    with MessageStore.open(root, clock=new_clock(), **SMALL) as store:
        fill(store, 20)
    shutil.move(root / "commitlog", tmp_path / "log")
    if request.param == "files":
        (root / "commitlog").mkdir()
    return root, tmp_path / "log"


@pytest.mark.parametrize("read_only", [True, False])
def test_it_is_refused_and_nothing_is_changed(gone, read_only):
    root, log = gone
    before = tree_digest(root)
    with pytest.raises(LogMissingError, match="commit-log files expected, found none, but"):
        MessageStore.open(root, read_only=read_only)
    with pytest.raises(LogMissingError):
        verify_store(root)
    assert tree_digest(root) == before
    shutil.rmtree(root / "commitlog", ignore_errors=True)
    shutil.move(log, root / "commitlog")
    with MessageStore.open(root, clock=new_clock(), read_only=read_only) as store:
        assert sum(map(len, served(store).values())) == 20


def test_check_calls_it_a_loss(gone):
    (found,) = (one for one in check_store(gone[0]).findings if one.severity is not Severity.NOTE)
    assert (found.code, found.severity) == ("log-empty", Severity.LOSS)


def test_a_link_for_it_that_nobody_named_is_told(gone):
    root, log = gone
    shutil.rmtree(root / "commitlog", ignore_errors=True)
    (root / "commitlog").symlink_to(log)
    for read_only in (True, False):
        with pytest.raises(FileKindError, match="commitlog is a link"):
            MessageStore.open(root, read_only=read_only)
    with MessageStore.open(root, read_only=True, follow=("commitlog",)) as store:
        assert sum(map(len, served(store).values())) == 20


def test_a_store_that_never_had_a_message_opens(tmp_path):
    MessageStore.open(tmp_path / "store", clock=new_clock()).close()
    shutil.rmtree(tmp_path / "store" / "commitlog", ignore_errors=True)
    with MessageStore.open(tmp_path / "store", clock=new_clock()) as store:
        assert store.put("T", b"x").queue_offset == 0


def test_queues_that_were_moved_away_let_a_new_log_begin(tmp_path):
    root = extract("basic", tmp_path)
    shutil.rmtree(root / "commitlog")
    shutil.move(root / "consumequeue", tmp_path / "queues")
    with MessageStore.open(root, clock=new_clock()) as store:
        assert store.put("T", b"x").queue_offset == 0
