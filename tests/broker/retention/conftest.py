"""A broker of small files on a disk that is as full as a test says."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from typing_extensions import override

from seglog.broker.broker import Broker
from seglog.broker.settings.config import BrokerConfig
from seglog.clock import VirtualClock
from seglog.storage.files.files import DiskUsage, RealFiles
from tests.support.material.stores import QUEUE_FILE_BYTES, SEGMENT_BYTES

ALWAYS = range(24)


class Disk(RealFiles):
    """A disk that is as full as it is told to be."""

    percent = 10

    @override
    def usage(self, path: Path) -> DiskUsage:
        return DiskUsage(self.percent << 30, (100 - self.percent) << 30)


@pytest.fixture
def disk() -> Disk:
    return Disk()


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock()


@pytest.fixture
def open_broker(tmp_path: Path, clock: VirtualClock, disk: Disk) -> Iterator[Callable[..., Broker]]:
    opened: list[Broker] = []

    def open_one(**settings: Any) -> Broker:
        usual: dict[str, Any] = {"retention_delete_hours": ALWAYS, "retention_hours": 72}
        config = BrokerConfig(**(usual | settings))
        is_new = not (tmp_path / "store").exists()
        broker = Broker.open(
            tmp_path / "store",
            clock=clock,
            config=config,
            files=disk,
            segment_size_bytes=SEGMENT_BYTES if is_new else None,
            queue_file_size_bytes=QUEUE_FILE_BYTES if is_new else None,
        )
        opened.append(broker)
        return broker

    yield open_one
    for broker in opened:
        broker.close()
