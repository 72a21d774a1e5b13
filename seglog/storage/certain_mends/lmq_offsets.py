"""Mends impossible queue offsets of a record in its further queues (LMQ).

The offsets are decimal numbers in a property, which no checksum covers without ``__CRC32#``. An offset is
wrong if the queue's other records in the log leave no place for it, by the rules of
:mod:`seglog.storage.walk.queue_offsets`. The right offset is the one that they leave, or that of the queue's
unit between theirs. So a wrong queue file never changes a record that agrees with the log.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import closing

from seglog.storage.certain_mends.heads import row_at
from seglog.storage.certain_mends.mend import BIT, HEAD, Mend
from seglog.storage.certain_mends.seen_log import SeenLog
from seglog.storage.directory.log_files import LogReader
from seglog.storage.files.files import Files
from seglog.storage.format.names import LMQ_PREFIX
from seglog.storage.format.queue.lmq import multi_queues
from seglog.storage.format.record import RecordRow, examine
from seglog.storage.format.record import properties as props
from seglog.storage.format.record.flipped_bit import bits_between
from seglog.storage.walk.log_records import has_record_crc

_ENTRY = props.INNER_MULTI_QUEUE_OFFSET.encode() + b"\x01"
_END = b"\x02"


def mends_of_lmq_offsets(found: SeenLog, files: Files) -> Iterator[Mend]:
    """Yields the mends of offsets in further queues, in log order."""
    wanted: defaultdict[int, dict[str, int]] = defaultdict(dict)
    for (topic, _queue_id), state in found.queues.items():
        if topic.startswith(LMQ_PREFIX):
            for place, slot in state.mended.items():
                wanted[place][topic] = slot
    if not wanted:
        return
    with closing(LogReader(files, found.root, found.geometry.segment_size_bytes)) as reader:
        for place, slots in sorted(wanted.items()):
            row = row_at(found.rows, place)
            if row is None or has_record_crc(reader, row):
                continue
            record = bytes(reader.read(place, int(row["size_bytes"])))
            head = examine(memoryview(record), 0, place)
            right = _with_offsets(record, head, slots) if isinstance(head, RecordRow) else None
            if isinstance(head, RecordRow) and right is not None and right != record:
                bits = bits_between(record, right)
                topic = head.topic.decode("utf-8", "surrogateescape")
                proof = f", for its place in {' and '.join(sorted(slots))}"
                key = (topic, head.queue_id, head.queue_offset)
                yield Mend(BIT if bits == 1 else HEAD, place, record, right, *key, proof, "further offsets")


def _with_offsets(record: bytes, row: RecordRow, slots: Mapping[str, int]) -> bytes | None:
    """Returns a record with other offsets in some of its further queues; None if their length differs."""
    start, end = row.properties_at, row.properties_at + row.properties_bytes
    properties = record[start:end]
    queues = multi_queues(row.topic.decode("utf-8", "surrogateescape"), row.queue_id, properties)
    offsets = ",".join(str(slots.get(queue.name, queue.queue_offset)) for queue in queues).encode()
    at = properties.find(_ENTRY) + len(_ENTRY)
    stated, separator, _others = properties[at:].partition(_END)
    if not separator and len(stated) == len(offsets) + len(_END):
        offsets += _END  # the flipped bit made the separator a digit
    if properties.count(_ENTRY) != 1 or len(stated) != len(offsets):
        return None
    return record[: start + at] + offsets + record[start + at + len(offsets) :]
