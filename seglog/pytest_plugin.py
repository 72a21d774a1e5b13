"""The fixture ``seglog_broker`` for tests of any project that has seglog installed.

A broker of its own for each test, on virtual time; see :mod:`seglog.testing`. Nothing of seglog is loaded
before a test asks for it.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from seglog.testing import VirtualBroker


@pytest.fixture
def seglog_broker(tmp_path: Path) -> Iterator[VirtualBroker]:
    """A RocketMQ-compatible broker without sockets, whose time the test moves.

    What it does by time it does in the thread of the test. Its store has threads as every store that is open
    for writing: they flush, index, seal and make files ahead, and end with the broker.
    """
    from seglog.testing import VirtualBroker  # loads the engine

    with VirtualBroker.at(tmp_path / "seglog-broker") as broker:
        yield broker
