"""A process that puts numbered messages and says which are acknowledged, until it is killed.

Run as a module: ``python -m tests.support.kill_writer STORE DURABILITY FIRST BATCH``. One line with a number
goes to standard output after each acknowledgement; a pipe keeps it when the process dies.
"""

from __future__ import annotations

import os
import sys

from seglog.storage.flush import Durability
from seglog.storage.store import MessageStore
from tests.support.stores import QUEUE_FILE_BYTES, SEGMENT_BYTES

QUEUES = 2


def body_of(number: int) -> bytes:
    """Returns the body of a message: its number and a length of its own."""
    return b"%d:" % number + b"x" * (number * 37 % 700)


def main(path: str, durability: Durability, first: int, batch: int) -> None:
    """Puts messages from number ``first`` on, for ever."""
    with MessageStore.open(
        path,
        durability=durability,
        segment_size_bytes=SEGMENT_BYTES,
        queue_file_size_bytes=QUEUE_FILE_BYTES,
    ) as store:
        number = first
        while True:
            bodies = [body_of(number + later) for later in range(batch)]
            queue_id = number // batch % QUEUES
            if batch == 1:
                store.put("T", bodies[0], queue_id=queue_id)
            else:
                store.put_batch("T", bodies, queue_id=queue_id)
            number += batch
            os.write(1, b"%d\n" % (number - 1))


if __name__ == "__main__":
    main(sys.argv[1], Durability(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]))
