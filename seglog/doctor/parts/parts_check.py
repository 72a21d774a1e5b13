"""Checks all parts other than log, queues and index: tables, timer, filter data, compaction logs."""

from __future__ import annotations

from seglog.doctor.parts.epoch_check import epoch_findings
from seglog.doctor.parts.offset_check import offset_findings, topic_findings
from seglog.doctor.parts.other_files import compaction_findings, ext_findings, own_findings
from seglog.doctor.parts.timer_check import timer_findings, timer_notes
from seglog.doctor.parts.transaction_check import half_findings
from seglog.doctor.tables.config_tables import ConfigTables
from seglog.doctor.tables.lost_tables import lost_findings
from seglog.storage.files import Files
from seglog.storage.findings import Finding
from seglog.storage.format.names import BATCH_CONSUME_QUEUE, CONSUME_QUEUE
from seglog.storage.scan import ListedStore, Queues


def check_parts(
    store: ListedStore, files: Files, tables: ConfigTables, queues: Queues, end_phy_offset: int
) -> list[Finding]:
    """Returns the findings.

    Args:
        store: The store.
        files: Access to the store.
        tables: Its config files.
        queues: Its queues.
        end_phy_offset: End of its log.
    """
    root, geometry = store.root, store.geometry
    start = store.log_start(end_phy_offset)
    folders = [(*key, CONSUME_QUEUE) for key in store.queue_files]
    folders += [(*key, BATCH_CONSUME_QUEUE) for key in store.batch_files]
    return [
        *tables.findings,
        *lost_findings(files, root, tables, {topic for topic, _queue_id in queues}),
        *offset_findings(tables, queues),
        *topic_findings(tables, queues, folders),
        *half_findings(files, root, geometry, queues, tables),
        *timer_findings(store, files, queues, start),
        *timer_notes(store, files, queues),
        *ext_findings(files, root, store.queue_files.values(), geometry),
        *compaction_findings(files, root, queues, start, geometry),
        *epoch_findings(files, root, store.checkpoint, end_phy_offset),
        *own_findings(files, root, geometry, end_phy_offset),
    ]
