"""Large stores for tests of memory: long files that are mostly holes, and many small messages.

Run as a module it makes one: ``python -m tests.support.material.big_stores sparse STORE SEGMENTS`` or
``python -m tests.support.material.big_stores small STORE MESSAGES``.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from perf.stores.made_store import make_store, record_dtype
from seglog.storage.format.names import COMMIT_LOG, segment_file_name
from seglog.storage.store import MessageStore
from seglog.storage.writes.flush import Durability

SPARSE_SEGMENT_BYTES: Final = 1 << 30
SPARSE_BODY_BYTES: Final = 2048
SPARSE_MESSAGES: Final = 1500
"""Of a segment: about 3 MiB."""
SMALL_BODY_BYTES: Final = 64
_QUEUES: Final = 4
_BATCH: Final = 2000


def make_sparse(root: Path, segments: int) -> None:
    """Makes segments of 1 GiB with 3 MiB of records each, after which a filler takes the rest."""
    make_store(root, segments * SPARSE_MESSAGES, SPARSE_BODY_BYTES, SPARSE_SEGMENT_BYTES, SPARSE_MESSAGES)


def damage(root: Path, segments: Sequence[int]) -> None:
    """Damages a record of each of these segments: its body, size or magic, or a page of zeros, in turn."""
    size = record_dtype(SPARSE_BODY_BYTES).itemsize
    start = (SPARSE_MESSAGES // 2) * size
    for number, segment in enumerate(segments):
        path = root / COMMIT_LOG / segment_file_name(segment * SPARSE_SEGMENT_BYTES)
        with path.open("r+b") as file:
            place, mask = ((start + size // 2, 0x10), (start, 0x20), (start + 4, 1), (start, 0))[number % 4]
            file.seek(place)
            held = file.read(1)[0]
            file.seek(place)
            file.write(bytes([held ^ mask]) if mask else bytes(4096))


def make_small(root: Path, messages: int) -> None:
    """Puts messages of 64 bytes into four queues, in batches."""
    bodies = [b"%064d" % number for number in range(_BATCH)]
    with MessageStore.open(root, durability=Durability.ASYNC) as store:
        for number in range(-(-messages // _BATCH)):
            left = messages - number * _BATCH
            store.put_batch("Small", bodies[:left], queue_id=number % _QUEUES)


if __name__ == "__main__":
    kind, folder, count = sys.argv[1:]
    {"sparse": make_sparse, "small": make_small}[kind](Path(folder), int(count))
