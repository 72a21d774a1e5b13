"""Certain mends: changes of a record that a checksum, a queue unit or a second copy proves.

Holds one engine for opening a store and for repairing it: which bytes would become which, and what proves it.
Nothing is changed on a guess; where two mends are possible, none is made.

Called by ``opening``, by audits (which call such records repairable), and by repairs.
Truth: a record's checksums, before what refers to it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from seglog.storage.certain_mends.bits import DamagedLog, mends_of_records
from seglog.storage.certain_mends.from_attic import log_place as log_place
from seglog.storage.certain_mends.from_attic import mends_from_attic as mends_from_attic
from seglog.storage.certain_mends.heads import mends_of_identities
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
"""A record that is whole again may let a second look see more; a third has never been needed."""


def mends_of_places(found: SeenLog, files: Files) -> list[Mend]:
    """Returns the mends of records that can be read and do not belong where they say; none of them made.

    Args:
        found: The log.
        files: Where the store is.
    """
    return [*mends_of_identities(found, files), *mends_of_lmq_offsets(found, files)]


def certain_mends(found: Survey, files: Files) -> list[Mend]:
    """Returns the mends of a surveyed log, none of them made; nothing is read where nothing is wrong.

    Args:
        found: The survey.
        files: Where the store is, its queues as the survey saw them.
    """
    return [
        *mends_of_records(damaged_log(found), files),
        *mends_of_places(found, files),
        *mends_of_tags(found, files),
    ]


def damaged_log(found: Survey) -> DamagedLog:
    """Returns what cannot be read of a surveyed log."""
    return DamagedLog(
        found.root,
        found.geometry.segment_size_bytes,
        found.holes,
        None if found.scan.tail is None else found.max_phy_offset,
        found.queues,
        found.batch_queues,
    )


def write_mend(found: Survey, files: Files, mend: Mend) -> None:
    """Makes one mend, durably."""
    segment = found.geometry.segment_size_bytes
    rewrite_record(files, found.root, segment, mend.phy_offset, mend.before, mend.after)


def mended_survey(
    found: Survey,
    files: Files,
    survey_again: Callable[[], Survey],
    note: Callable[[Survey, Sequence[Mend]], None],
) -> Survey:
    """Makes all certain mends and returns a survey of what they lead to.

    Args:
        found: A survey; returned as it is if there is nothing to mend.
        files: Where the store is; the caller may write there.
        survey_again: Looks at the store once more.
        note: Called with mends before they are made: keeps what they write over.
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
