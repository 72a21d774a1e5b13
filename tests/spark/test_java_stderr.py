"""What workers of Spark print comes to the user of a session; what Java prints at its start does not."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from seglog import MessageStore
from seglog.spark.java_stderr import JavaStderr
from tests.support.machine.patience import join_thread, wait_for_end, wait_until

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

JAVA = """
read -r go
echo noise >&2
read -r go
printf 'a line\\nhalf \\303' >&2
read -r go
printf '\\244 and \\377 rest' >&2
"""
"""Prints when it is told to."""


@pytest.fixture
def java(start_child):
    printed = JavaStderr()
    process = start_child(
        ["/bin/sh", "-c", JAVA], stdin=subprocess.PIPE, stderr=printed.fileno(), text=True, bufsize=1
    )
    printed.close_writer()
    return printed, process


def go(process):
    process.stdin.write("go\n")
    process.stdin.flush()


def test_lines_are_handed_on_from_the_moment_that_is_said(java, capsys):
    printed, process = java
    go(process)
    wait_until(lambda: printed._kept, idle_s=20)
    printed.hand_on()
    go(process)
    go(process)
    wait_for_end(process)
    join_thread(printed._thread, idle_s=20)
    assert capsys.readouterr().err == "a line\nhalf ä and \\xff rest\n"
    assert printed.lines_so_far() == ["noise"]


def test_a_java_goes_on_where_stderr_is_closed(java, monkeypatch):
    printed, process = java
    printed.hand_on()
    with open(os.devnull, "w") as closed:
        monkeypatch.setattr(sys, "stderr", closed)
    for _ in range(3):
        go(process)
    wait_for_end(process)
    join_thread(printed._thread, idle_s=20)
    assert process.returncode == 0


def test_a_forked_process_gives_up_the_pipe_and_ends(java):
    printed, _process = java
    child = os.fork()
    if child == 0:
        printed._drain()
        os._exit(0 if printed._reader.closed else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert not printed._reader.closed


def test_an_end_of_the_process_waits_for_what_is_written(capsys):
    printed = JavaStderr()
    printed.hand_on()
    os.write(printed.fileno(), b"last words\n")
    printed._drain()
    wait_until(lambda: "last words" in capsys.readouterr().err, idle_s=20)
    printed.close_writer()
    printed.close_writer()
    assert printed.lines_so_far() == []


@pytest.mark.spark
def test_warnings_of_a_read_come_on_the_stderr_of_its_session(spark: SparkSession, tmp_path, capsys):
    with MessageStore.open(tmp_path / "store") as store:
        for _ in range(9):
            store.put("orders", b"x" * 1000)
    log = tmp_path / "store" / "commitlog" / f"{0:020d}"
    with log.open("r+b") as file:
        file.seek(3000)
        file.write(b"\xff" * 300)
    reader = spark.read.format("seglog").option("failOnDataLoss", "false").option("subscribe", "orders,Nope")
    assert reader.load(str(tmp_path / "store")).count() == 8
    said = []

    def is_said():
        said.append(capsys.readouterr().err)
        return "no store has the topic Nope" in "".join(said) and "data loss: commitlog/" in "".join(said)

    wait_until(is_said, idle_s=20)


def test_stacks_of_workers_are_left_out_even_if_they_come_mixed():
    printed = JavaStderr()
    printed.close_writer()
    lines = """warned: 3 messages
Traceback (most recent call last):
  File "worker.py", line 1, in main
Traceback (most recent call last):
    serve()
  File "worker.py", line 1, in main

EOFError
BrokenPipeError: [Errno 32] Broken pipe

During handling of the above exception, another exception occurred:
Exception ignored in: <_io.BufferedWriter>
said at last
Traceback (most recent call last):
  File "worker.py", line 1, in a worker that is killed
/store: data loss: commitlog/0 +3: magic
/store: data loss: commitlog/0 +3: magic""".splitlines()
    said = ["warned: 3 messages", "said at last", "/store: data loss: commitlog/0 +3: magic"]
    assert [line for line in printed._without_stacks(lines) if line] == said
    printed._taken_s -= 3
    assert printed._without_stacks(["said later"]) == ["said later"]
