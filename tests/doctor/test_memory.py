"""Anonymous memory of commands is bounded, whatever the length of files and the number of messages."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from seglog.doctor.check import check_store
from seglog.storage.format.names import CHECKPOINT_FILE
from seglog.storage.store import MessageStore
from tests.support.memory import measure, seglog

_LONG_BYTES: Final = 8 << 30
_LIMIT_MIB: Final = 120

pytestmark = pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs Linux's /proc")


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
    for command in ("check", "repair"):
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
