"""Records of the log that are written again: the certain mends, and records from the attic."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from seglog.doctor.draft.draft_files import DraftFiles
from seglog.doctor.plans.actions import Action
from seglog.storage.certain_mends import Mend, mended_survey, mends_from_attic, write_mend
from seglog.storage.format.ranges import ranges_of
from seglog.storage.scan import forget_lost
from seglog.storage.seals import retire_seals
from seglog.storage.small_files import Attic
from seglog.storage.survey import Survey, survey


def mend_records(found: Survey, draft: DraftFiles) -> tuple[Survey, list[Action]]:
    """Makes the mends that are certain and those that the attic proves.

    Args:
        found: A survey of the store.
        draft: The draft to change.

    Returns:
        A survey of the changed draft, and the actions.
    """
    done: list[Action] = []
    found = mended_survey(
        found,
        draft,
        lambda: survey(found.root, draft),
        lambda seen, mends: done.extend(_action(seen, mend) for mend in mends),
    )
    if recalled := recall(found, draft):
        done += [_action(found, mend) for mend in recalled]
        found = survey(found.root, draft)
    return found, done


def recall(found: Survey, draft: DraftFiles) -> list[Mend]:
    """Restores records that an opening gave up and that the attic proves; returns them."""
    segment = found.geometry.segment_size_bytes
    recalled = mends_from_attic(draft, found.root, segment, found.max_phy_offset, found.holes)
    if not recalled:
        return []
    firsts = sorted({mend.phy_offset - mend.phy_offset % segment for mend in recalled})
    with Attic(draft, found.root) as attic:
        retire_seals(draft, found.root, firsts, attic)
    for mend in recalled:
        write_mend(found, draft, mend)
    forget_lost(draft, found.root, {(one.topic, one.queue_id, one.queue_offset) for one in recalled})
    return recalled


def with_recalled(found: Survey, actions: Sequence[Action], recalled: Sequence[Mend]) -> list[Action]:
    """Returns actions whose lost messages no longer include restored ones, and actions for the restored ones.

    Args:
        found: A survey of the store.
        actions: The actions before the restoration.
        recalled: The records that were restored.
    """
    back = {(mend.topic, mend.queue_id, mend.queue_offset) for mend in recalled}
    return [*(_without(action, back) for action in actions), *(_action(found, mend) for mend in recalled)]


def _without(action: Action, back: set[tuple[str, int, int]]) -> Action:
    lost = tuple(
        replace(one, offsets=offsets)
        for one in action.lost
        for offsets in ranges_of(
            (offset, 1) for offset in one.offsets if (one.topic, one.queue_id, offset) not in back
        )
    )
    return replace(action, lost=lost)


def _action(found: Survey, mend: Mend) -> Action:
    return Action(mend.kind, *mend.place(found.geometry.segment_size_bytes), mend.detail, saved=1)
