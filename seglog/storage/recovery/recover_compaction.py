"""Rewrites the records in the logs of compaction topics that differ from the commit log."""

from __future__ import annotations

from contextlib import closing

from seglog.storage.directory.log_files import LogReader
from seglog.storage.files import Files, write_over
from seglog.storage.format.queue.compaction import compaction_record
from seglog.storage.small_files.attic import Attic
from seglog.storage.survey.store_survey import Survey


def write_copies(found: Survey, files: Files, attic: Attic) -> None:
    """Rewrites, durably, the copies that differ from the commit log, and writes tombstones for lost ones.

    Args:
        found: A survey of the store.
        files: The file layer of the store.
        attic: Gets a copy of the bytes before they are overwritten.
    """
    with closing(LogReader(files, found.root, found.geometry.segment_size_bytes)) as reader:
        for state in found.compaction.values():
            for place in sorted(state.copies.keys() | state.lost.keys()):
                if place in state.lost:
                    record = state.lost[place].tombstone()
                else:
                    source, size_bytes = state.copies[place]
                    record = compaction_record(reader.read(source, size_bytes), place)
                path, position = state.place_in_log(place)
                before = state.read_log(files, place, len(record))
                attic.keep(path.relative_to(found.root).as_posix(), position, before)
                attic.sync()
                write_over(files, path, position, record)
