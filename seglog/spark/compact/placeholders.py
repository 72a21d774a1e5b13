"""Placeholders: what keeps the queue offset of a message that was dropped.

The record that RocketMQ takes for a message of the same queue and offset: head of the dropped one (times,
hosts, flags of the addresses), no body, and of the properties only ``SEGLOG_COMPACTED=1``. Readers know it
by its ``flag`` and that property. It is never longer than the record that it stands for; where the mark would
make it so, the mark is left out.

:mod:`seglog.storage.kernels.record_moves` writes them.
"""

from __future__ import annotations

from typing import Final

from seglog.storage.format.record import PLACEHOLDER_FLAG, PLACEHOLDER_MARK
from seglog.storage.kernels.record_facts import PlaceholderMark

MARK: Final = PlaceholderMark(PLACEHOLDER_FLAG, PLACEHOLDER_MARK)
