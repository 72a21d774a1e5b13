"""A log that RocketMQ spreads over folders: read here, written here, and read by RocketMQ again."""

from __future__ import annotations

import shutil

import pytest

from seglog import MessageStore
from seglog.doctor.check.check import check_store
from seglog.errors import UnsupportedStoreError
from seglog.storage.findings import Severity
from tests.interop.judging.lines import differences, java_lines, served_lines
from tests.interop.judging.questions import SMALL_GEOMETRY, JavaMessages
from tests.interop.judging.writing import append_here, store_options

pytestmark = pytest.mark.interop

FOLDERS = ("log-b", "commitlog", "log-a")
COUNT = 300


def more(first):
    return JavaMessages(topic="Topic", first=first, count=COUNT, body_bytes=700, keys="k")


def paths(root):
    return ",".join(f"{root}/{name}" for name in FOLDERS)


def places(root):
    """Returns the folder of each file of the log that has records."""
    return {
        path.name: name
        for name in FOLDERS
        for path in (root / name).iterdir()
        if any(path.read_bytes()[:100])
    }


@pytest.mark.parametrize("halt", [False, True])
def test_both_engines_continue_a_log_in_several_folders(halt, judge, tmp_path):
    root = tmp_path / "store"
    told = {"storePathCommitLog": paths(root)}
    expected = java_lines(more(0), judge.write(root, [more(0)], SMALL_GEOMETRY, halt=halt, **told))
    assert len({*places(root).values()}) == len(FOLDERS)
    twin = tmp_path / "twin"
    shutil.copytree(root, twin)
    with MessageStore.open(root, create=False, read_only=True) as store:
        assert differences(expected, served_lines(store)) == []
    assert all(one.severity is not Severity.LOSS for one in check_store(root).findings)
    with pytest.raises(UnsupportedStoreError):
        MessageStore.open(root)
    (root / "broker.conf").write_text(f"storePathCommitLog={paths(root)}\n")
    # A store that was killed may have no queue file, which would show how long its queue files are.
    with MessageStore.open(root, **store_options(SMALL_GEOMETRY)) as store:
        expected += java_lines(more(COUNT), append_here(store, more(COUNT)))
        assert differences(expected, served_lines(store)) == []
    told_twin = {"storePathCommitLog": paths(twin)}
    judge.append(twin, [more(COUNT)], SMALL_GEOMETRY, **told_twin)
    assert places(root) == places(twin)
    expected += java_lines(more(2 * COUNT), judge.append(root, [more(2 * COUNT)], SMALL_GEOMETRY, **told))
    served = judge.dump(root, SMALL_GEOMETRY, **told).of_kind("msg")
    assert differences(expected, served) == []
