"""Commits go on while a large offset table is copied and saved, and none of them is lost."""

from __future__ import annotations

import json
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from seglog.broker.offsets.offsets import PORTION_OFFSETS, ConsumerOffsets
from seglog.clock import VirtualClock
from seglog.storage.format.config.config_json import decode_config
from seglog.storage.small_files.config_file import ConfigFile
from tests.support.crash.crash_files import CrashFiles
from tests.support.machine.patience import patience_s
from tests.support.scale import scaled

PATH = Path("/store/config/consumerOffset.json")
OFFSETS = scaled(100_000, 400_000)
CALLS_OF_A_COPY = 8
"""Of the interpreter, to copy the offsets of one key."""
WAIT_S = patience_s(30)


class Counted:
    """A lock that counts what one thread calls while it holds it, and lets others in when it gives it back.

    Args:
        between: Called after each release by that thread.
    """

    def __init__(self, between):
        self._lock = threading.Lock()
        self._between = between
        self._owner = threading.get_ident()
        self.calls = 0
        self.most_calls = 0
        self.releases = 0

    def __enter__(self):
        self._lock.acquire()
        if threading.get_ident() == self._owner:
            self.calls = 0
            sys.setprofile(self._count)

    def __exit__(self, *_error):
        sys.setprofile(None)
        self._lock.release()
        if threading.get_ident() == self._owner:
            self.most_calls = max(self.most_calls, self.calls)
            self.releases += 1
            self._between()

    def _count(self, _frame, event, _argument):
        self.calls += event.endswith("call")


def open_table(files):
    return ConsumerOffsets(ConfigFile(files, PATH), VirtualClock())


def files_of(table):
    files = CrashFiles()
    files.make_dirs(PATH.parent)
    files.write_file(PATH, json.dumps({"offsetTable": table}).encode(), sync=True)
    return files


def stored_offsets(files):
    table = decode_config(files.read_file(PATH))
    assert isinstance(table, dict)
    return table["offsetTable"]


@pytest.mark.parametrize("queues_of_a_group", [1, 4])
def test_finding_10_of_the_broker_commits_go_on_while_a_large_table_is_saved(queues_of_a_group):
    groups = OFFSETS // queues_of_a_group
    queues = {str(queue_id): 1 for queue_id in range(queues_of_a_group)}
    files = files_of({f"T@g{number}": queues for number in range(groups)})
    table = open_table(files)
    wanted = {}

    def commit():
        """Another thread commits for a group that was copied, and one that was not."""
        for number in (lock.releases, groups - lock.releases):
            pool.submit(table.commit, f"g{number}", "T", 0, 7).result(WAIT_S)
            wanted[f"T@g{number}"] = 7

    with ThreadPoolExecutor(1) as pool:
        table.commit("g0", "T", 0, 5)
        lock = table._lock = Counted(commit)
        table.persist()
        releases = lock.releases
        assert table.is_dirty
        table.persist()
    assert releases >= OFFSETS / PORTION_OFFSETS
    assert lock.most_calls <= CALLS_OF_A_COPY * PORTION_OFFSETS
    stored = stored_offsets(files)
    assert list(stored) == [f"T@g{number}" for number in range(groups)]
    before_second_save = list(wanted)[: 2 * releases]
    assert {stored[key][0] for key in before_second_save} == {7}
    assert {key: table.query(key[2:], "T", 0) for key in wanted} == wanted


def test_groups_that_come_and_go_while_a_table_is_saved_do_not_disturb_it():
    groups = 4 * PORTION_OFFSETS
    files = files_of({f"T@g{number}": {"0": 1} for number in range(groups)})
    table = open_table(files)
    table.commit("g0", "T", 0, 5)

    def change():
        if lock.releases == 2:
            table._lock = threading.Lock()
            table.delete("g1")
            table.delete(f"g{groups - 1}")
            table.commit("new", "T", 0, 9)
            table._lock = lock

    lock = table._lock = Counted(change)
    table.persist()
    assert table.is_dirty
    table._lock = threading.Lock()
    table.persist()
    stored = stored_offsets(files)
    assert len(stored) == groups - 1
    assert stored["T@new"] == {0: 9}
    assert not {"T@g1", f"T@g{groups - 1}"} & stored.keys()
