"""How much work a sample is: a smoke test at size 1, figures at size 4."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

FIGURES_SIZE: Final = 4.0


@dataclass(frozen=True, slots=True)
class Budget:
    """How much work a sample is.

    Args:
        size: 1 for a smoke test, 4 for figures.
    """

    size: float

    @property
    def is_smoke(self) -> bool:
        """Whether figures say nothing anyway."""
        return self.size < FIGURES_SIZE

    @property
    def seconds(self) -> float:
        """How long writes and reads are measured."""
        return 0.05 * self.size if self.is_smoke else 0.2 * self.size

    @property
    def warm_up_seconds(self) -> float:
        """How long they run before."""
        return self.seconds / 2

    @property
    def first_warm_up_seconds(self) -> float:
        """How long a JVM runs before, in its first round of a case; it stays for the other rounds."""
        return 2 * self.seconds if self.is_smoke else 4.0

    @property
    def next_warm_up_seconds(self) -> float:
        """How long it runs before in each later round."""
        return 1.25 * self.seconds

    @property
    def max_write_bytes(self) -> int:
        """Body bytes after which a write stops."""
        return int(self.size * (512 << 20))

    @property
    def read_bytes(self) -> int:
        """Body bytes of the store that is read."""
        return int(self.size * ((4 << 20) if self.is_smoke else (16 << 20)))

    @property
    def store_bytes(self) -> int:
        """Body bytes of the store that is surveyed."""
        return int(self.size * ((4 << 20) if self.is_smoke else (64 << 20)))

    @property
    def reopen_bytes(self) -> int:
        """Body bytes of the store that is opened again: 1 GiB where figures are wanted."""
        return int(self.size * ((16 << 20) if self.is_smoke else (256 << 20)))

    @property
    def latency_bytes(self) -> int:
        """Body bytes that are written to time single calls: six files of the log where figures are wanted."""
        return int(self.size * ((16 << 20) if self.is_smoke else (96 << 20)))

    @property
    def memory_bytes(self) -> int:
        """Body bytes that are written and read to see how much memory that takes: 4 GiB for figures."""
        return int(self.size * ((256 << 20) if self.is_smoke else (1 << 30)))

    def ready_bytes(self, body_bytes: int) -> int:
        """Returns bytes of memory to touch before a writer of such bodies: what the fastest one writes."""
        return 0 if self.is_smoke else int(self.size * ((256 << 20) if body_bytes < 1 << 10 else 512 << 20))

    @property
    def size_messages(self) -> int:
        """Messages of which bytes are counted."""
        return 64 * int(self.size * 64)

    @property
    def starts(self) -> int:
        """How often interpreters are started."""
        return 1 if self.is_smoke else 9
