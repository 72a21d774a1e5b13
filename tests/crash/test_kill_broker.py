"""A broker that is killed at any moment loses nothing that waits, delivers it once, owns up to offsets."""

from __future__ import annotations

import subprocess
import sys
import textwrap
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from seglog.broker.broker import Broker
from seglog.broker.settings.config import BrokerConfig
from seglog.clock import SystemClock, VirtualClock
from seglog.storage.format.ours.offset_history import ChangeKind
from tests.support.crash.first_word import wait_for_first_word
from tests.support.machine.children import child
from tests.support.material.stores import read_all
from tests.support.narrow import not_none
from tests.support.scale import chance, scaled

ROOT = Path(__file__).resolve().parents[2]
LEVELS = "1s 2s 3s"
LIVES = max(2, scaled(3, 12))

# It numbers what it sends and commits, and says each in a line of the pipe once it is done.
BROKER = """
    import os, random, sys, threading
    from seglog.broker.broker import Broker
    from seglog.broker.settings.config import BrokerConfig
    from seglog.remoting.codes import RequestCode, ResponseCode
    from seglog.remoting.command import Request
    from seglog.remoting.headers import SendMessageHeader, UpdateConsumerOffsetHeader

    root, levels, number = sys.argv[1], sys.argv[2], int(sys.argv[3])
    broker = Broker.open(
        root, config=BrokerConfig(delay_levels=levels, persist_interval_ms=30),
        segment_size_bytes=1 << 20, queue_file_size_bytes=20_000)
    broker.groups.find("g")

    def ask(code, header, body=None):
        answer = broker.dispatch(Request(code, header, body))
        assert answer.code is ResponseCode.SUCCESS, answer
        return answer.header

    def send(topic, body, properties=b""):
        header = SendMessageHeader("pg", topic, "TBW102", 1, 0, 0, 0, 0, properties)
        return ask(RequestCode.SEND_MESSAGE_V2, header, body).queue_offset

    def delays():
        for each in range(number, number + 1_000_000):
            send("Later", b"%d" % each, b"DELAY\\x01%d\\x02" % random.randint(1, 3))
            os.write(1, b"later %d\\n" % each)
            threading.Event().wait(0.002)

    threading.Thread(target=delays, daemon=True).start()
    os.write(1, b"ready 0\\n")
    while True:
        offset = send("Now", b"x") + 1
        ask(RequestCode.UPDATE_CONSUMER_OFFSET, UpdateConsumerOffsetHeader("g", "Now", 0, offset))
        os.write(1, b"committed %d\\n" % offset)
        if offset % 50 == 0:
            broker.persist()
            os.write(1, b"saved %d\\n" % offset)
"""


@dataclass
class Killed:
    """One directory through many lives of its broker."""

    root: Path
    lives: int = 0
    sent: set[int] = field(default_factory=set)
    saved: int = 0
    committed: int = 0

    def live(self, delay_s: float) -> None:
        """Lets the broker run for a while, kills it and notes what it said."""
        command = [sys.executable, "-c", textwrap.dedent(BROKER), str(self.root), LEVELS]
        command.append(str(self.lives * 1_000_000))
        with child(command, cwd=ROOT, stdout=subprocess.PIPE) as broker:
            wait_for_first_word(broker)
            time.sleep(delay_s)
            broker.kill()
            lines = not_none(broker.stdout).read().decode().splitlines(keepends=True)
        self.lives += 1
        for word, number in (line.split() for line in lines if line.endswith("\n")):
            if word == "later":
                self.sent.add(int(number))
            elif word == "saved":
                self.saved = max(self.saved, int(number))
            elif word == "committed":
                self.committed = max(self.committed, int(number))


def opened(root, now_ms):
    return Broker.open(root, clock=VirtualClock(now_ms), config=BrokerConfig(delay_levels=LEVELS))


@pytest.mark.parametrize("seed", range(scaled(2, 10)))
def test_a_killed_broker_loses_nothing_due_delivers_it_once_and_tells_of_offsets(tmp_path, seed):
    dice, killed = chance("killed broker", seed), Killed(tmp_path / "store")
    for _ in range(LIVES):
        killed.live(dice.choice((0.0, 0.05, 0.3, 1.2, 2.4)))
        check_offsets(killed)
    while len(killed.sent) <= LIVES:
        killed.live(0.3)
        check_offsets(killed)
    with opened(killed.root, SystemClock().now_ms()) as broker:
        broker.advance("1m")
        delivered = Counter(int(message.body) for message in read_all(broker.store, "Later", 0))
    assert killed.sent <= delivered.keys(), "what was accepted for later has come"
    assert set(delivered.values()) == {1}, "and once, also what came shortly before a kill"


def check_offsets(killed):
    """Holds what a broker finds against what the one before it saved and wrote down."""
    # A copy would not do: the next life continues with what this one finds.
    with opened(killed.root, SystemClock().now_ms()) as broker:
        found = broker.offsets.query("g", "Now", 0) or 0
        assert killed.saved <= found <= killed.committed + 1
        broker.persist()
        changes = list(broker.offset_past.log("g"))
    stood = None
    for change in changes:
        if change.kind not in (ChangeKind.BEGIN, ChangeKind.STATE):
            assert stood in (None, change.before), "the history says of every move from where to where"
        stood = change.after
    assert (stood or 0) == found
    killed.saved = killed.committed = found
