"""Finds groups that no client uses any more, by the history of offsets."""

from __future__ import annotations

from seglog.broker.offsets.offset_history_query import OffsetPast


def idle_groups(past: OffsetPast, since_ms: int) -> frozenset[str]:
    """Returns the groups without a commit since a moment.

    If the history begins later than that moment, the result is empty. A group that reads a topic without new
    messages commits nothing either; ignoring it costs nothing, since it has consumed every message.
    """
    begin_ms = past.begin_ms
    if begin_ms is None or begin_ms > since_ms:
        return frozenset()
    newest: dict[str, int] = {}
    for change in past.blame():
        newest[change.group] = max(newest.get(change.group, 0), change.timestamp_ms)
    return frozenset(group for group, changed_ms in newest.items() if changed_ms < since_ms)
