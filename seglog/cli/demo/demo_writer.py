"""The process that the demo kills: stores messages one by one, and prints each only when it is on the disk.

``python -m seglog.cli.demo.demo_writer STORE`` prints the queue offset of each message once it is durable,
and continues until it is killed.
"""

from __future__ import annotations

import os
import sys
from itertools import count
from typing import Final

from seglog.storage.store import MessageStore
from seglog.storage.writes import Durability

TOPIC: Final = "crash"
QUEUE_ID: Final = 0


def body_of(number: int) -> bytes:
    """Returns the body of the message with this queue offset, so that a reader can check the body."""
    return b"message %d of the process that was killed" % number


def main() -> None:
    """Writes until the process is killed."""
    with MessageStore.open(sys.argv[1], durability=Durability.SYNC) as store:
        for number in count(store.max_offset(TOPIC, QUEUE_ID)):
            result = store.put(TOPIC, body_of(number), queue_id=QUEUE_ID)
            os.write(sys.stdout.fileno(), b"%d\n" % result.queue_offset)


if __name__ == "__main__":
    main()
