"""A client of the broker that records what it is asked, and can be cut."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from seglog.broker.broker import Broker
from tests.support.recording import RecordingLink, recording


@pytest.fixture
def link(broker: Broker) -> Iterator[RecordingLink]:
    with recording(broker, "127.0.0.1@1#first") as made:
        yield made
