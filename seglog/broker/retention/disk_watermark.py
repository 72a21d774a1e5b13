"""Refuses sends while the disk is nearly full, so that the broker can still serve the stored messages.

Sends are refused when the disk is fuller than one mark, and accepted again when it is no fuller than a lower
mark; between the two nothing changes. Retention reports how full the disk is, and the groups that keep it
from making space.

Source: ``DefaultMessageStore.java isSpaceToDelete``, ``SendMessageProcessor.java handlePutMessageResult``.
"""

from __future__ import annotations

from pathlib import Path

from seglog.errors import FullError
from seglog.text import shell_text


class DiskGate:
    """The gate of one broker. Any thread may pass it.

    Args:
        root: The store directory, for the advice.
        refuse_percent: On a fuller disk sends are refused.
        open_percent: At or below this percentage they are accepted again.

    Attributes:
        is_shut: Whether sends are refused.
    """

    def __init__(self, root: Path, refuse_percent: int, open_percent: int) -> None:
        self._root = root
        self._refuse_percent = refuse_percent
        self._open_percent = open_percent
        self._used_percent = 0
        self.is_shut = False
        self._holder = ""

    def look(self, used_percent: int) -> None:
        """Notes how full the disk is now."""
        self._used_percent = used_percent
        if used_percent > self._refuse_percent:
            self.is_shut = True
        elif used_percent <= self._open_percent:
            self.is_shut = False

    def hold(self, holder: str) -> None:
        """Notes the groups that keep the log from being deleted; an empty text for none."""
        self._holder = holder

    def check(self) -> None:
        """Does nothing while there is space.

        Raises:
            FullError: The disk is too full; the error says why retention makes no space.
        """
        if not self.is_shut:
            return
        ratio = f"{self._used_percent / 100:5.2f}"
        text = (
            "service not available now. It may be caused by one of the following reasons: the broker's disk"
            f" is full [CL: {ratio} CQ: {ratio} INDEX: {ratio}]"
        )
        plan = f"seglog retention plan {shell_text(self._root)}"
        if self._holder:
            text += f"; retention keeps what is needed by {self._holder}: run `{plan}`"
        raise FullError(text, help=f"free space, or see with `{plan}` who keeps the log from being deleted")
