"""A member of a group in a process of its own, which ends as a kill ends it; run by ``MemberProcess``.

    python -m tests.interop.clients.crashing NAME_SERVERS GROUP TOPIC

It prints a line for each message: its queue, its offset and its body.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Protocol

from seglog import ConsumeFrom, OrderlyConsumer
from seglog.broker.broker import Broker
from seglog.storage.format.record import Message
from tests.support.machine.children import end, start
from tests.support.machine.patience import join_thread
from tests.support.recording import RecordingLink

ROOT = Path(__file__).parents[3]


class CrashingMember(Protocol):
    """A member that can end without a word.

    Attributes:
        seen: Queue and offset of each message that it was given.
    """

    seen: list[tuple[int, int]]

    def crash(self) -> None:
        """Ends it: it gives nothing back, and says nothing to the broker."""


class MemberProcess:
    """A member in another process.

    Args:
        name_servers: Where the broker is found.
        group: Its group.
        topic: What it subscribes to.
    """

    def __init__(self, name_servers: str, group: str, topic: str) -> None:
        self.seen: list[tuple[int, int]] = []
        self._process = start(
            [sys.executable, "-m", __name__, name_servers, group, topic],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def crash(self) -> None:
        """Kills it."""
        self._process.kill()
        join_thread(self._reader)  # before its pipe is closed
        end(self._process)

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if line.endswith("\n"):  # a kill may cut the last one
                queue_id, queue_offset = map(int, line.split())
                self.seen.append((queue_id, queue_offset))


class MemberHere:
    """A member in this process, at a broker on virtual time."""

    def __init__(self, broker: Broker, group: str, topic: str) -> None:
        self.seen: list[tuple[int, int]] = []
        self._link = RecordingLink(broker)
        consumer = OrderlyConsumer(self._link, group, topic, self._note, consume_from=ConsumeFrom.FIRST)
        consumer.start()

    def crash(self) -> None:
        """Cuts it off, with all that it holds."""
        self._link.close()

    def _note(self, message: Message) -> None:
        self.seen.append((message.queue_id, message.queue_offset))


def main(name_servers: str, group: str, topic: str) -> None:
    """Consumes until it is killed, or has no parent any more."""

    def show(message: Message) -> None:
        # Each queue has a thread: print writes the parts of a line one by one, so two lines could mix.
        os.write(1, b"%d %d\n" % (message.queue_id, message.queue_offset))

    with OrderlyConsumer(name_servers, group, topic, show, consume_from=ConsumeFrom.FIRST) as consumer:
        consumer.start()
        sys.stdin.read()


if __name__ == "__main__":
    main(*sys.argv[1:])
