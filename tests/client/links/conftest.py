from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from seglog.client.home.thread_home import thread_home
from seglog.client.links.events import LinkEvent
from seglog.client.links.remote_link import RemoteLink


@pytest.fixture
def events() -> list[LinkEvent]:
    """What the links of ``link_to`` tell of their connections."""
    return []


@pytest.fixture
def link_to(events: list[LinkEvent]) -> Iterator[Callable[..., RemoteLink]]:
    """Makes links to name servers; they are closed in the end."""
    links: list[RemoteLink] = []

    def make(name_servers: str, **options: Any) -> RemoteLink:
        links.append(RemoteLink(name_servers, thread_home(), on_event=events.append, **options))
        return links[-1]

    yield make
    for link in links:
        link.close()
