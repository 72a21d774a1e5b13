"""Undo packs: all data that is needed to undo one repair, bit for bit.

Holds their journal, which is written before a repair, and read and checked as a whole before an undo step.
Called by ``plans`` and ``seglog undo``.
Truth: a pack whose checksums are right; any other pack is reported and set aside.
"""

from seglog.doctor.undo.undo import undo_repair as undo_repair
from seglog.doctor.undo.undo_pack import UndoPack as UndoPack
from seglog.doctor.undo.undo_pack import list_packs as list_packs
from seglog.doctor.undo.undo_pack import other_names as other_names
from seglog.doctor.undo.undo_reading import read_whole as read_whole
from seglog.doctor.undo.undo_writing import discard_pack as discard_pack
