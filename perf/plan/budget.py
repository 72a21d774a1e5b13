"""How much work a sample is: a smoke test at size 1, figures at size 4."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

FIGURES_SIZE: Final = 4.0
SAMPLE_S: Final = 3.0
"""Length of a sample where figures are wanted: several flushes, which come every half second, are in it."""
_MAX_BYTES_A_SECOND: Final = 1 << 30
_BESIDE_BODY_BYTES: Final = 116
"""What a bare message takes besides its body in our log and queue; every peer takes less."""


@dataclass(frozen=True, slots=True)
class Budget:
    """How much work a sample is.

    Args:
        size: 1 for a smoke test, 4 for figures.
        sample_s: Seconds of a sample of reads or writes where figures are wanted.
    """

    size: float
    sample_s: float = SAMPLE_S

    @property
    def is_smoke(self) -> bool:
        """Whether figures say nothing anyway."""
        return self.size < FIGURES_SIZE

    @property
    def seconds(self) -> float:
        """How long writes and reads are measured."""
        return 0.05 * self.size if self.is_smoke else self.sample_s

    @property
    def warm_up_seconds(self) -> float:
        """How long they run before."""
        return self.seconds / 2 if self.is_smoke else 0.5

    @property
    def first_warm_up_seconds(self) -> float:
        """How long a JVM does the work of a case, into logs that are not kept, before its first sample."""
        return 0.0 if self.is_smoke else 5.0

    @property
    def jvm_warm_up_seconds(self) -> float:
        """How long it runs before each sample, in the log of the sample."""
        return 1.25 * self.seconds if self.is_smoke else 1.0

    @property
    def max_stored_bytes(self) -> int:
        """Bytes of log and queue after which a write stops."""
        return int(self.size * (512 << 20) if self.is_smoke else self.sample_s * _MAX_BYTES_A_SECOND)

    def max_write_bytes(self, body_bytes: int) -> int:
        """Returns the body bytes after which a write of such bodies stops: the same for all contestants."""
        return self.max_stored_bytes * body_bytes // (body_bytes + _BESIDE_BODY_BYTES)

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

    @property
    def ready_bytes(self) -> int:
        """Bytes of memory to touch before a writer: what it and its warm-up, a quarter of that, may write."""
        return 0 if self.is_smoke else self.max_stored_bytes * 5 // 4

    @property
    def size_messages(self) -> int:
        """Messages of which bytes are counted."""
        return 64 * int(self.size * 64)

    @property
    def starts(self) -> int:
        """How often interpreters are started."""
        return 1 if self.is_smoke else 9
