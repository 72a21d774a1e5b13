"""The page of a bench: its command, the machine, and the results."""

from __future__ import annotations

import os
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from perf.figures import machine


class Page:
    """Made before anything is measured, for the load of the machine that others make.

    Args:
        module: Of the bench, as it is called with ``python -m``.
        arguments: As they were given.
        path: Where it is written too; None for nowhere.
    """

    def __init__(self, module: str, arguments: Sequence[str], path: Path | None) -> None:
        self._call = f"python -m {module} {' '.join(arguments)}".rstrip()
        self._path = path
        self._load = os.getloadavg()[0]

    def say(self, title: str, lines: Sequence[str], *, java: str = "", more: str = "") -> None:
        """Prints the method and the results; and writes them to the page if one was requested.

        Args:
            title: Of the page.
            lines: What was found.
            java: Version of the Java that took part, empty if none did.
            more: What else is to be known of the machine, with what sets it apart.
        """
        load = f"load {self._load:.1f} to {os.getloadavg()[0]:.1f}"
        day = datetime.now(UTC).date().isoformat()
        text = "\n".join([f"`{self._call}`, {day}; {machine.describe(java)}, {load}{more}", "", *lines])
        print(text)
        if self._path is not None:
            self._path.write_text(f"# {title}\n{text}\n", encoding="utf-8")
