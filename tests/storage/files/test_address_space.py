"""Where a limit leaves no address space for a map, the error names file and limit, and nothing is lost."""

from __future__ import annotations

import shlex
import subprocess
import sys
from pathlib import Path

from seglog.storage.store import MessageStore
from tests.support.machine.patience import patience_s

LIMIT_KIB = 1_000_000
"""Less than one file of the log, with the interpreter and its libraries."""


def limited(*words: str | Path) -> subprocess.CompletedProcess[str]:
    command = shlex.join([sys.executable, "-m", "seglog", *map(str, words)])
    return subprocess.run(
        ["/bin/bash", "-c", f"ulimit -v {LIMIT_KIB}; exec {command}"],
        check=False,
        capture_output=True,
        text=True,
        timeout=patience_s(60),
    )


def test_a_map_that_finds_no_address_space_is_named_with_the_limit(tmp_path: Path):
    with MessageStore.open(tmp_path / "s") as store:
        store.put("T", b"x", queue_id=0)
    refused = limited("put", tmp_path / "s", "T", "y")
    assert refused.returncode == 10
    assert f"commitlog/{0:020d}: no memory, or no address space, for a map" in refused.stderr
    assert "`ulimit -v`" in refused.stderr
    with MessageStore.open(tmp_path / "s") as store:
        assert [message.body for message in store.get("T", 0, 0)] == [b"x"]
        store.put("T", b"y", queue_id=0)
