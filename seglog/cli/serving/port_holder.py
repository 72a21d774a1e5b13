"""Finds the process that listens on a port: on Linux, among processes that the user may inspect.

Source: ``proc(5)``, ``/proc/net/tcp``: the socket's number is the tenth field, and the name of a descriptor.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

from seglog.text import printable

_PROC: Final = Path("/proc")
_LISTENS: Final = "0A"
_ADDRESS, _STATE, _NUMBER = 1, 3, 9


def port_holder(port: int) -> str | None:
    """Returns the process that listens on a TCP port, such as ``process 4242 (java)``; None if not found.

    Args:
        port: The port, of any interface.
    """
    wanted = {f"socket:[{number}]" for number in _listening(port)}
    if not wanted:
        return None
    for process in _PROC.glob("[0-9]*"):
        with suppress(OSError):  # the process has ended, or belongs to another user
            for descriptor in (process / "fd").iterdir():
                if str(descriptor.readlink()) in wanted:
                    return f"process {process.name} ({printable((process / 'comm').read_text().strip())})"
    return None


def _listening(port: int) -> Iterator[str]:
    """Yields the numbers of the sockets that listen on a port."""
    for name in ("tcp", "tcp6"):
        with suppress(OSError):
            for line in (_PROC / "net" / name).read_text().splitlines()[1:]:
                fields = line.split()
                if fields[_STATE] == _LISTENS and int(fields[_ADDRESS].rpartition(":")[2], 16) == port:
                    yield fields[_NUMBER]
