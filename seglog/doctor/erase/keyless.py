"""Lost records without known keys, of which the attic or an undo pack still has bytes.

A tombstone has the keys of its record only if they could be read. Otherwise a search by key does not find it,
while its bytes may be in the attic and in undo packs.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from seglog.doctor.erase.pack_erase import pack_folders
from seglog.doctor.message.log_access import LogView
from seglog.doctor.undo.undo_reading import read_entries
from seglog.errors import CorruptError, FileKindError, UnsafePathError
from seglog.storage.certain_mends import log_place
from seglog.storage.files import Files
from seglog.storage.format.layout import I32
from seglog.storage.format.ours import UndoKind
from seglog.storage.format.record import LOST_FLAG, Message
from seglog.storage.small_files import JOURNAL, iter_kept


@dataclass(frozen=True, slots=True)
class Keyless:
    """A lost record without keys whose bytes are kept.

    Attributes:
        message: Its tombstone, with its message id.
        holds_text: Whether those bytes hold one of the texts.
    """

    message: Message
    holds_text: bool


def find_keyless(view: LogView, texts: Iterable[str], *, is_text_needed: bool) -> list[Keyless]:
    """Returns the lost records without keys whose bytes are kept, in log order.

    Args:
        view: The store.
        texts: Keys or ids that may be in these bytes.
        is_text_needed: Whether to return only records that hold one of the texts; if no kept bytes do, the
            log is not walked.
    """
    encoded = [re.escape(text.encode("utf-8", "surrogateescape")) for text in texts]
    wanted = re.compile(rb"(?<![\w-])(?:" + b"|".join(encoded) + rb")(?![\w-])")
    kept = _kept_of_log(view.files, view.root)
    if not any(wanted.search(data) or not is_text_needed for _phy_offset, data in kept):
        return []
    stones = _stones(view)
    found: dict[int, Keyless] = {}
    for phy_offset, data in _kept_of_log(view.files, view.root):
        for stone in stones:
            start = max(0, stone.phy_offset - phy_offset)
            part = data[start : max(start, stone.phy_offset + stone.size_bytes - phy_offset)]
            if any(part):
                known = found.get(stone.phy_offset)
                holds = wanted.search(part) is not None or (known is not None and known.holds_text)
                found[stone.phy_offset] = Keyless(stone, holds)
    return [found[at] for at in sorted(found) if found[at].holds_text or not is_text_needed]


def _stones(view: LogView) -> list[Message]:
    places = view.scan([I32.pack(LOST_FLAG)]).phy_offsets
    stones = [message for message in map(view.message_at, places) if message is not None]
    return [one for one in stones if one.is_tombstone and not one.keys and not one.unique_key]


def _kept_of_log(files: Files, root: Path) -> Iterator[tuple[int, bytes]]:
    """Yields the bytes of the log in the attic and in undo packs, with their physical offsets."""
    for kept in iter_kept(files, root):
        place = log_place(kept.name, kept.position_bytes)
        if place is not None:
            yield place, kept.data
    for folder in pack_folders(files, root):
        try:
            for _at, entry in read_entries(files, folder / JOURNAL):
                place = log_place(entry.path, entry.position_bytes) if entry.kind is UndoKind.BYTES else None
                if place is not None:
                    yield place, entry.data
        except (CorruptError, UnsafePathError, FileKindError):
            continue  # it belongs to an erase
