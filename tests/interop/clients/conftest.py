from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.interop.judging import toolchain
from tests.interop.judging.places import (
    Place,
    place_in_process,
    place_of_rocketmq,
    place_over_connections,
)

RELEASES = (toolchain.DEFAULT_VERSION, toolchain.NEWEST_VERSION)
OURS = ("in process", "over connections")


@pytest.fixture(
    scope="session", params=[*OURS, *(pytest.param(one, marks=pytest.mark.interop) for one in RELEASES)]
)
def place(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    """A broker that clients use: each test has topics and groups of its own."""
    path = tmp_path_factory.mktemp("place") / "store"
    if request.param == "in process":
        made = place_in_process(path)
    elif request.param == "over connections":
        made = place_over_connections(path)
    else:
        request.getfixturevalue("judge")  # it skips, or fails, where there is no Java
        made = place_of_rocketmq(path, request.param)
    with made as lent:
        yield lent


@pytest.fixture
def topic(place: Place) -> str:
    """A new topic of four queues."""
    return place.make_topic(place.new_name("T"))


@pytest.fixture
def group(place: Place) -> str:
    """A group that no other test has."""
    return place.new_name("g")
