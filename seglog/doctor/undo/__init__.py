"""Undo packs: all that is needed to take one repair back, bit for bit.

Holds their journal, written before a repair and read whole before a step back is taken.

Called by ``plans`` and ``seglog undo``.
Truth: a pack whose checksums hold; any other is named and set aside.
"""

from __future__ import annotations

from seglog.doctor.undo.undo import undo_repair
from seglog.doctor.undo.undo_pack import UndoPack, list_packs, other_names
from seglog.doctor.undo.undo_reading import read_whole
from seglog.doctor.undo.undo_writing import discard_pack

__all__ = [
    "UndoPack",
    "discard_pack",
    "list_packs",
    "other_names",
    "read_whole",
    "undo_repair",
]
