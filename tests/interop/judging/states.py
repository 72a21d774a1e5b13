"""The states in which the real store is handed a directory."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Final

from tests.support.scale import chance, is_gate

State = Callable[[Path], None]


def as_is(_root: Path) -> None:
    """As a clean stop, or a repair, left it."""


def crashed(root: Path) -> None:
    """A crash after that, and no checkpoint: RocketMQ checks every record."""
    (root / "abort").write_bytes(b"")
    (root / "checkpoint").unlink(missing_ok=True)


def bare(root: Path) -> None:
    """Nothing but the log: RocketMQ makes everything else again."""
    crashed(root)
    for name in ("consumequeue", "index"):
        shutil.rmtree(root / name)


STATES: Final = (as_is, crashed, bare)


def states_of(
    row: str, rows: Iterable[str], states: Sequence[State] = STATES, *, in_all: int = 0
) -> Sequence[State]:
    """Returns the states in which a row of a table is tried: all of them but in the gate.

    There each row is tried in one, which the commit draws.

    Args:
        row: The name of the row.
        rows: The names of all.
        states: Those that there are for it.
        in_all: How many rows the gate tries in all states, others with each commit.
    """
    names = sorted(rows)
    if not is_gate() or row in chance("rows in all states", *names).sample(names, in_all):
        return states
    return [chance("state", row, *names).choice(states)]
