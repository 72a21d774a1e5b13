"""Which messages of a damaged store are untouched: those of which the log still has each byte."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from seglog.storage.format.names import COMMIT_LOG, segment_file_name
from tests.interop.judging.lines import Place, place
from tests.interop.judging.questions import Line


def record_bytes(
    root: Path, lines: Iterable[Line], segment_size_bytes: int, folders: Sequence[str] = (COMMIT_LOG,)
) -> dict[Place, bytes]:
    """Returns the bytes of the log that lines of a store lead to, by their places in the queues.

    Args:
        root: The store.
        lines: What RocketMQ serves of the undamaged store.
        segment_size_bytes: Length of a file of the log.
        folders: Where its files are.
    """
    logs: dict[str, bytes] = {}
    found = {}
    for line in lines:
        start = line["cqPos"] % segment_size_bytes
        name = segment_file_name(line["cqPos"] - start)
        if name not in logs:
            paths = [root / folder / name for folder in folders]
            logs[name] = next((path.read_bytes() for path in paths if path.is_file()), b"")
        found[place(line)] = logs[name][start : start + line["cqSize"]]
    return found
