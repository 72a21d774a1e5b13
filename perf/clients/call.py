"""One call of a bench of clients: its options, its folder, its rounds, and the page that it writes."""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeVar

from perf.contestants import rocketmq
from perf.figures.page import Page

_MIN_MESSAGES: Final = 64
R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class Call:
    """The arguments of a bench, made by :meth:`of`.

    Attributes:
        messages: Of each sample.
        rounds: How many are taken.
        why_alone: Why RocketMQ, and all that needs it, takes no part; None where it does.
    """

    messages: int
    rounds: int
    why_alone: str | None
    _parent: Path | None
    _page: Page

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
        page = Page(module, arguments, options.write)
        return cls(
            options.messages,
            options.rounds,
            "it was not asked for" if options.in_process else rocketmq.why_missing(),
            options.dir,
            page,
        )

    @contextmanager
    def folder(self) -> Iterator[Path]:
        """Lends a new folder for stores."""
        with tempfile.TemporaryDirectory(prefix="seglog-perf-", dir=self._parent) as path:
            yield Path(path)

    def take(self, take_round: Callable[[], R]) -> list[R]:
        """Takes the rounds."""
        return take_rounds(self.rounds, lambda _number: take_round())

    def say(self, title: str, lines: Sequence[str]) -> None:
        """Prints the method and the results; and writes them to a page if one was requested.

        Args:
            title: Of the page.
            lines: What was found.
        """
        self._page.say(title, lines, java=rocketmq.java_version() if self.why_alone is None else "")


def take_rounds(count: int, take_round: Callable[[int], R]) -> list[R]:
    """Takes rounds, each given its number from 0 on, and says on stderr how far it is."""
    taken = []
    for number in range(count):
        taken.append(take_round(number))
        print(f"round {number + 1} of {count}", file=sys.stderr, flush=True)
    return taken
