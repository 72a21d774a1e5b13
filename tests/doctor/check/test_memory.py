"""Anonymous memory of commands is bounded, for any length of files and number of messages."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from seglog.doctor.check.check import check_store
from seglog.storage.format.names import CHECKPOINT_FILE
from seglog.storage.store import MessageStore
from tests.support.machine.memory import measure, seglog, whole_store_commands
from tests.support.material.big_stores import SPARSE_MESSAGES, damage, make_small, make_sparse
from tests.support.scale import chance, is_full, is_gate, scaled

_LONG_BYTES: Final = 8 << 30
_LIMIT_MIB: Final = 120
_FIXED_MIB: Final = 200
_A_MESSAGE_MIB: Final = 48 / (1 << 20)
_SEGMENTS: Final = scaled(8, 64)
_MESSAGES: Final = scaled(2_000_000, 20_000_000)
_BOUNDED: Final = frozenset({"check", "open to read", "export"})
"""What takes no more for more messages."""
_ALL: Final = frozenset(
    {*_BOUNDED, "repair, dry run", "repair", "undo", "open to write", "open again", "put", "erase"}
)
_QUICK: Final = frozenset({"check", "open to read", "put", "open again"})
"""Of many messages; the others take a minute a million, and run with ``--full``."""

pytestmark = pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs Linux's /proc")


@pytest.mark.slow
def test_long_files_take_no_memory(tmp_path: Path) -> None:
    store = tmp_path / "store"
    make_sparse(store, _SEGMENTS)
    damage(store, range(_SEGMENTS // 2, _SEGMENTS, 10) if _SEGMENTS < 10 else range(9, _SEGMENTS, 10))
    _assert_within_limits(store, tmp_path, _SEGMENTS * SPARSE_MESSAGES, _ALL)


@pytest.mark.slow
def test_many_messages_take_a_bounded_amount_of_memory(tmp_path: Path) -> None:
    store = tmp_path / "store"
    make_small(store, _MESSAGES)
    _assert_within_limits(store, tmp_path, _MESSAGES, _QUICK)


def _assert_within_limits(store: Path, folder: Path, messages: int, quick: frozenset[str]) -> None:
    found = {}
    for name, arguments in whole_store_commands(store, folder):
        if not is_full() and name not in quick:
            continue
        measured = measure(arguments, folder / "output")
        assert "Traceback" not in measured.output
        found[name] = round(measured.anonymous_mib)
        limit_mib = _FIXED_MIB + (0 if name in _BOUNDED else messages * _A_MESSAGE_MIB)
        assert measured.anonymous_mib <= limit_mib, (name, found)


@pytest.mark.parametrize(
    "name",
    [
        "config/topics.json",
        CHECKPOINT_FILE,
        "commitlog/00000000000000000000",
        "consumequeue/T/0/00000000000000000000",
        "index/20240101000000000",
        "timerwheel",
        "timerlog/00000000000000000000",
        "seglog/recovery-point",
    ],
)
def test_a_file_of_8_gib_without_content_takes_no_memory(tmp_path: Path, name: str) -> None:
    root = tmp_path / "store"
    with MessageStore.open(root, segment_size_bytes=1 << 17, queue_file_size_bytes=2000) as store:
        for _number in range(1500):
            store.put("T", bytes(100))
    path = root / name
    path.parent.mkdir(exist_ok=True, parents=True)
    with path.open("ab") as file:
        file.truncate(_LONG_BYTES)
    commands = ["check", "repair"]
    for command in commands if not is_gate() else [chance("8 GiB", name).choice(commands)]:
        found = measure(seglog(command, str(root)), tmp_path / "output")
        assert "Traceback" not in found.output
        assert found.anonymous_mib < _LIMIT_MIB, command


def test_a_config_file_that_is_too_long_is_a_finding(tmp_path: Path) -> None:
    root = tmp_path / "store"
    with MessageStore.open(root) as store:
        store.put("T", b"body")
    (root / "config").mkdir(exist_ok=True)
    with (root / "config" / "topics.json").open("ab") as file:
        file.truncate(_LONG_BYTES)
    findings = {(one.code, one.file) for one in check_store(root).findings}
    assert ("file-unreadable", "config/topics.json") in findings
