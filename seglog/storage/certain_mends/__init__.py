"""Certain mends: changes of a record that a checksum, a queue unit or a second copy proves.

Holds one engine for opening a store and for repairing it: the old and new bytes of each mend, and its proof.
Nothing is changed on a guess; if two mends are possible, none is made.

Called by ``opening``, by audits (which call such records repairable), and by repairs.
Truth: a record's checksums, before units and entries that lead to it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from seglog.storage.certain_mends.bits import DamagedLog, mends_of_records
from seglog.storage.certain_mends.displaced import mends_of_displaced
from seglog.storage.certain_mends.from_attic import log_place as log_place
from seglog.storage.certain_mends.from_attic import mends_from_attic as mends_from_attic
from seglog.storage.certain_mends.heads import mends_of_identities
from seglog.storage.certain_mends.inner_batches import mends_of_inner_batches
from seglog.storage.certain_mends.lmq_offsets import mends_of_lmq_offsets
from seglog.storage.certain_mends.mend import Mend as Mend
from seglog.storage.certain_mends.properties import mends_of_tags
from seglog.storage.certain_mends.properties import property_bits as property_bits
from seglog.storage.certain_mends.seen_log import SeenLog
from seglog.storage.certain_mends.withheld import withhold as withhold
from seglog.storage.files.files import Files
from seglog.storage.files.rewrite import rewrite_record
from seglog.storage.survey.store_survey import Survey

MAX_ROUNDS: Final = 3
"""Rounds of surveys: a mended record may make a second mend possible; a third round was never needed."""


def mends_of_places(found: SeenLog, files: Files) -> list[Mend]:
    """Returns the mends of readable records that name a wrong queue, offset or number; makes none.

    Args:
        found: The log.
        files: The file layer of the store.
    """
    return [
        *mends_of_identities(found, files),
        *mends_of_lmq_offsets(found, files),
        *mends_of_inner_batches(found, files),
    ]


def mends_in_holes(found: DamagedLog, files: Files) -> list[Mend]:
    """Returns the mends of records in the holes of a log and at its torn end; makes none.

    Args:
        found: The log.
        files: The file layer of the store.
    """
    in_place = [*mends_of_records(found, files)]
    return [*in_place, *mends_of_displaced(found, files, in_place)]


def certain_mends(found: Survey, files: Files) -> list[Mend]:
    """Returns the mends of a surveyed log, without making them; reads nothing if nothing is wrong.

    Args:
        found: The survey.
        files: The file layer of the store, with its queues unchanged since the survey.
    """
    return [
        *mends_in_holes(damaged_log(found), files),
        *mends_of_places(found, files),
        *mends_of_tags(found, files),
    ]


def damaged_log(found: Survey) -> DamagedLog:
    """Returns the unreadable parts of a surveyed log."""
    return DamagedLog(
        found.root,
        found.geometry.segment_size_bytes,
        found.holes,
        found.max_phy_offset,
        found.scan.tail is not None,
        found.queues,
        found.batch_queues,
    )


def write_mend(found: Survey, files: Files, mend: Mend) -> None:
    """Writes one mend, durably."""
    segment = found.geometry.segment_size_bytes
    rewrite_record(files, found.root, segment, mend.phy_offset, mend.before, mend.after)


def mended_survey(
    found: Survey,
    files: Files,
    survey_again: Callable[[], Survey],
    note: Callable[[Survey, Sequence[Mend]], None],
) -> Survey:
    """Writes all certain mends and returns a survey of the mended store.

    Args:
        found: A survey; returned unchanged if there is nothing to mend.
        files: The file layer of the store; the caller may write there.
        survey_again: Surveys the store again.
        note: Called with mends before they are written, to keep the bytes that they overwrite.
    """
    for _round in range(MAX_ROUNDS):
        mends = certain_mends(found, files)
        if not mends:
            break
        note(found, mends)
        for mend in mends:
            write_mend(found, files, mend)
        found = survey_again()
    return found
