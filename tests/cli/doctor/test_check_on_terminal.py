"""A check on a terminal: it shows how far it is and how long it will take, and Ctrl-C loses nothing."""

from __future__ import annotations

import contextlib
import os
import pty
import re
import sys

import pytest

from seglog.doctor.check.check import check_store
from tests.support.command_line import Seglog
from tests.support.machine.patience import wait_for_end
from tests.support.material.sealed import flip, sealed_store, segment

SLOW_CHECK = """
import fcntl, sys, termios, time
fcntl.ioctl(0, termios.TIOCSCTTY, 0)  # it sends its signals to us
from seglog.cli.main import main
from seglog.doctor.check import check, log_walk
walk = log_walk.LogWalk._walk
def slowly(self, split):
    time.sleep(0.3)
    return walk(self, split)
log_walk.LogWalk._walk = slowly
check.check_store.__kwdefaults__["split_bytes"] = 1 << 16
main()
"""
"""A check of a disk that takes 0.3 s for 64 KiB; the process, the terminal and the signal are real."""

CTRL_C = b"\x03"
TIME_LEFT = re.compile(r"checking the log .*/.*\d:\d\d:\d\d")


class Terminal:
    """A process on a terminal of its own."""

    def __init__(self, start_child, *arguments, env):
        self.shown = ""
        try:
            self._ours, its = pty.openpty()
        except OSError as error:
            pytest.skip(f"no pseudo-terminals here: {error}")
        self.process = start_child(
            [sys.executable, "-c", SLOW_CHECK, *arguments],
            stdin=its, stdout=its, stderr=its, env=env, start_new_session=True,
        )  # fmt: skip
        os.close(its)

    def read_until(self, pattern):
        """Reads on until what was shown matches; fails at the end of the output."""
        while not pattern.search(self.shown):
            self.shown += os.read(self._ours, 1 << 16).decode()

    def press(self, keys):
        """Types."""
        os.write(self._ours, keys)

    def end(self):
        """Reads the rest; returns the exit code."""
        with contextlib.suppress(OSError):  # Linux ends a terminal that no process has open with EIO
            while chunk := os.read(self._ours, 1 << 16):
                self.shown += chunk.decode()
        os.close(self._ours)
        return wait_for_end(self.process)


@pytest.fixture
def env(tmp_path):
    return {
        **os.environ,
        "XDG_STATE_HOME": str(tmp_path / "state"),
        "TERM": "xterm",
        "COLUMNS": "160",
        "SEGLOG_PAGER": "",
    }


def test_ctrl_c_leaves_where_to_go_on_and_the_rest_finds_what_a_whole_check_finds(
    seglog: Seglog, env, tmp_path, monkeypatch, start_child
):
    root = tmp_path / "store"
    sealed_store(root, record_crc=False)
    flip(segment(root, 0), 100)
    flip(segment(root, 2), 100)
    terminal = Terminal(start_child, "check", str(root), env=env)
    terminal.read_until(TIME_LEFT)
    terminal.press(CTRL_C)
    assert terminal.end() == 130
    (kept,) = (tmp_path / "state").rglob("*.jsonl")
    assert f"seglog check {root} --resume {kept}" in " ".join(terminal.shown.split())
    monkeypatch.setitem(check_store.__kwdefaults__, "split_bytes", 1 << 16)
    *whole, all_of_it = seglog("check", root, "--json").lines
    *found, rest = seglog("check", root, "--resume", kept, "--json").lines
    assert found == whole
    assert {line["code"] for line in found if "code" in line} >= {"record-repairable", "seal-rot"}
    assert rest["resumedBytes"] > 0
    assert rest["resumedBytes"] + rest["bytes"] == all_of_it["bytes"]
    assert rest["records"] == all_of_it["records"]
    assert not kept.exists()
