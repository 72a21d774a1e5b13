"""After a power cut and our recovery the real store opens what we leave and serves the same messages."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any, ClassVar

import pytest
from typing_extensions import override

from seglog import MessageStore
from seglog.storage.format.get_status import GetStatus
from seglog.storage.format.queue.batch_consume_queue import BATCH_UNIT_BYTES
from seglog.storage.format.queue.consume_queue import CQ_UNIT_BYTES
from seglog.storage.format.record.tombstone import LOST
from tests.interop.judging.judge import Judge
from tests.interop.judging.lines import differences, lost_keys, message_line
from tests.interop.judging.questions import Geometry
from tests.support.crash.crash_files import CrashFiles
from tests.support.crash.crash_life import INDEX_GEOMETRY, QUEUE_FILE_BYTES, Life
from tests.support.crash.crash_work import SEGMENT_BYTES, STORE
from tests.support.scale import scaled

pytestmark = pytest.mark.interop

GEOMETRY = Geometry(SEGMENT_BYTES, QUEUE_FILE_BYTES, INDEX_GEOMETRY.slot_count, INDEX_GEOMETRY.entry_count)
CONFIG: dict[str, Any] = {
    "mapperFileSizeBatchConsumeQueue": QUEUE_FILE_BYTES // CQ_UNIT_BYTES * BATCH_UNIT_BYTES,
    "enableLmq": True,
    "enableMultiDispatch": True,
}
IMAGES = scaled(20, 200)
SMALLEST = 10
"""Images with fewer messages tell too little."""


class Photographed(CrashFiles):
    """Keeps what the last power cut left."""

    last: ClassVar[dict[Path, bytes]] = {}

    @override
    def after_power_loss(self):
        found = super().after_power_loss()
        type(self).last = found.contents()
        return found


def crash_image(seed, folder):
    """Writes what a life's last power cut left to a real folder; returns whether there was anything."""
    outcome = Life(seed, Photographed, images=4 + seed % 5).live()
    assert outcome.violation is None
    for path, content in Photographed.last.items():
        target = folder / path.relative_to(STORE)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)
    return bool(Photographed.last)


def lines_of(store):
    """Reads every queue message by message, over holes and tombstones."""
    lines = []
    for queue in store.queues():
        at = queue.min_offset
        while at < queue.max_offset:
            result = store.get(queue.topic, queue.queue_id, at, 1)
            assert result.next_offset > at
            for message in result.messages:
                line = message_line(message)
                if message.topic != queue.topic:  # one of a further queue, which has offsets of its own
                    line |= {"cqTopic": queue.topic, "cqQueueId": 0, "cqOffset": result.next_offset - 1}
                lines.append(line)
            assert result.status in {GetStatus.FOUND, GetStatus.MESSAGE_WAS_REMOVING}
            at = result.next_offset
    return lines


def holes_of(store):
    """Returns the stretches of the log that recovery could not read."""
    return [
        range(start, start + finding.size_bytes)
        for finding in store.recovery.findings
        if finding.code == "log-hole"
        for start in [int(finding.file.rpartition("/")[2]) + finding.position_bytes]
    ]


def is_lost(line, holes):
    """Returns whether a line is of a message that is lost.

    In a hole the real one serves nothing, a tombstone that stands there, or a torn record that its checks,
    which do not cover properties, let pass.
    """
    return LOST in line.get("properties", LOST) or any(line["cqPos"] in hole for hole in holes)


@pytest.mark.parametrize("closed", [True, False], ids=["closed", "killed"])
def test_real_store_serves_what_we_serve_after_a_power_cut(judge: Judge, tmp_path, closed):
    compared = seed = 0
    while compared < IMAGES // 2:
        seed += 1
        root = tmp_path / str(seed)
        if not crash_image(seed if closed else 1000 + seed, root):
            continue
        with MessageStore.open(
            root,
            segment_size_bytes=SEGMENT_BYTES,
            queue_file_size_bytes=QUEUE_FILE_BYTES,
            index_geometry=INDEX_GEOMETRY,
        ) as store:
            ours = lines_of(store)
            holes = holes_of(store)
            store.flush()
            killed = shutil.copytree(root, tmp_path / f"{seed}-killed")
        # RocketMQ cuts a crashed log at its first hole: docs/RECOVERY.md says what to do before.
        if len(ours) >= SMALLEST and (closed or not holes):
            # Topic I is one of batches in some lives.
            topics = {"I": {"queue.type": "BatchCQ"}} if (root / "batchconsumequeue" / "I").is_dir() else {}
            dump = judge.dump(root if closed else killed, GEOMETRY, topics=topics, **CONFIG)
            assert dump.refusal is None
            theirs = [line for line in dump.of_kind("msg") if not is_lost(line, holes)]
            assert differences(ours, theirs, ignoring=["keyFound", "tagsCode"]) == [], f"seed {seed}"
            if closed:
                assert lost_keys(theirs) == [], f"seed {seed}"
            compared += 1
        shutil.rmtree(root)
        shutil.rmtree(killed)
