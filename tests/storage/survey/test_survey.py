"""A survey names what is wrong with files that nothing is lost with: checkpoint, config, index."""

from __future__ import annotations

import os
import shutil
from collections import Counter
from pathlib import Path

import pytest
from typing_extensions import override

from seglog.storage.directory.directory_listing import list_store
from seglog.storage.files.files import RealFiles
from seglog.storage.findings.code import Severity
from seglog.storage.format.checkpoint import Checkpoint, encode_checkpoint
from seglog.storage.format.index.index import INDEX_ENTRY, INDEX_HEADER
from seglog.storage.index_check.index_check import check_index
from seglog.storage.store import MessageStore
from seglog.storage.survey.store_survey import survey
from tests.support.material import golden
from tests.support.material.stores import SEGMENT_BYTES, SMALL, SMALL_INDEX, fill, new_clock
from tests.support.rows import every_row

NOW_MS = new_clock().now_ms()


@pytest.fixture(scope="module")
def original(module_folders):
    root = module_folders.mktemp("original") / "store"
    with MessageStore.open(root, clock=new_clock(), record_crc=False, **SMALL, **SMALL_INDEX) as store:
        fill(store, 40)
    (root / "config").mkdir()
    (root / "config" / "topics.json").write_text("{}")
    return root


@pytest.fixture
def root(original, memory_path: Path):
    return shutil.copytree(original, memory_path / "store")


def full_survey(root):
    found = survey(root, RealFiles())
    found.findings += check_index(found, RealFiles())
    return found


def index_file(root):
    (path,) = (root / "index").iterdir()
    return path


def change(path, at, data):
    content = bytearray(path.read_bytes())
    content[at : at + len(data)] = data
    path.write_bytes(content)


def flip_key(root):
    path = root / "commitlog" / f"{0:020d}"
    at = path.read_bytes().index(b"KEYS\x01k3\x02") + 5
    change(path, at, b"j")


def index_entry(root, number):
    return INDEX_HEADER.size_bytes + 50 * 4 + number * INDEX_ENTRY.size_bytes


def checkpoint(root, **fields):
    (root / "checkpoint").write_bytes(encode_checkpoint(Checkpoint(**fields)))


# name: (damage, codes that must be named)
DAMAGES = {
    "nothing": (lambda _r: None, set()),
    "no checkpoint": (lambda r: (r / "checkpoint").unlink(), {"checkpoint-missing"}),
    "empty checkpoint": (lambda r: (r / "checkpoint").write_bytes(b""), {"checkpoint-size"}),
    "zero checkpoint": (lambda r: (r / "checkpoint").write_bytes(bytes(4096)), {"checkpoint-behind"}),
    "old checkpoint": (lambda r: checkpoint(r, physic_timestamp_ms=1), {"checkpoint-behind"}),
    "checkpoint of the future": (
        lambda r: checkpoint(r, physic_timestamp_ms=NOW_MS + 1), {"checkpoint-ahead"},
    ),
    "checkpoint behind the log": (
        lambda r: checkpoint(r, physic_timestamp_ms=NOW_MS, confirm_phy_offset=1 << 40), {"checkpoint-ahead"},
    ),
    "checkpoint of garbage": (
        lambda r: (r / "checkpoint").write_bytes(b"\xff" * 4096), {"checkpoint-ahead"},
    ),
    "config file of garbage": (
        lambda r: (r / "config" / "topics.json").write_bytes(b"{nonsense"), {"config-damaged"},
    ),
    "empty config file": (lambda r: (r / "config" / "topics.json").write_bytes(b""), {"config-damaged"}),
    "no index": (lambda r: shutil.rmtree(r / "index"), {"index-missing"}),
    "stray file beside the index": (
        lambda r: (r / "index" / "README").write_bytes(b"x"), {"index-file-stray"},
    ),
    "index of no length": (lambda r: index_file(r).write_bytes(b""), {"index-damaged"}),
    "index header of garbage": (lambda r: change(index_file(r), 0, b"\xff" * 40), {"index-damaged"}),
    "index entry that leads to no record": (
        lambda r: change(index_file(r), index_entry(r, 5) + 4, (7).to_bytes(8, "big")),
        {"index-entry-stray"},
    ),
    "flipped bit in a key": (flip_key, {"record-keys"}),
}  # fmt: skip


