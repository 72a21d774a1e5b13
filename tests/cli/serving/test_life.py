"""A process that serves ends in order at any moment of its life, and nothing that it writes holds it up."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from functools import partial
from pathlib import Path

import pytest

from seglog import MessageStore, Producer
from seglog.cli.serving.signals import StopAskedError, StoppableFiles
from seglog.storage.files import StoreRoot
from tests.support.machine.children import child
from tests.support.machine.patience import patience_s, wait_for_end, wait_until
from tests.support.machine.serving import Serving
from tests.support.narrow import not_none
from tests.support.rows import every_row

SEGMENT_BYTES = 1 << 16
STOPPED = {signal.SIGTERM: 143, signal.SIGINT: 130, signal.SIGHUP: 129}


def full_pipe() -> tuple[int, int]:
    """Returns a pipe that takes nothing more and has no reader."""
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    with suppress(BlockingIOError):
        while True:
            os.write(writing, b"#" * 512)
    os.set_blocking(writing, True)
    return reading, writing


def unclosed(path, count: int):
    """Returns a store with messages as a crash leaves it, with many files to look at."""
    with MessageStore.open(
        path, segment_size_bytes=SEGMENT_BYTES, queue_file_size_bytes=2_000, recovery_step_bytes=0
    ) as store:
        for number in range(count):
            store.put("T", b"%d" % number)
    (path / "abort").write_text("1")
    return path


def bodies(path) -> list[bytes]:
    found, at = list[bytes](), 0
    with MessageStore.open(path, read_only=True) as store:
        while at < store.max_offset("T", 0):
            page = store.get("T", 0, at, 1_000)
            found += [bytes(one.body) for one in page.messages]
            at = page.next_offset
    return found


def test_a_log_that_nobody_reads_holds_no_client_up_and_no_stop(serving, memory_path):
    reading, writing = full_pipe()
    one = serving(memory_path / "s", stderr=writing)
    with Producer(one.address) as producer:
        for _ in range(20):
            producer.send("T", b"x", queue_id=0)
    code, said = one.end(signal.SIGTERM)
    os.close(writing)
    os.close(reading)
    assert (code, [each["kind"] for each in said]) == (0, ["stopping", "stopped"])
    assert len(bodies(memory_path / "s")) == 20


def test_an_output_that_nobody_reads_holds_nothing_up_from_the_first_line_on(memory_path, start_child):
    reading, writing = full_pipe()
    address_in, address_out = os.pipe()
    words = ["serve", str(memory_path / "s"), "--port", "0", "--ready-fd", str(address_out)]
    process = start_child(
        [sys.executable, "-m", "seglog.cli.main", *words],
        stdout=writing,
        stderr=writing,
        pass_fds=[address_out],
    )
    os.close(address_out)
    with open(address_in) as lines:
        address = lines.readline().strip()
    with Producer(address) as producer:
        producer.send("T", b"x", queue_id=0)
    process.send_signal(signal.SIGTERM)
    assert wait_for_end(process, idle_s=60) == 0
    os.close(writing)
    os.close(reading)
    assert bodies(memory_path / "s") == [b"x"]


def test_sigquit_prints_what_threads_do_and_ends_nothing(serving, memory_path, tmp_path):
    errors = tmp_path / "errors"
    with errors.open("w") as stderr:
        one = serving(memory_path / "s", stderr=stderr)
    one.process.send_signal(signal.SIGQUIT)
    wait_until(lambda: "life.py" in errors.read_text())
    with Producer(one.address) as producer:
        producer.send("T", b"x", queue_id=0)
    assert one.end(signal.SIGTERM)[0] == 0
    assert "most recent call first" in errors.read_text()


def test_readers_of_the_output_may_go(serving, memory_path):
    one = serving(memory_path / "s")
    one.process.stdout.close()
    one.process.stderr.close()
    with Producer(one.address) as producer:
        producer.send("T", b"x", queue_id=0)
    one.process.send_signal(signal.SIGTERM)
    assert one.process.wait(timeout=patience_s(60)) == 0
    assert bodies(memory_path / "s") == [b"x"]


def ended_while_opening(words: list[str | Path], by: signal.Signals) -> tuple[int, str, str]:
    """Sends a signal once a process says that it opens a store; returns its exit code and what it said."""
    with child(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert "INFO opening " in not_none(process.stderr).readline()
        process.send_signal(by)
        out, errors = process.communicate(timeout=patience_s(60))
    return process.returncode, out, errors


def test_a_signal_while_the_store_is_opened_ends_that_without_a_traceback(command_line, tmp_path):
    path = unclosed(tmp_path / "s", 20_000)
    words = [*command_line, "serve", path, "--port", "0", "--json"]
    with every_row() as row:
        for by, wanted in STOPPED.items():
            with row(by.name):
                (path / "abort").write_text("1")
                code, out, errors = ended_while_opening(words, by)
                while code == 0:  # this test had to wait, and the store was open before the signal came
                    (path / "abort").write_text("1")
                    code, out, errors = ended_while_opening(words, by)
                assert code == wanted, (out, errors)
                assert [json.loads(line)["signal"] for line in out.splitlines()] == [by.name]
                assert errors == ""
    assert len(bodies(path)) == 20_000


def test_an_opening_that_is_stopped_at_any_file_leaves_a_store_that_opens_with_all(tmp_path):
    path = unclosed(tmp_path / "s", 3_000)
    calls, stops = 0, 0

    def stop_at(wanted: int) -> None:
        nonlocal calls
        calls += 1
        if calls == wanted:
            raise StopAskedError(signal.SIGTERM)

    for wanted in range(1, 10_000, 7):
        calls = 0
        files = StoppableFiles(path, (), partial(stop_at, wanted))
        try:
            MessageStore.open(path, files=files, recovery_step_bytes=0).close()
        except StopAskedError:
            stops += 1
        else:
            break
        finally:
            files.close()
        (path / "abort").write_text("1")
    assert stops > 5
    assert bodies(path) == [b"%d" % number for number in range(3_000)]
    assert not (path / "abort").exists() or StoreRoot(path).exists(path / "commitlog")


def test_a_terminal_that_hangs_up_ends_it_in_order_and_nohup_keeps_it(serving, memory_path):
    one = serving(memory_path / "s")
    assert one.end(signal.SIGHUP)[0] == 0
    kept = serving(memory_path / "s", preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
    kept.process.send_signal(signal.SIGHUP)
    with Producer(kept.address) as producer:
        producer.send("T", b"x", queue_id=0)
    assert kept.end(signal.SIGTERM)[0] == 0


def test_signals_one_after_the_other_still_close_the_store(serving, memory_path):
    one = serving(memory_path / "s")
    with Producer(one.address) as producer:
        producer.send("T", b"x", queue_id=0)
        for _ in range(20):
            one.process.send_signal(signal.SIGTERM)
            time.sleep(0.001)
        assert one.process.wait(timeout=patience_s(60)) in {0, -signal.SIGTERM}
    assert not (memory_path / "s" / "abort").exists()
    assert bodies(memory_path / "s") == [b"x"]


@pytest.mark.parametrize("time_options", [(), ("--virtual-time",)])
def test_the_end_of_the_input_ends_it_where_that_is_wanted(time_options):
    one = Serving(["--ephemeral", *time_options, "--until-eof"], stdin=subprocess.PIPE)
    out, errors = one.process.communicate("advance 2h\n", timeout=patience_s(60))
    first, *others = [json.loads(line)["kind"] for line in out.splitlines()]
    assert one.process.returncode == 0, errors
    assert first == ("advanced" if time_options else "refused")
    assert others == ["stopping", "stopped"]


def test_without_it_the_end_of_the_input_ends_nothing(serving):
    one = serving("--ephemeral", "--virtual-time", stdin=subprocess.DEVNULL)
    with Producer(one.address) as producer:
        producer.send("T", b"x", queue_id=0)
    assert one.end(signal.SIGTERM)[0] == 0


@pytest.mark.parametrize("option", ["--virtual-time", "--until-eof"])
def test_lines_from_an_input_that_is_closed_are_wrong_usage(command_line, option):
    words = [*command_line, "serve", "--ephemeral", "--virtual-time", option, "--port", "0"]
    done = subprocess.run(
        ["/bin/sh", "-c", 'exec "$@" <&-', "sh", *words], capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert f"{option} reads standard input, which is closed: give it a pipe" in done.stderr
    assert ("/dev/null" in done.stderr) == (option == "--virtual-time")


def test_an_input_that_has_ended_already_is_named_as_what_ends_the_process():
    one = Serving(["--ephemeral", "--until-eof"], stdin=subprocess.DEVNULL)
    _, errors = one.process.communicate(timeout=patience_s(60))
    assert one.process.returncode == 0
    assert "standard input has ended, and with it this process (--until-eof)" in errors
