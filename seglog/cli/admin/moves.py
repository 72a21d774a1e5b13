"""Prints moves of groups, planned and made ones."""

from __future__ import annotations

from collections.abc import Sequence

from seglog.cli.ui import changing, render
from seglog.doctor.groups import Move


def show_moves(moves: Sequence[Move], kind: str, *, is_applied: bool, as_json: bool) -> None:
    """Prints moves that are planned or were made."""
    columns = ("group", "queue", "before", "after", "effect")
    none = "every group is there already"
    listing = render.Listing(columns, numbers=("before", "after"), none=none, as_json=as_json)
    for move in moves:
        fields = {
            "kind": kind,
            "group": move.group,
            "topic": move.topic,
            "queueId": move.queue_id,
            "before": move.before,
            "after": move.after,
            "wanted": move.wanted,
            "minOffset": move.min_offset,
            "maxOffset": move.max_offset,
            "applied": is_applied,
        }
        queue = f"{move.topic}/{move.queue_id}"
        listing.add(fields, move.group, queue, move.before, move.after, _effect(move))
    listing.end()
    if not is_applied:
        changing.end_preview(as_json=as_json, is_needed=any(move.before != move.after for move in moves))


def _effect(move: Move) -> str:
    clamped = f", {move.wanted} is beyond the end" if move.is_clamped else ""
    if move.before is None:
        return f"begins{clamped}"
    apart = render.count_text(abs(move.after - move.before), "message")
    if move.after == move.before:
        return f"stays{clamped}"
    return f"{apart} {'skipped' if move.after > move.before else 'delivered again'}{clamped}"