@pytest.mark.parametrize(("damage", "codes"), DAMAGES.values(), ids=DAMAGES)
def test_damage_of_derived_files_is_named_and_costs_nothing(root, damage, codes):
    damage(root)
    found = full_survey(root)
    told = [finding for finding in found.findings if finding.code != "log-spare"]
    assert codes <= {finding.code for finding in told} <= codes | {"index-short", "record-keys"}
    assert all(finding.severity is not Severity.LOSS for finding in told)
    with MessageStore.open(root, clock=new_clock()) as store:
        assert sum(queue.max_offset - queue.min_offset for queue in store.queues()) == 40


DEVIATIONS = {
    "d-nocheckpoint": {"checkpoint-missing"},
    "d-stalecheckpoint": {"checkpoint-behind"},
    "d-stalecheckpoint-halt": {"checkpoint-behind"},
    "d-noindex": {"index-missing"},
    "d-indexgarbage": {"index-damaged"},
    "d-indexgarbage-halt": {"index-damaged"},
    "d-propflip": {"record-keys"},
    "d-trunclast": {"checkpoint-ahead", "index-entry-stray", "log-tail-lost", "messages-lost"},
}


def test_damage_that_no_checksum_covers_is_named():
    with every_row() as row:
        for name, codes in DEVIATIONS.items():
            with row(name, codes):
                found = full_survey(golden.shared(name))
                assert codes <= {finding.code for finding in found.findings}


def test_intact_store_has_nothing_to_be_named_however_closely_it_is_looked_at():
    with every_row() as row:
        for name in golden.golden_names(damaged=False):
            with row(name):
                found = full_survey(golden.shared(name))
                assert {finding.code for finding in found.findings} <= {"log-spare"}


def test_what_tombstones_stand_in_for_is_not_told_again_by_the_index(root):
    last = max((root / "commitlog").iterdir())
    content = last.read_bytes()
    at = len(content.rstrip(b"\0"))
    last.write_bytes(content[: at // 2].ljust(SEGMENT_BYTES, b"\0"))
    with MessageStore.open(root, clock=new_clock(), **SMALL_INDEX) as store:
        assert "messages-lost" in {finding.code for finding in store.recovery.findings}
    again = full_survey(root)
    assert {finding.code for finding in again.findings} == {"tombstones"}


class OpenedFiles(RealFiles):
    """Notes which files are opened."""

    def __init__(self):
        self.opened = Counter()

    @override
    def open(self, path, *, writable):
        self.opened[path] += 1
        return super().open(path, writable=writable)


@pytest.fixture
def of_one_file(tmp_path):
    """A store of one log file whose length was not written down, as RocketMQ leaves it."""
    root = tmp_path / "store"
    with MessageStore.open(
        root, clock=new_clock(), segment_size_bytes=1 << 20, queue_file_size_bytes=20_000, **SMALL_INDEX
    ) as store:
        fill(store, 200, body_bytes=200)
    (root / "seglog" / "lengths.conf").unlink()
    return root


def test_queues_that_say_what_the_log_says_are_opened_once(of_one_file):
    files = OpenedFiles()
    found = survey(of_one_file, files)
    queue_files = sorted((of_one_file / "consumequeue").rglob("0" * 20))
    assert len(queue_files) == 4
    assert [files.opened[path] for path in queue_files] == [1] * 4
    assert (found.geometry.segment_size_bytes, found.geometry.is_segment_known) == (1 << 20, True)


@pytest.mark.parametrize("pages", [1, 5, 14])
def test_a_sole_log_file_that_was_cut_at_a_page_is_held_against_its_queues(pages, of_one_file):
    (log,) = (of_one_file / "commitlog").iterdir()
    os.truncate(log, pages * 4096)
    found = survey(of_one_file, RealFiles())
    assert not found.geometry.is_segment_known
    assert found.lengths == list_store(RealFiles(), of_one_file).lengths
    assert found.lengths.segment.at_least_bytes > pages * 4096
