"""Logs of compaction topics that were compacted and are damaged: rebuilt as if never compacted.

Messages of a gap cannot be put back one by one: a later one with an empty body, which took their key out, may
have been compacted away itself. So the whole queue is rebuilt where the commit log still has all of it;
RocketMQ compacts it again in time. Where retention took its beginning, what is whole stays as it is.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from seglog.doctor.parts.other_files import compaction_findings
from seglog.doctor.plans.actions import Action
from seglog.storage.compaction import compacted_queues
from seglog.storage.files import Files
from seglog.storage.format.names import segment_file_name
from seglog.storage.format.queue import COMPACTION, POSITION_FILE, encode_positions
from seglog.storage.survey import Survey

_DAMAGE: Final = frozenset({"compaction-pair", "compaction-file", "compaction-damaged"})


def mend_compacted(found: Survey, files: Files) -> Iterator[Action]:
    """Empties damaged queues that were compacted, so that recovery fills them; yields what it did.

    Args:
        found: A survey of the store.
        files: Where the store is.
    """
    positions = compacted_queues(files, found.root)
    if not positions:
        return
    damaged = {
        (parts[2], int(parts[3]))
        for finding in compaction_findings(
            files, found.root, found.all_queues, found.min_phy_offset, found.geometry
        )
        if finding.code in _DAMAGE
        for parts in [finding.file.split("/")]
    }
    for key in sorted(damaged & positions.keys()):
        rows = found.compaction_rows.get(key)
        state = found.compaction.get(key)
        if state is None or rows is None or not len(rows) or int(rows["queue_offset"][0]) > 0:
            continue
        if not state.damaged and not (state.files.logs | state.files.queues).keys() - state.kept:
            continue  # a queue file is rebuilt from its log file
        sizes = state.units.sizes
        for folder, names, size_bytes in (
            (state.files.log_directory, state.files.logs, sizes.log_bytes),
            (state.files.queue_directory, state.files.queues, sizes.queue_bytes),
        ):
            for first in names:
                files.remove(folder / segment_file_name(first))
            # An empty pair stays, for it shows how long files are.
            files.make_dirs(folder)
            files.create(folder / segment_file_name(0), size_bytes).close()
        del positions[key]
        files.write_file(found.root / COMPACTION / POSITION_FILE, encode_positions(positions).encode())
        name = state.files.log_directory.relative_to(found.root).as_posix()
        yield Action("compaction", name, detail="all of it, as if it had never been compacted")
