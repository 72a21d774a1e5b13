"""Placeholders: records that keep the queue offset of a message that was dropped.

RocketMQ reads a placeholder as a message of the same queue and offset. It has the head of the dropped record
(times, hosts, flags of the addresses), no body, and ``SEGLOG_COMPACTED=1`` as its only property. Readers
recognize it by its ``flag`` and that property. It is never longer than the dropped record; if the property
would make it longer, the property is left out.

:mod:`seglog.storage.kernels.record_moves` writes placeholders.
"""

from __future__ import annotations

from typing import Final

from seglog.storage.format.record import PLACEHOLDER_FLAG, PLACEHOLDER_MARK
from seglog.storage.kernels.record_facts import PlaceholderMark

MARK: Final = PlaceholderMark(PLACEHOLDER_FLAG, PLACEHOLDER_MARK)
