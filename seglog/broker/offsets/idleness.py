"""Groups that no client uses any more, by the history of offsets."""

from __future__ import annotations

from seglog.broker.offsets.offset_history_query import OffsetPast


def idle_groups(past: OffsetPast, since_ms: int) -> frozenset[str]:
    """Returns the groups that have committed nothing from a moment on.

    A history that begins later cannot show it: then there are none. A group that reads a silent topic commits
    nothing either; it is not hurt, since it has passed every message.
    """
    begin_ms = past.begin_ms
    if begin_ms is None or begin_ms > since_ms:
        return frozenset()
    newest: dict[str, int] = {}
    for change in past.blame():
        newest[change.group] = max(newest.get(change.group, 0), change.timestamp_ms)
    return frozenset(group for group, changed_ms in newest.items() if changed_ms < since_ms)
