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
from tests.support.scale import chance

RELEASES = (toolchain.DEFAULT_VERSION, toolchain.NEWEST_VERSION)
DRAWN = chance("release of clients").choice(RELEASES)
"""That of the real broker where one is enough: each commit tries another."""
AT_ROCKETMQ = [
    pytest.param(one, marks=[pytest.mark.interop, *([] if one == DRAWN else [pytest.mark.campaign])])
    for one in RELEASES
]
"""Places of ``place``: the gate tries the one that is drawn."""
OURS = ("in process", "over connections")


@pytest.fixture(scope="session", params=[*OURS, *AT_ROCKETMQ])
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
