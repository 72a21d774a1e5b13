"""Bytes that wait are written in their order, by the home or by a thread that asks."""

from __future__ import annotations

import random
import socket
import threading

import pytest

from seglog.client.links.outbox import Outbox
from tests.support.machine.patience import join_thread, looks

THREADS = 4
EACH = 300


class Written:
    """A home that runs when it is told to, over a socket that takes so many bytes."""

    def __init__(self):
        self.tasks, self.out, self.takes, self.kept = [], b"", 1 << 20, b""
        self.outbox = Outbox(self.tasks.append)
        self.outbox.open(self.write, self.write_now, lambda: len(self.kept))

    def write(self, data):
        self.kept += data[self.write_now(data) :]

    def write_now(self, data):
        taken = data[: self.takes]
        self.takes -= len(taken)
        self.out += taken
        return len(taken)

    def run(self):
        tasks, self.tasks[:] = list(self.tasks), []
        for task in tasks:
            task()

    def drain(self):
        self.takes = 1 << 20
        kept, self.kept = self.kept, b""
        self.out += kept


@pytest.fixture
def written():
    return Written()


def test_a_thread_that_is_alone_writes_without_its_home(written):
    written.outbox.put([b"ab", b"c"], is_alone=True)
    assert (written.out, written.tasks) == (b"abc", [])


def test_what_the_socket_does_not_take_is_written_by_the_home_before_all_that_follows(written):
    written.takes = 2
    written.outbox.put([b"abc"], is_alone=True)
    written.takes = 9
    written.outbox.put([b"d"], is_alone=True)
    assert written.out == b"ab"
    written.run()
    written.outbox.put([b"e"], is_alone=True)
    assert (written.out, written.tasks) == (b"abcde", [])


def test_nothing_goes_past_what_the_home_could_not_write(written):
    written.outbox.put([b"abc"])
    written.takes = 1
    written.run()
    written.takes = 9
    written.outbox.put([b"d"], is_alone=True)
    assert (written.out, written.kept, len(written.tasks)) == (b"a", b"bc", 1)
    written.drain()
    written.run()
    written.outbox.put([b"e"], is_alone=True)
    assert (written.out, written.tasks) == (b"abcde", [])


@pytest.mark.parametrize("end", ["pause", "drop"])
def test_where_it_is_not_open_nothing_is_written(written, end):
    getattr(written.outbox, end)()
    written.outbox.put([b"abc"], is_alone=True)
    written.run()
    assert written.out == b""


class FullSocket:
    """The home's side of a socket whose other end reads slowly."""

    def __init__(self, one):
        self.one, self.kept, self.tasks = one, b"", []

    def write_now(self, data):
        try:
            return self.one.send(data)
        except BlockingIOError:
            return 0

    def write(self, data):
        self.kept += data
        self.kept = self.kept[self.write_now(self.kept) :]

    def turn(self):
        while self.tasks:
            self.tasks.pop(0)()
        self.write(b"")


def put_many(outbox, name):
    chance = random.Random(name)
    for number in range(EACH):
        text = b"%d %d %s\n" % (name, number, b"x" * (number * 7 % 900))
        outbox.put([text[:3], text[3:]], is_alone=chance.random() < 0.7)


def read_lines(one, lines):
    with one.makefile("rb") as file:
        lines.extend(file.readline().split() for _ in range(THREADS * EACH))


def test_threads_and_home_keep_the_order_of_each_over_a_socket_that_is_full():
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4_096)
        ours.setblocking(False)
        home, lines = FullSocket(ours), []
        outbox = Outbox(home.tasks.append)
        outbox.open(home.write, home.write_now, lambda: len(home.kept))
        reader = threading.Thread(target=read_lines, args=(theirs, lines))
        threads = [threading.Thread(target=put_many, args=(outbox, name)) for name in range(THREADS)]
        for thread in [reader, *threads]:
            thread.start()
        for _ in looks("the end of what is read", idle_s=30, look_s=0.001):
            home.turn()
            if not reader.is_alive():
                break
        for thread in [reader, *threads]:
            join_thread(thread)
    for name in range(THREADS):
        numbers = [int(line[1]) for line in lines if line[0] == b"%d" % name]
        assert numbers == list(range(EACH))
