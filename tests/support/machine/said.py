"""What the log says during a test that has no server.

Processes of tests do several files one after another, and share a logger. A server that a test shares with
others, or that closes a silent connection, says so at any time; it is not what this test has done.
"""

from __future__ import annotations

import pytest

_SERVER = "seglog.server"


def said(caplog: pytest.LogCaptureFixture) -> list[str]:
    """Returns the messages of all loggers but those of servers, in their order."""
    return [one.getMessage() for one in caplog.records if not one.name.startswith(_SERVER)]
