"""The duty that ends held pulls whose time has passed."""

from __future__ import annotations

from typing import ClassVar

from typing_extensions import override

from seglog.broker.pulls.held_pulls import HeldPulls
from seglog.broker.tasks.background_tasks import Duty


class HoldSweep(Duty):
    """Ends held pulls whose time has passed; every five seconds, those whose queue has grown too.

    It is woken when a pull comes that ends before all others.
    """

    name: ClassVar[str] = "hold-sweep"

    def __init__(self, held: HeldPulls) -> None:
        super().__init__()
        self._held = held
        held.due_earlier = self.wake

    @override
    def left_ms(self) -> float | None:
        return self._held.left_ms()

    @override
    def run(self) -> None:
        self._held.sweep()
