"""Lines on standard input move the time of a broker that is served, for tests in any language."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from typing import Any

import pytest

from seglog import ConsumeFrom, Producer, PushConsumer
from seglog.cli.serving.time_lines import TimeLines
from seglog.client.connect import make_client
from seglog.clock import VirtualClock
from seglog.remoting.codes import RequestCode
from seglog.remoting.command import Request, expect_header
from seglog.remoting.headers import GetMaxOffsetHeader, OffsetResponseHeader
from tests.support.brokers import open_broker
from tests.support.command_line import Seglog
from tests.support.machine.patience import patience_s, wait_until

HOUR_MS = 3_600_000


@pytest.fixture
def broker(tmp_path):
    with open_broker(tmp_path / "s", VirtualClock(0)) as opened:
        yield opened


def told(broker, *pieces):
    """Returns what is said to what is written into a pipe piece by piece."""
    said = []
    reading, writing = os.pipe()
    with TimeLines(broker, reading, lambda fields, _text: said.append(fields)):
        for piece in pieces:
            os.write(writing, piece)
        os.close(writing)
        *lines, last = b"".join(pieces).split(b"\n")
        wait_until(lambda: len(said) == len(lines) + bool(last))
    os.close(reading)
    return said


def test_a_line_moves_time_and_says_when_it_is(broker):
    said = told(broker, b"advance 2h\n")
    assert said == [{"kind": "advanced", "by": "2h", "nowMs": 2 * HOUR_MS}]
    assert broker.clock.now_ms() == 2 * HOUR_MS


def test_lines_are_read_however_they_come(broker):
    said = told(broker, b"adv", b"ance 1h\n\n  advance   1h 30m\r\nadvance 1", b"ms\nadvance 5h")
    assert said.pop(1) == {
        "kind": "refused",
        "line": "",
        "error": "an empty line asks for nothing: expected `advance 2h`, with ms, s, m, h or d",
    }
    assert [one["nowMs"] for one in said] == [
        HOUR_MS,
        HOUR_MS * 5 // 2,
        HOUR_MS * 5 // 2 + 1,
        HOUR_MS * 15 // 2 + 1,  # the last line may end with the input
    ]


@pytest.mark.parametrize("line", ["advance", "advance soon", "advance -1h", "back 1h", "\xff", "x" * 5_000])
def test_what_is_no_line_is_refused_and_time_stands(broker, line):
    first, second = told(broker, line.encode("latin-1") + b"\nadvance 1h\n")
    assert (first["kind"], second["nowMs"]) == ("refused", HOUR_MS)


@pytest.mark.parametrize(
    "line",
    [b"advance 1h" + b" " * 3_000 + b"junk", b" " * 1_024 + b"advance 2h", b"#" * 2_000 + b"advance 2h"],
)
@pytest.mark.parametrize("size", [7, 1_024, 5_000])
def test_a_line_that_is_too_long_is_refused_whole_however_it_comes(broker, line, size):
    data = line + b"\nadvance 1h\n"
    first, second = told(broker, *(data[at : at + size] for at in range(0, len(data), size)))
    assert (first["kind"], second["nowMs"]) == ("refused", HOUR_MS)
    assert "a line has more than 1024 bytes" in first["error"]
    assert len(first["line"]) < 50


def test_nothing_is_done_after_the_end(broker):
    said = []
    reading, writing = os.pipe()
    lines = TimeLines(broker, reading, lambda fields, _text: said.append(fields))
    lines.close()
    os.write(writing, b"advance 1h\n")
    os.close(writing)
    lines._do("advance 1h")
    assert (said, broker.clock.now_ms()) == ([], 0)
    os.close(reading)


class Moved:
    """A process that serves on virtual time, and its standard input.

    Attributes:
        address: Where clients find it.
    """

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        self.address: str = self._told()["address"]

    def advance(self, by: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(f"advance {by}\n")
        self.process.stdin.flush()
        assert self._told()["kind"] == "advanced"

    def _told(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        told: dict[str, Any] = json.loads(self.process.stdout.readline())
        return told


@pytest.fixture
def moved(command_line, start_child):
    serve = [*command_line, "serve", "--ephemeral", "--virtual-time", "--port", "0", "--json"]
    return Moved(start_child(serve, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True))


def test_a_delayed_message_comes_when_the_line_says_so(moved):
    with Producer(moved.address) as producer, make_client(moved.address) as client:
        queue = producer.send("T", b"late", delay_level=18).queue
        for by, expected in (("1h", 0), ("59m", 0), ("1m", 1)):
            moved.advance(by)
            assert end_of(client, moved.address, "T", queue.queue_id) == expected
    moved.process.stdin.close()
    moved.process.send_signal(signal.SIGTERM)
    assert moved.process.wait(timeout=patience_s(60)) == 0


def test_lines_walk_a_message_that_fails_up_the_ladder_to_the_dead_letters(moved):
    """As docs/server.md says it: each line is a step, and what came back late comes with the next."""
    tries: list[int] = []

    def fail(message):
        tries.append(message.reconsume_times)
        raise ValueError("poison")

    with (
        Producer(moved.address) as producer,
        make_client(moved.address) as client,
        PushConsumer(moved.address, "g", "T", fail, consume_from=ConsumeFrom.FIRST) as consumer,
    ):
        producer.send("T", b"poison", queue_id=0)
        consumer.start()

        def is_dead():
            moved.advance("2h")
            return len(tries) == 17 and end_of(client, moved.address, "%DLQ%g", 0) == 1

        wait_until(is_dead, idle_s=60)
    assert tries == list(range(17))


def end_of(client, address, topic, queue_id):
    """Returns where a queue ends."""
    request = Request(RequestCode.GET_MAX_OFFSET, GetMaxOffsetHeader(topic, queue_id))
    return expect_header(client.link.invoke(request, 30_000, address), OffsetResponseHeader).offset


def test_virtual_time_is_for_a_store_that_goes_with_the_process(seglog: Seglog, tmp_path):
    ran = seglog("serve", tmp_path / "s", "--virtual-time")
    assert (ran.exit_code, "goes with --ephemeral" in ran.stderr) == (2, True)
    assert not (tmp_path / "s").exists()
