"""Properties and topics by which copies of a message name their origin.

Source: ``MessageConst.java``, ``MixAll.java``, ``TopicValidator.java``, ``TimerMessageStore.java``.
"""

from __future__ import annotations

from typing import Final

ORIGIN_MESSAGE_ID: Final = "ORIGIN_MESSAGE_ID"
"""In retry and DLQ copies: id of the message that was consumed first; some clients write a unique key."""
RETRY_TOPIC: Final = "RETRY_TOPIC"
"""In retry and DLQ copies: the topic that the message was consumed from."""
DLQ_ORIGIN_MESSAGE_ID: Final = "DLQ_ORIGIN_MESSAGE_ID"
ORIGIN_GROUP: Final = "ORIGIN_GROUP"
"""In retry copies of pop consumers, whose topic names group and topic."""
TIMER_OUT_MS: Final = "TIMER_OUT_MS"
TIMER_DEL_UNIQKEY: Final = "TIMER_DEL_UNIQKEY"
"""In a record that cancels a timer message."""
PARKED_FROM: Final = "SEGLOG_PARKED_FROM"
"""In a parked copy: ``topic/queue@offset`` of the message."""
PARKED_ID: Final = "SEGLOG_PARKED_ID"
"""In a parked copy: the message id of the message."""
ERASED: Final = "SEGLOG_ERASED"
"""In a record whose body was erased."""

ID_PROPERTIES: Final = (ORIGIN_MESSAGE_ID, DLQ_ORIGIN_MESSAGE_ID, PARKED_ID)
"""Properties that may name the message from which a copy was made."""
