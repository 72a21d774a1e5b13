"""Drafts: a store's files that can be changed at will while the real ones stay as they are.

Changed pages are kept in memory and temporary files; ``changes`` says which bytes differ.

Called by repairs.
Truth: the real files below the draft.
"""

from __future__ import annotations

from seglog.doctor.draft.changes import CHANGED, CREATED, MADE, MOVED, REMOVED, Change

__all__ = [
    "CHANGED",
    "CREATED",
    "MADE",
    "MOVED",
    "REMOVED",
    "Change",
]
