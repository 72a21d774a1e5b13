"""A member of a group in a process of its own, for ``test_ten_processes.py``; its listener hangs and raises.

    python -m tests.consumer.campaigns.member ADDRESS KIND NAME JOURNAL SEED TROUBLE

It appends what becomes of each message to a journal that all members share: a line is one write, so what is
before another one in the journal happened before it. It ends in order once its standard input does.
"""

from __future__ import annotations

import os
import random
import sys
import time
from pathlib import Path

from seglog import Consume, ConsumeFrom, OrderlyConsumer, PushConsumer
from seglog.storage.format.record import Message

GROUP = "g"
TOPIC = "T"


class Listener:
    """What is called with each message.

    Args:
        name: Of the member.
        journal: Where it notes what becomes of messages.
        seed: What its troubles come of.
        has_trouble: Whether it hangs, raises and asks for messages again.
    """

    def __init__(self, name: str, journal: Path, seed: str, *, has_trouble: bool) -> None:
        self._name = name
        self._journal = os.open(journal, os.O_WRONLY | os.O_APPEND)
        self._chance = random.Random(f"{seed} {name}")
        self._has_trouble = has_trouble

    def __call__(self, message: Message) -> Consume | None:
        place = message.body.decode()
        self._note("given", place)
        time.sleep(self._chance.choice([0, 0, 0.001, 0.01]))
        draw = self._chance.random() if self._has_trouble else 1.0
        if draw < 0.002:
            time.sleep(self._chance.choice([3, 12]))
        elif draw < 0.01:
            self._note("failed", place)
            raise self._chance.choice([RuntimeError, OSError, KeyError, SystemExit, KeyboardInterrupt])(
                "it fails"
            )
        elif draw < 0.02:
            self._note("failed", place)
            return Consume.RECONSUME_LATER
        self._note("done", place)
        return None

    def _note(self, what: str, place: str) -> None:
        os.write(self._journal, f"{what} {self._name} {place}\n".encode())


def main(address: str, kind: str, name: str, journal: str, seed: str, trouble: str) -> None:
    """Consumes until there is nothing more to read."""
    listener = Listener(name, Path(journal), seed, has_trouble=trouble == "True")
    made = {one.__name__: one for one in (OrderlyConsumer, PushConsumer)}[kind]
    with made(address, GROUP, TOPIC, listener, consume_from=ConsumeFrom.FIRST, suspend_ms=50) as consumer:
        consumer.start()
        sys.stdin.read()


if __name__ == "__main__":
    main(*sys.argv[1:])
