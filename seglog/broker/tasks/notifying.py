"""The duty that sends postponed notices when they are due."""

from __future__ import annotations

from typing import ClassVar

from typing_extensions import override

from seglog.broker.tables.notices import Notices
from seglog.schedule import Duty


class Notifying(Duty):
    """Notifies groups whose members changed again within 100 ms of the last notice."""

    name: ClassVar[str] = "notices"

    def __init__(self, notices: Notices) -> None:
        super().__init__()
        self._notices = notices
        notices.due_earlier = self.wake

    @override
    def left_ms(self) -> float | None:
        return self._notices.left_ms()

    @override
    def run(self) -> None:
        self._notices.send_due()
