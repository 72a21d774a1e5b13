"""The records that a reader skips because a repair would change them: reported as repairable, not as lost.

A reader writes nothing, so it serves no record that a certain mend would change, by queue, by physical offset
or by key. If only the queue offset of a record is wrong, the read corrects it, and the record is served.

A readable record that names a wrong queue makes two queues look wrong. So the store is surveyed again with
the mends shown in its files (:mod:`seglog.storage.certain_mends.mended_files`): that survey has no findings
for the effects of the damage.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence

from seglog.storage.certain_mends.mend import Mend
from seglog.storage.certain_mends.mended_files import MendedFiles
from seglog.storage.certain_mends.repairable import name_repairable, repairable_offsets
from seglog.storage.files.files import Files
from seglog.storage.format.names import LMQ_PREFIX
from seglog.storage.overlay import QueueState
from seglog.storage.scan.conclusion import Conclusion, WalkedLog
from seglog.storage.scan.queue_overlays import Key
from seglog.storage.survey.store_survey import Survey
from seglog.storage.walk.queue_offsets import with_queue_offset

SurveyAgain = Callable[[Files], Survey]
"""Surveys the same store again, through other files."""


def withhold(found: Survey, mends: Sequence[Mend], files: Files, survey_again: SurveyAgain) -> Survey:
    """Returns a survey that withholds the records of mends; its findings report them as repairable.

    Args:
        found: A survey; returned unchanged if there is nothing to mend.
        mends: Its certain mends, which are not written.
        files: The file layer of the store.
        survey_again: Called if readable records have mends.
    """
    if not mends:
        return found
    restated = found.mended
    left_out = [mend for mend in mends if not _is_served_so(restated.get(mend.phy_offset), mend)]
    readable = [mend for mend in left_out if _is_readable(found, mend)]
    moved = not_restated(readable, found.queues)
    if moved:
        found = survey_again(MendedFiles(files, found.root, found.geometry.segment_size_bytes, moved))
    found.withheld = frozenset(mend.phy_offset for mend in left_out)
    found.repairable = repairable_offsets(left_out, found.queues, found.batch_queues)
    log = WalkedLog(found.holes, None, found.max_phy_offset, None, found.scan.last_store_ms)
    seen = Conclusion(found.findings, found.lost_in_holes, found.lost_tail, found.standing, found.replaced)
    seen = name_repairable(found, log, seen, mends, found.repairable, found.queues)
    found.findings, found.lost_in_holes, found.lost_tail = seen.findings, seen.lost_in_holes, seen.lost_tail
    return found


def not_restated(mends: Sequence[Mend], queues: Mapping[Key, QueueState]) -> list[Mend]:
    """Returns the mends of records that are not served at the right queue offset already.

    The other records make no queue look wrong; the findings about their wrong offsets stay.
    """
    restated: defaultdict[int, set[Key]] = defaultdict(set)
    for key, state in queues.items():
        for place in state.mended:
            restated[place].add(key)
    return [mend for mend in mends if not _is_in_right_queue(mend, restated[mend.phy_offset])]


def _is_in_right_queue(mend: Mend, queues: Collection[Key]) -> bool:
    """Returns whether a record is read at its right offset: in its own queue, or in a further one (LMQ)."""
    own = (mend.topic, mend.queue_id)
    return any(key == own or key[0].startswith(LMQ_PREFIX) for key in queues)


def _is_served_so(slot: int | None, mend: Mend) -> bool:
    """Returns whether reads, which correct the queue offset, serve the record as the mend would write it."""
    return slot is not None and with_queue_offset(memoryview(mend.before), slot) == mend.after


def _is_readable(found: Survey, mend: Mend) -> bool:
    """Returns whether the walk found the record of a mend; it did not if the record is in a hole."""
    in_hole = any(hole.phy_offset <= mend.phy_offset < hole.end for hole in found.holes)
    return not in_hole and mend.phy_offset < found.max_phy_offset
