"""A broker for each test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from seglog.broker.broker import Broker
from tests.support.brokers import open_broker


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Broker]:
    with open_broker(tmp_path / "store") as opened:
        yield opened
