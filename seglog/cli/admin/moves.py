"""How moves of groups look, those that are planned and those that were made."""

from __future__ import annotations

from collections.abc import Sequence

from seglog.cli.ui import render
from seglog.doctor.groups import Move


def show_moves(moves: Sequence[Move], kind: str, *, is_done: bool, as_json: bool) -> None:
    """Prints moves that were made or are planned."""
    rows: list[tuple[str, ...]] = []
    for move in moves:
        if as_json:
            render.emit(
                {
                    "kind": kind,
                    "group": move.group,
                    "topic": move.topic,
                    "queueId": move.queue_id,
                    "before": move.before,
                    "after": move.after,
                    "wanted": move.wanted,
                    "minOffset": move.min_offset,
                    "maxOffset": move.max_offset,
                    "applied": is_done,
                }
            )
        before = "-" if move.before is None else str(move.before)
        queue = f"{render.printable(move.topic)}/{move.queue_id}"
        rows.append((render.printable(move.group), queue, before, str(move.after), _effect(move)))
    if as_json:
        return
    if not rows:
        render.say("every group is there already")
        return
    render.table(("group", "queue", "before", "after", "effect"), rows, numbers=("before", "after"))
    if not is_done:
        render.say("nothing was changed; --apply does it")


def _effect(move: Move) -> str:
    clamped = f", {move.wanted} is beyond the end" if move.is_clamped else ""
    if move.before is None:
        return f"begins{clamped}"
    apart = render.count_text(abs(move.after - move.before), "message")
    if move.after == move.before:
        return f"stays{clamped}"
    return f"{apart} {'skipped' if move.after > move.before else 'delivered again'}{clamped}"
