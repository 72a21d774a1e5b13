"""Watches that plain reads are served without the method that knows everything, and find what it finds."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from seglog.storage.format.get_status import GetStatus
from seglog.storage.format.record.record import HEAD_V4
from seglog.storage.format.record.tombstone import LOST_FLAG
from seglog.storage.kernels import KERNELS, NATIVE
from seglog.storage.log.commit_log import CommitLog
from seglog.storage.reads.get import GetResult
from seglog.storage.reads.message_filter import TagFilter
from seglog.storage.reads.sequential_reads import PlainReads
from seglog.storage.store import MessageStore
from tests.support.machine.kernels import native
from tests.support.material.stores import SMALL

KINDS = ("usual", "empty", "lost", "filler")
"""``lost`` looks like a tombstone where its body is empty or zeros; ``filler`` only has the flag of one."""


def facts(result: GetResult) -> tuple[object, ...]:
    """What a read found; after damage the ways may cut what they found into runs at other records."""
    return (
        result.status, result.next_offset, result.min_offset, result.max_offset, result.lost, len(result),
        [bytes(record) for record in result.records], b"".join(result.runs),
    )  # fmt: skip


class Watched:
    """A store of which it is counted how often the method that knows everything is called.

    Args:
        store: The store; it must have been opened with native kernels for those to be watched.
        kernels: Whose plain reads are watched.
    """

    def __init__(self, store: MessageStore, kernels: str = NATIVE) -> None:
        self.store = store
        self.slow_calls = 0
        log = store._side.log
        store._reads.close()
        if kernels == NATIVE:
            module = native()
            if KERNELS != NATIVE or not isinstance(log, CommitLog):
                pytest.skip("this run has Python kernels, or a store opened for reading")
            store._reads = module.Reads(
                self._slow, GetResult, TagFilter, GetStatus.FOUND, GetStatus.NO_MATCHED_MESSAGE,
                log.tail, log.maps, (32, 128 << 20, 800),
            )  # fmt: skip
        else:
            store._reads = PlainReads(self._slow, log)
        self.get: Callable[..., GetResult] = store._reads.get

    def _slow(self, *arguments: Any, **named: Any) -> GetResult:
        self.slow_calls += 1
        return MessageStore.get(self.store, *arguments, **named)

    def is_plain(self, *arguments: Any, **named: Any) -> bool:
        """Reads in both ways; returns whether the plain way sufficed, with what it knew before."""
        expected = facts(MessageStore.get(self.store, *arguments, **named))
        before = self.slow_calls
        assert facts(self.get(*arguments, **named)) == expected
        return self.slow_calls == before


def put_kind(
    store: MessageStore, number: int, queue_id: int, tag: str | None, kind: str, body_bytes: int
) -> int:
    body = bytes(body_bytes) if kind in {"lost", "empty"} else b"%d" % number + b"b" * body_bytes
    flag = LOST_FLAG if kind in {"lost", "filler"} else 0
    phy_offset = store.put("T", body, queue_id=queue_id, tags=tag, flag=flag).phy_offset
    if kind == "lost":
        # No put makes a tombstone: its store host has port 0.
        first = phy_offset - phy_offset % SMALL["segment_size_bytes"]
        with (store.path / "commitlog" / f"{first:020}").open("r+b") as file:
            file.seek(phy_offset - first + HEAD_V4.offsets["store_port"])
            file.write(bytes(4))
    return phy_offset


def damage(root: Path, phy_offset: int) -> None:
    first = phy_offset - phy_offset % SMALL["segment_size_bytes"]
    path = root / "commitlog" / f"{first:020}"
    data = bytearray(path.read_bytes())
    data[phy_offset - first] ^= 0x55
    path.write_bytes(data)
    (root / "abort").touch()
