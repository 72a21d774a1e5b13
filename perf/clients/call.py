"""One call of a bench of clients: its options, its folder, its rounds, and the page that it writes."""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, TypeVar

from perf.contestants import rocketmq
from perf.figures import machine

_MIN_MESSAGES: Final = 64
R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class Call:
    """What a bench was called with, made by :meth:`of`.

    Attributes:
        text: The command.
        messages: Of each sample.
        rounds: How many are taken.
        why_alone: Why RocketMQ, and all that needs it, takes no part; None where it does.
        load: Of the machine in the last minute, before anything was measured.
    """

    text: str
    messages: int
    rounds: int
    why_alone: str | None
    load: float
    _parent: Path | None
    _page: Path | None

    @classmethod
    def of(cls, module: str, description: str | None, messages: int, arguments: Sequence[str]) -> Call:
        """Reads the options; ends the program where they are wrong.

        Args:
            module: Of the bench, as it is called with ``python -m``.
            description: Of the bench, for ``--help``.
            messages: Of each sample, by default.
            arguments: As they were given.
        """
        parser = argparse.ArgumentParser(prog=f"python -m {module}", description=description)
        parser.add_argument("--messages", type=int, default=messages, help="of each sample")
        parser.add_argument("--rounds", type=int, default=7)
        parser.add_argument(
            "--in-process", action="store_true", help="without RocketMQ, and all that needs it"
        )
        parser.add_argument("--dir", type=Path, help="where stores are made")
        parser.add_argument("--write", type=Path, metavar="FILE", help="write the table there too")
        options = parser.parse_args(arguments)
        if options.messages < _MIN_MESSAGES or options.rounds < 1:
            parser.error(f"--messages must be {_MIN_MESSAGES} or more, and --rounds 1 or more")
        load = os.getloadavg()[0]
        return cls(
            f"python -m {module} {' '.join(arguments)}".rstrip(),
            options.messages,
            options.rounds,
            "it was not asked for" if options.in_process else rocketmq.why_missing(),
            load,
            options.dir,
            options.write,
        )

    @contextmanager
    def folder(self) -> Iterator[Path]:
        """Lends a new folder for stores."""
        with tempfile.TemporaryDirectory(prefix="seglog-perf-", dir=self._parent) as path:
            yield Path(path)

    def take(self, take_round: Callable[[], R]) -> list[R]:
        """Takes the rounds, and says on stderr how far it is."""
        taken = []
        for number in range(self.rounds):
            taken.append(take_round())
            print(f"round {number + 1} of {self.rounds}", file=sys.stderr, flush=True)
        return taken

    def say(self, title: str, lines: Sequence[str]) -> None:
        """Prints what was found, below how it was measured; and writes it to a page if one was asked for.

        Args:
            title: Of the page.
            lines: What was found.
        """
        java = rocketmq.java_version() if self.why_alone is None else ""
        measured = f"{machine.describe(java)}, load {self.load:.1f} to {os.getloadavg()[0]:.1f}"
        text = "\n".join([f"`{self.text}`, {datetime.now(UTC).date().isoformat()}; {measured}", "", *lines])
        print(text)
        if self._page is not None:
            self._page.write_text(f"# {title}\n{text}\n", encoding="utf-8")
