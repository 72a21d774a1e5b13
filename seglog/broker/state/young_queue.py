"""Whether a queue still has its first message in memory; then a group without an offset begins there.

Source: ``DefaultMessageStore.java checkInMemByConsumeOffset``.
"""

from __future__ import annotations

from seglog.broker.state.state import BrokerState


def is_young(state: BrokerState, topic: str, queue_id: int) -> bool:
    """Returns whether a queue still has its first message, and that message is hot."""
    store = state.store
    if store.min_offset(topic, queue_id) > 0:
        return False
    first = store.get(topic, queue_id, 0, 1)
    return bool(first.records) and store.max_phy_offset - first.messages[0].phy_offset <= state.hot_bytes
