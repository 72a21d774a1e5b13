"""A process that serves is attacked over its port: it goes on, its memory has bounds, others are served."""

from __future__ import annotations

import random
import resource
import select
import socket
import struct
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from itertools import pairwise
from pathlib import Path

import pytest

from seglog import Producer
from seglog.errors import SeglogError
from seglog.remoting.codec import Codec
from seglog.remoting.codes import ResponseCode
from seglog.remoting.command import Request
from tests.server.frames import answers, bytes_of
from tests.support.asks import beat_of, bodies_of, pull_from, route_of, send_to
from tests.support.machine.patience import patience_s
from tests.support.machine.serving import Serving
from tests.support.scale import chance, commit_seed, scaled

MEMORY_BYTES = 400 << 20
"""What a server may grow by under attack: its limits for all clients together, and what Python keeps."""
HOSTILE_NAMES = (
    "../../escape",
    "/etc/passwd",
    "..",
    ".",
    "a/b",
    "a\\b",
    "a\x00b",
    "a\nb",
    "%2e%2e%2f",
    "名前",
    " ",
    "x" * 128,
    "x" * 32_767,
    "%RETRY%../../escape",
    "%DLQ%/x",
)


class Attacked:
    """A server of a process of its own, and a client of it that is honest."""

    def __init__(self, store: Path) -> None:
        self.serving = Serving([str(store)])
        host, port = self.serving.address.split(":")
        self.where = (host, int(port))
        self.codec = Codec()
        self.honest = self.dial()
        self.ask(beat_of("honest", "T"))
        self.ask(send_to("T", b"honest"))
        self.before_bytes = self.memory_bytes()

    def dial(self) -> socket.socket:
        return socket.create_connection(self.where, patience_s(30))

    def ask(self, *requests: Request) -> None:
        """Asks as an honest client, and has success."""
        self.honest.sendall(bytes_of(self.codec, *requests))
        for answer in answers(self.codec, self.honest, len(requests)).values():
            assert answer.code is ResponseCode.SUCCESS, answer

    def check(self) -> None:
        """Sends and pulls as an honest client, and looks at the memory of the server."""
        self.ask(send_to("T", b"honest"))
        self.honest.sendall(bytes_of(self.codec, pull_from("T", 0)))
        (found,) = answers(self.codec, self.honest, 1).values()
        assert bodies_of(found)[0] == b"honest"
        assert self.memory_bytes() - self.before_bytes < MEMORY_BYTES

    def memory_bytes(self) -> int:
        """Returns the memory of its own that the process has."""
        status = Path("/proc", str(self.serving.process.pid), "status").read_text(encoding="ascii")
        (line,) = (each for each in status.splitlines() if each.startswith("RssAnon"))
        return int(line.split()[1]) << 10

    def close(self) -> None:
        assert self.serving.process.poll() is None, "the server has ended"
        self.honest.close()
        self.serving.close()


@pytest.fixture
def attacked(memory_path: Path) -> Iterator[Attacked]:
    with ExitStack() as running:
        one = Attacked(memory_path / "s")
        running.callback(one.close)
        yield one
        one.check()


def test_slow_clients_hold_up_no_other(attacked):
    frame = bytes_of(Codec(), send_to("T", bytes(2_000)))
    with ExitStack() as ends:
        slow = [ends.enter_context(attacked.dial()) for _ in range(150)]
        for at in range(scaled(40, 1_000)):
            for end in slow:
                end.sendall(frame[at : at + 1])
            attacked.check()


def test_frames_that_are_too_long_or_half_end_their_connection_only(attacked):
    heads = (
        struct.pack(">iI", (16 << 20) + 5, 4),
        struct.pack(">iI", -(1 << 31), 4),
        struct.pack(">iI", 0, 0),
        struct.pack(">iI", 64, 0x00FF_FFFF),
        struct.pack(">iI", 16 << 20, 4) + bytes(1 << 20),
    )
    for _ in range(scaled(20, 2_000)):
        with ExitStack() as ends:
            for head in heads:
                end = ends.enter_context(attacked.dial())
                with suppress(ConnectionError):
                    end.sendall(head)
        attacked.check()


