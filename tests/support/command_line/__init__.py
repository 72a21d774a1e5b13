"""What the fixtures of the command line give to tests."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Protocol


@dataclass
class Ran:
    """What a command printed and how it ended."""

    exit_code: int
    stdout: str
    stderr: str
    stdout_bytes: bytes

    @property
    def lines(self) -> list[dict[str, Any]]:
        """Its output as JSON, line by line."""
        return [json.loads(line) for line in self.stdout.splitlines()]


class Seglog(Protocol):
    """Calls the command line with these arguments."""

    def __call__(self, *arguments: object, stdin: bytes | None = None) -> Ran: ...
