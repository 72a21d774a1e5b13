"""What a check says of a store of controller mode."""

from __future__ import annotations

from dataclasses import replace

import pytest

from seglog import MessageStore
from seglog.doctor.check import check_store
from seglog.storage.format.checkpoint import decode_checkpoint, encode_checkpoint


@pytest.fixture
def root(tmp_path):
    """A store of 8 messages."""
    with MessageStore.open(tmp_path / "s", small=True) as store:
        for _ in range(8):
            store.put("T", b"x" * 100)
    return tmp_path / "s"


def found(root):
    return {
        finding.code: finding for finding in check_store(root).findings if finding.code.startswith("epoch")
    }


def confirm(root, phy_offset):
    path = root / "checkpoint"
    checkpoint = replace(decode_checkpoint(path.read_bytes()), confirm_phy_offset=phy_offset)
    path.write_bytes(encode_checkpoint(checkpoint))


def test_a_store_without_epochs_has_none_of_these_findings(root):
    confirm(root, 100)
    assert found(root) == {}


def test_whole_epochs_and_a_confirmed_log_are_as_they_should_be(root):
    confirm(root, check_store(root).end_phy_offset)
    (root / "epochFileCheckpoint").write_bytes(b"1\n0\n1-0\n")
    assert found(root) == {}


def test_a_tail_behind_the_confirmed_offset_is_named_with_its_epoch(root):
    end = check_store(root).end_phy_offset
    confirm(root, end - 300)
    (root / "epochFileCheckpoint").write_bytes(b"2\n0\n1-0\n4-100\n")
    finding = found(root)["epoch-tail"]
    assert finding.expected == f"confirmed: {end - 300}"
    assert finding.found == "300 bytes of the log behind it, in epoch 4"


def test_an_epoch_behind_the_end_of_the_log_is_named(root):
    (root / "epochFileCheckpoint").write_bytes(b"2\n0\n1-0\n4-1000000\n")
    assert found(root)["epoch-beyond-log"].found == "epoch 4 begins at 1000000"


def test_a_damaged_file_counts_by_its_backup_and_without_one_is_a_warning(root):
    (root / "epochFileCheckpoint").write_bytes(b"1\n77\n1-0\n")
    assert found(root)["epoch-damaged"].found == "77"
    (root / "epochFileCheckpoint.bak").write_bytes(b"1\n0\n1-1000000\n")
    assert list(found(root)) == ["epoch-backup-only", "epoch-beyond-log"]
    (root / "epochFileCheckpoint").unlink()
    assert list(found(root)) == ["epoch-backup-only", "epoch-beyond-log"]