def test_clients_that_never_read_have_bounds(attacked):
    attacked.ask(*(send_to("T", bytes(100_000)) for _ in range(4)))
    asked = bytes_of(Codec(), *(pull_from("T", 0) for _ in range(100)))
    with ExitStack() as ends:
        for _ in range(scaled(30, 300)):
            end = ends.enter_context(attacked.dial())
            end.setblocking(False)
            end.sendall(bytes_of(Codec(), beat_of("greedy", "T")))
            with suppress(BlockingIOError, ConnectionError):
                for _ in range(20):
                    end.sendall(asked)
            attacked.check()


@pytest.fixture
def descriptors() -> Iterator[int]:
    """Has this process open as many as it may, and returns how many that is."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    yield hard
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_thousands_of_connections_are_served(attacked, descriptors):
    wanted = scaled(600, 5_000)
    if descriptors < wanted + 200:
        pytest.skip(f"a process may open {descriptors} files here; this takes {wanted + 200}")
    with ExitStack() as ends:
        many = [ends.enter_context(attacked.dial()) for _ in range(wanted)]
        for number, end in enumerate(many):
            end.sendall(bytes_of(Codec(), route_of("T")))
            if number % 100 == 0:
                attacked.check()
        for end in many:
            codec = Codec()
            bytes_of(codec, route_of("T"))
            assert answers(codec, end, 1)[0].code is ResponseCode.SUCCESS


def test_hostile_names_stay_in_the_store_or_are_refused(attacked, memory_path):
    before = {each.name for each in memory_path.iterdir()}
    for name in HOSTILE_NAMES:
        with Producer(attacked.serving.address) as producer, suppress(SeglogError, ValueError):
            producer.send(name, b"x")
        end, codec = attacked.dial(), Codec()
        with suppress(SeglogError):  # a name that no frame can hold
            end.sendall(bytes_of(codec, send_to(name), pull_from(name, 0), beat_of(name, name, name)))
            answers(codec, end, 3)
        end.close()
        attacked.check()
    assert {each.name for each in memory_path.iterdir()} == before
    store = memory_path / "s"
    outside = [each for each in store.rglob("*escape*") if not each.resolve().is_relative_to(store)]
    assert not outside


def test_bytes_of_other_protocols_are_answered_in_theirs_however_they_are_cut(attacked):
    dice = chance("other protocols")
    tails = [b" / HTTP/1.1\r\nHost: x\r\n\r\n", b"/ HTTP/1.1\r\n" + b"a: b\r\n" * 200 + b"\r\n", b"/\r\n\r\n"]
    for number in range(scaled(60, 2_000)):
        tls = b"\x16\x03" + bytes((dice.randrange(5),)) + dice.randbytes(dice.randrange(2, 600))
        proxy = b"PROXY TCP4 10.0.0.1 10.0.0.2 1 2\r\n" + dice.randbytes(dice.randrange(40))
        web = dice.choice(
            (b"GET ", b"HEAD ", b"POST ", b"PUT ", b"DELETE ", b"OPTIONS ", b"PATCH ")
        ) + dice.choice(tails)
        data, begin = dice.choice(((tls, b""), (proxy, b""), (web, b"HTTP/1.1 400 ")))
        cuts = sorted(dice.sample(range(1, len(data)), min(len(data) - 1, dice.randrange(4))))
        said = b""
        with attacked.dial() as end, suppress(ConnectionError):
            for start, stop in pairwise((0, *cuts, len(data))):
                end.sendall(data[start:stop])
            while piece := end.recv(4096):
                said += piece
        assert said.startswith(begin), data
        assert bool(said) == bool(begin), "what speaks another protocol gets no frame"
        if number % 40 == 0:
            attacked.check()


def test_random_bytes_and_random_hang_ups(attacked, record_property):
    seed = commit_seed()
    record_property("seed", seed)
    print(f"seed {seed}")
    dice = random.Random(seed)
    good = [
        bytes_of(Codec(), each)
        for each in (send_to("U"), pull_from("U", 0), route_of("U"), beat_of("c", "U"))
    ]
    for number in range(scaled(400, 50_000)):
        with attacked.dial() as end, suppress(ConnectionError, TimeoutError):
            data = bytearray().join(dice.choices(good, k=dice.randrange(1, 6)))
            for _ in range(dice.randrange(4)):
                data[dice.randrange(len(data))] = dice.randrange(256)
            end.sendall(data[: dice.randrange(1, len(data) + 1)])
            if dice.random() < 0.3:
                end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            elif dice.random() < 0.3:
                select.select([end], [], [], 0.01)
        if number % 40 == 0:
            attacked.check()
