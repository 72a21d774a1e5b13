"""Two clients that broadcast and have one name write one file of offsets: the second one says so."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from seglog.broker.broker import Broker
from seglog.client.connect import make_client
from seglog.consumer.push import PushConsumer
from seglog.consumer.settings import ConsumerOptions
from seglog.remoting.heartbeat import MessageModel
from seglog.storage.files import FolderUse
from tests.support.machine.children import child
from tests.support.machine.patience import wait_for_end

OTHER = """
import os, signal, sys
from seglog import Broker, MessageModel, PushConsumer, make_client

path, folder, name, how = sys.argv[1:]
with Broker.open(path) as broker, make_client(broker, instance_name=name) as client:
    model = {"message_model": MessageModel.BROADCASTING, "offset_folder": folder}
    with PushConsumer(client, "g", "T", print, **model) as consumer:
        consumer.run_until_idle()
        child = os.fork() if how == "forks" else None
        if child == 0:  # it has its parent's input, and must not take what is for that
            os.close(1)
            signal.alarm(120)
            signal.pause()
        print("runs", child or "", flush=True)
        sys.stdin.readline()
        if how != "ends":
            os._exit(0)
    print("ended", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Broker]:
    with Broker.open(tmp_path / "s") as opened:
        yield opened


@contextmanager
def another(tmp_path: Path, name: str = "till", how: str = "ends") -> Iterator[Any]:
    """Runs a process with a member of the group."""
    command: list[str | Path] = [
        sys.executable,
        "-W",
        "ignore",
        "-c",
        OTHER,
        tmp_path / "other",
        tmp_path / "offsets",
        name,
        how,
    ]
    with child(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        said, *children = process.stdout.readline().split()
        try:
            assert said == "runs"
            yield process
        finally:
            process.stdin.close()
            wait_for_end(process, idle_s=30)
            for of_it in children:
                os.kill(int(of_it), signal.SIGKILL)


def warned(broker: Broker, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> list[str]:
    """Starts and ends a member of the group in this process; returns what that says of its offsets."""
    caplog.clear()
    model: ConsumerOptions = {
        "message_model": MessageModel.BROADCASTING,
        "offset_folder": tmp_path / "offsets",
    }
    with (
        make_client(broker, instance_name="till") as client,
        PushConsumer(client, "g", "T", lambda _message: None, **model) as consumer,
    ):
        consumer.run_until_idle()
    return [one.getMessage() for one in caplog.records if "instance_name" in one.msg]


def test_one_of_another_process_with_the_same_name_is_said_and_not_refused(
    broker: Broker, tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    assert warned(broker, tmp_path, caplog) == []
    with another(tmp_path) as process:
        (text,) = warned(broker, tmp_path, caplog)
        assert text.startswith("another process has a member of group g that broadcasts")
        assert "127.0.0.1@till" in text
        assert "offsets.json" in text
        print(file=process.stdin, flush=True)
        assert process.stdout.readline() == "ended\n"
        assert warned(broker, tmp_path, caplog) == [], "it was closed, and its process goes on"


def test_one_of_another_name_is_not_said(broker: Broker, tmp_path: Path, caplog: pytest.LogCaptureFixture):
    with another(tmp_path, "other till"):
        assert warned(broker, tmp_path, caplog) == []


@pytest.mark.parametrize("how", ["dies", "forks"])
def test_a_process_that_has_died_is_not_said_nor_a_child_of_it(
    broker: Broker, tmp_path: Path, caplog: pytest.LogCaptureFixture, how: str
):
    with another(tmp_path, how=how) as process:
        assert len(warned(broker, tmp_path, caplog)) == 1
        print(file=process.stdin, flush=True)
        assert process.stdout.read() == ""
        wait_for_end(process, idle_s=30)
        assert warned(broker, tmp_path, caplog) == []


def test_a_third_user_of_a_folder_sees_the_second_where_the_first_has_ended(tmp_path: Path):
    first, second = FolderUse(tmp_path / "new"), FolderUse(tmp_path / "new")
    assert (first.is_shared, second.is_shared) == (False, True)
    first.end()
    third = FolderUse(tmp_path / "new")
    assert third.is_shared
    second.end()
    third.end()
    third.end()
    assert not FolderUse(tmp_path / "new").is_shared


def test_a_folder_that_cannot_be_made_is_not_shared(tmp_path: Path):
    (tmp_path / "file").write_bytes(b"")
    assert not FolderUse(tmp_path / "file" / "folder").is_shared
