"""A broker for each test."""

from __future__ import annotations

import pytest

from tests.support.brokers import open_broker


@pytest.fixture
def broker(tmp_path):
    with open_broker(tmp_path / "store") as opened:
        yield opened
