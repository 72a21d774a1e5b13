"""Tests of what both kernels do use the fixture ``kernels``."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.machine.kernels import BOTH, running


@pytest.fixture(scope="module", params=BOTH)
def kernels(request: pytest.FixtureRequest) -> Iterator[str]:
    with running(request.param):
        yield request.param
