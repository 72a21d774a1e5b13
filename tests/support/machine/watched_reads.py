"""Watches that plain reads are served without the method that knows everything, and find what it finds."""

from __future__ import annotations

from collections.abc import Callable
from inspect import signature
from pathlib import Path
from typing import Any

import pytest
from typing_extensions import override

from seglog.storage.format.get_status import GetStatus
from seglog.storage.format.record.record import HEAD_V4
from seglog.storage.format.record.tombstone import LOST_FLAG
from seglog.storage.kernels import KERNELS, NATIVE
from seglog.storage.log.commit_log import CommitLog
from seglog.storage.reads.fast_reads import NativeReads
from seglog.storage.reads.get import GetResult
from seglog.storage.reads.message_filter import TagFilter
from seglog.storage.reads.queue_reader import QueueReader
from seglog.storage.reads.sequential_reads import PlainReads
from seglog.storage.store import MessageStore
from seglog.storage.writes.calls import PythonCalls
from tests.support.machine.kernels import native
from tests.support.material.stores import SMALL

KINDS = ("usual", "empty", "lost", "filler")
"""``lost`` looks like a tombstone where its body is empty or zeros; ``filler`` only has the flag of one."""


def facts(result: GetResult) -> tuple[object, ...]:
    """What a read found; behind damage the ways may cut what they found into runs at other records."""
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
        core = store._core
        store._reads.close()
        self._native: Callable[..., GetResult | None] | None = None
        if kernels == NATIVE:
            module = native()
            if KERNELS != NATIVE or not isinstance(core.log, CommitLog):
                pytest.skip("this run has Python kernels, or a store opened for reading")
            reads = module.Reads(
                GetResult, TagFilter, GetStatus.FOUND, GetStatus.NO_MATCHED_MESSAGE,
                core.log.tail, core.log.maps, (32, 128 << 20, 800),
            )  # fmt: skip
            store._reads, self._native = NativeReads(reads), reads.try_get
        else:
            store._reads = PlainReads(core.log)
        self._ordinary = QueueReader(core, store._readings, store._reads, store._check_open)
        store._queue_reader = self._counting()

    def get(self, *arguments: Any, **named: Any) -> GetResult:
        """Reads as the store does, by the reads that are watched."""
        found = None if self._native is None else self._native(*arguments, **named)
        return PythonCalls.get(self.store, *arguments, **named) if found is None else found

    def _counting(self) -> QueueReader:
        watched = self

        class Counting(QueueReader):
            @override
            def get(self, *arguments: Any, **named: Any) -> GetResult:
                watched.slow_calls += 1
                return watched._ordinary.get(*arguments, **named)

        return Counting(self.store._core, self.store._readings, self.store._reads, self.store._check_open)

    def _expected(self, *arguments: Any, **named: Any) -> GetResult:
        bound = signature(PythonCalls.get).bind(self.store, *arguments, **named)
        bound.apply_defaults()
        return self._ordinary.get(*bound.args[1:], **bound.kwargs)

    def is_plain(self, *arguments: Any, **named: Any) -> bool:
        """Reads in both ways; returns whether the plain way sufficed, with what it was told before."""
        expected = facts(self._expected(*arguments, **named))
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
