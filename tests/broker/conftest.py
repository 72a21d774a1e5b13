"""A broker for each test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from seglog.broker.broker import Broker
from seglog.clock import VirtualClock
from tests.support.brokers import open_broker


@pytest.fixture
def clock() -> VirtualClock:
    """What the broker has; a file has one that begins elsewhere, if that matters."""
    return VirtualClock()


@pytest.fixture
def broker(tmp_path: Path, clock: VirtualClock) -> Iterator[Broker]:
    with open_broker(tmp_path / "store", clock) as opened:
        yield opened
