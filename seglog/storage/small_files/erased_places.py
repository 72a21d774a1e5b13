"""``seglog/erased``: the records that were erased, so that none is restored from an older attic.

An erase writes the places of its records into ``seglog/erased/places.json`` before it changes the first of
them; the certificates in the same folder list them too. A file that cannot be read is ignored.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final, NamedTuple

from seglog.errors import CorruptError
from seglog.storage.files.files import Files
from seglog.storage.format.config import ConfigValue, decode_config
from seglog.storage.format.names import OURS
from seglog.storage.small_files.config_file import ConfigFile

ERASED_FOLDER: Final = f"{OURS}/erased"
_PLACES: Final = "places.json"
_COPIES: Final = "copies"


class ErasedPlace(NamedTuple):
    """An erased record; a later record at the same place is a different one."""

    phy_offset: int
    size_bytes: int
    topic: str
    queue_id: int
    queue_offset: int


def erased_places(files: Files, root: Path) -> set[ErasedPlace]:
    """Returns the erased records of a store, from its notes and certificates."""
    found: set[ErasedPlace] = set()
    for entry in files.list_dir(root / ERASED_FOLDER):
        if not entry.is_dir and entry.name.endswith(".json"):
            try:
                found.update(_places(decode_config(files.read_file(root / ERASED_FOLDER / entry.name))))
            except (CorruptError, OSError):
                continue
    return found


def note_erased(files: Files, root: Path, places: set[ErasedPlace]) -> None:
    """Writes down, durably, that records are erased.

    Args:
        files: The file layer of the store, whose lock the caller holds.
        root: The store directory.
        places: The records.
    """
    known = erased_places(files, root)
    if places <= known:
        return
    files.make_dirs(root / ERASED_FOLDER)
    fields = [_fields(place) for place in sorted(known | places)]
    ConfigFile(files, root / ERASED_FOLDER / _PLACES).save({"kind": "places", _COPIES: fields})


def _fields(place: ErasedPlace) -> Mapping[str | int, ConfigValue]:
    return {
        "store": "",
        "commitLogOffset": place.phy_offset,
        "size": place.size_bytes,
        "topic": place.topic,
        "queueId": place.queue_id,
        "queueOffset": place.queue_offset,
    }


def _places(value: ConfigValue) -> Iterator[ErasedPlace]:
    copies = value.get(_COPIES) if isinstance(value, Mapping) else None
    for copy in copies if isinstance(copies, list) else ():
        if not isinstance(copy, Mapping) or copy.get("store") != "":
            continue
        topic = copy.get("topic")
        numbers = [copy.get(name) for name in ("commitLogOffset", "size", "queueId", "queueOffset")]
        if isinstance(topic, str) and all(type(number) is int for number in numbers):
            at, size, queue_id, queue_offset = (number for number in numbers if isinstance(number, int))
            yield ErasedPlace(at, size, topic, queue_id, queue_offset)
