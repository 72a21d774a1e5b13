"""The states in which the real store is handed a directory."""

from __future__ import annotations

import shutil


def as_is(_root):
    """As a clean stop, or a repair, left it."""


def crashed(root):
    """A crash after that, and no checkpoint: RocketMQ checks every record."""
    (root / "abort").write_bytes(b"")
    (root / "checkpoint").unlink(missing_ok=True)


def bare(root):
    """Nothing but the log: RocketMQ makes everything else again."""
    crashed(root)
    for name in ("consumequeue", "index"):
        shutil.rmtree(root / name)
