"""The duty that begins a new file of the offset history when the last one is long.

With very many offsets this takes a second, so it is not done during a save.
"""

from __future__ import annotations

from typing import ClassVar, Final

from typing_extensions import override

from seglog.broker.offsets.offsets import ConsumerOffsets
from seglog.clock import Clock
from seglog.schedule import Periodic

LOOK_MS: Final = 5_000


class HistoryTidying(Periodic):
    """Begins a new file of the offset history when the last has grown, looking every five seconds."""

    name: ClassVar[str] = "history-tidying"

    def __init__(self, clock: Clock, offsets: ConsumerOffsets) -> None:
        super().__init__(clock, LOOK_MS)
        self._offsets = offsets

    @override
    def is_needed(self) -> bool:
        return self._offsets.is_history_long

    @override
    def act(self) -> None:
        self._offsets.tidy()
