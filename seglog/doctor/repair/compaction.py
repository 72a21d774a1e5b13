"""Damaged logs of compaction topics that were already compacted: rebuilt as if never compacted.

The messages of a gap cannot be restored one by one: a later message with an empty body, which deleted their
key, may itself have been compacted away. So the whole queue is rebuilt if the commit log still has all of its
messages; RocketMQ compacts it again later. If retention removed the first of them, the undamaged part is
kept.
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
    """Empties damaged queues that were compacted, so that recovery fills them; yields the actions.

    Args:
        found: A survey of the store.
        files: Access to the store.
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
            continue  # recovery rebuilds a queue file from its log file
        sizes = state.units.sizes
        for folder, names, size_bytes in (
            (state.files.log_directory, state.files.logs, sizes.log_bytes),
            (state.files.queue_directory, state.files.queues, sizes.queue_bytes),
        ):
            for first in names:
                files.remove(folder / segment_file_name(first))
            # An empty pair of files is kept, because it shows the length of the files.
            files.make_dirs(folder)
            files.create(folder / segment_file_name(0), size_bytes).close()
        del positions[key]
        files.write_file(found.root / COMPACTION / POSITION_FILE, encode_positions(positions).encode())
        name = state.files.log_directory.relative_to(found.root).as_posix()
        yield Action("compaction", name, detail="all of it, as if it had never been compacted")
