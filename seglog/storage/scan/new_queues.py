"""Queues whose first file a kill explains to be missing: they were new when the writer was killed.

RocketMQ writes units in the order of the log (``DefaultMessageStore.java`` ReputMessageService). So a kill
explains a queue without a file if no other queue has a unit of a later record. seglog gives the first file of
a queue its name once it holds a unit; a file that waits for its name shows that a kill came before.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TypeAlias

from seglog.storage.directory.lengths import last_records
from seglog.storage.directory.queue_files import list_staged, queue_directory
from seglog.storage.files.files import Files
from seglog.storage.findings.findings import Finding
from seglog.storage.format.names import BATCH_CONSUME_QUEUE, CONSUME_QUEUE
from seglog.storage.overlay import BatchQueueState, QueueState
from seglog.storage.overlay.queue_overlay import may_lack_units
from seglog.storage.scan.listed import ListedStore
from seglog.storage.scan.queue_overlays import Overlays

_State: TypeAlias = QueueState | BatchQueueState


def excuse_new_queues(store: ListedStore, queues: Overlays, end_phy_offset: int, files: Files) -> None:
    """Makes the finding about a queue without a file a note, where a kill explains it.

    Args:
        store: The listing of the store.
        queues: Its queues; their findings may change.
        end_phy_offset: End of the log.
        files: The file layer of the store.
    """
    states: list[tuple[str, _State]] = [
        *((CONSUME_QUEUE, state) for state in queues.plain.values()),
        *((BATCH_CONSUME_QUEUE, state) for state in queues.batch.values()),
    ]
    new = [(folder, state) for folder, state in states if _is_without_files(state) and _is_from_0(state)]
    if store.mode == "normal" or not new:
        return
    reached = _reached(store, end_phy_offset, files)
    waiting = {
        f"{path.parent.relative_to(store.root).as_posix()}/{path.name.partition('-')[0]}"
        for path in list_staged(files, store.root)
    }
    for folder, state in new:
        first = int(state.units["phy_offset"][0])
        is_waiting = queue_directory(state.topic, state.queue_id, folder) in waiting
        if may_lack_units(end_phy_offset - first, is_closed=False) and (is_waiting or first > reached >= 0):
            state.findings[:] = _as_due(state.findings)


def _is_without_files(state: _State) -> bool:
    return any(finding.code == "queue-missing" for finding in state.findings)


def _is_from_0(state: _State) -> bool:
    """Returns whether the log has a queue from its first message on."""
    first = state.first_slot if isinstance(state, QueueState) else int(state.units["base_queue_offset"][0])
    return first == state.min_offset == 0


def _as_due(findings: Iterable[Finding]) -> list[Finding]:
    return [
        replace(finding, code="queue-due") if finding.code == "queue-missing" else finding
        for finding in findings
    ]


def _reached(store: ListedStore, end_phy_offset: int, files: Files) -> int:
    """Returns the physical offset of the last record for which any queue has a unit; -1 without one."""
    reached = -1
    for queue in (*store.queue_files.values(), *store.batch_files.values()):
        try:
            places = last_records(files, queue)[:, 0]
        except FileNotFoundError:  # retention took the file while we looked
            continue
        reached = max(reached, int(places[places < end_phy_offset].max(initial=-1)))
    return reached
