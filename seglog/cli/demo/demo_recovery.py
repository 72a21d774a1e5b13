"""The later steps of the demo: recovery after a crash, reading a store of RocketMQ, and an audit on Spark."""

from __future__ import annotations

import hashlib
import subprocess
import sys
import tarfile
import threading
import time
from collections.abc import Iterator
from importlib import resources
from pathlib import Path
from typing import Final

from seglog.cli.demo import demo_writer
from seglog.cli.demo.demo_steps import Outcome
from seglog.cli.ui import render
from seglog.errors import MissingDependencyError
from seglog.spark.session import require_spark
from seglog.storage.directory import ReadingRoot
from seglog.storage.format.record import Message
from seglog.storage.store import MessageStore
from seglog.storage.survey import survey

KILL_AFTER_MESSAGES: Final = 500
KILL_AFTER_S: Final = 10.0
ROCKETMQ_STORE: Final = "roll-store"
ROCKETMQ_MESSAGES: Final = 400
_STEP_MESSAGES: Final = 1000


def crash(root: Path, message_count: int, tell: render.Tell) -> Outcome:
    """Kills a process that syncs every message while it writes, and checks that acknowledged messages exist.

    Raises:
        SeglogError: The store cannot be opened after the kill.
    """
    acknowledged = acknowledged_by_killed_writer(root, tell)
    begun_s = time.monotonic()
    with MessageStore.open(root) as store:
        seconds = time.monotonic() - begun_s
        found = {
            message.queue_offset: message.body
            for message in iter_messages(store, demo_writer.TOPIC, demo_writer.QUEUE_ID)
        }
        others = sum(queue.max_offset for queue in store.queues() if queue.topic != demo_writer.TOPIC)
        mode = store.recovery.mode
    lost = sum(found.get(number) != demo_writer.body_of(number) for number in acknowledged)
    kept = len(acknowledged) - lost
    older = f"{render.count_text(others)} of the {render.count_text(message_count)} older ones"
    return Outcome(
        bool(acknowledged) and not lost and mode == "abnormal" and others == message_count,
        f"{render.count_text(kept)} of {render.count_text(len(acknowledged))} acknowledged messages are there"
        f" after recovery in {seconds:.1f} s, and {older}",
        {
            "acknowledged": len(acknowledged),
            "lost": lost,
            "unacknowledgedKept": len(found) - kept,
            "older": others,
            "recovery": mode,
            "recoverySeconds": round(seconds, 3),
        },
    )


def read_rocketmq(root: Path, _message_count: int, tell: render.Tell) -> Outcome:
    """Reads a store that RocketMQ wrote, and checks that no byte of it changed.

    Raises:
        SeglogError: The store cannot be read.
    """
    path = unpack_rocketmq_store(root.with_name("rocketmq"))
    before = _digests(path)
    begun_s = time.monotonic()
    with MessageStore.open(path, read_only=True) as store:
        queues = store.queues()
        messages = 0
        for queue in queues:
            messages += sum(1 for _ in iter_messages(store, queue.topic, queue.queue_id))
            tell(messages, ROCKETMQ_MESSAGES)
        findings = len(store.recovery.findings)
    seconds = time.monotonic() - begun_s
    unchanged = _digests(path) == before
    checked = "every checksum right" if not findings else render.count_text(findings, "finding")
    changed = "no byte changed" if unchanged else "files CHANGED"
    return Outcome(
        messages == ROCKETMQ_MESSAGES and not findings and unchanged,
        f"{messages} of {ROCKETMQ_MESSAGES} messages of {len(queues)} queues read in {seconds:.2f} s,"
        f" {checked}, {changed}",
        {"messages": messages, "queues": len(queues), "findings": findings, "unchanged": unchanged},
    )


def audit(root: Path, _message_count: int, _tell: render.Tell) -> Outcome:
    """Audits every record on Spark, and compares the result with the engine's own survey.

    Raises:
        SeglogError: The store cannot be read.
    """
    begun_s = time.monotonic()
    try:
        require_spark()
        from seglog.spark.audit import audit_store

        report = audit_store(root)
    except MissingDependencyError as error:
        return Outcome(None, f"left out: {error}; {error.help}")
    seconds = time.monotonic() - begun_s
    found = survey(root, ReadingRoot(root))
    agrees = (report.records, report.end_phy_offset) == (len(found.rows), found.max_phy_offset)
    verdict = f"{'clean' if report.is_clean else 'NOT clean'}, {'as' if agrees else 'NOT as'} the engine says"
    return Outcome(
        report.is_clean and agrees,
        f"{render.count_text(report.records, 'record')} checked in {seconds:.1f} s"
        f" (Spark's start included): {verdict}",
        {"records": report.records, "clean": report.is_clean, "agrees": agrees},
    )


def acknowledged_by_killed_writer(root: Path, tell: render.Tell) -> list[int]:
    """Starts the writer, kills it while it writes, and returns the queue offsets that it had acknowledged."""
    words = [sys.executable, "-m", "seglog.cli.demo.demo_writer", str(root)]
    with subprocess.Popen(words, stdout=subprocess.PIPE) as writer:
        assert writer.stdout is not None
        alarm = threading.Timer(KILL_AFTER_S, writer.kill)
        alarm.start()
        try:
            lines = []
            for line in writer.stdout:
                lines.append(line)
                tell(len(lines), KILL_AFTER_MESSAGES)
                if len(lines) == KILL_AFTER_MESSAGES:
                    writer.kill()
        finally:
            alarm.cancel()
            writer.kill()
    return [int(line) for line in lines if line.endswith(b"\n")]


def unpack_rocketmq_store(folder: Path) -> Path:
    """Unpacks the store of RocketMQ 5.4.0 that comes with the package, and returns its directory."""
    folder.mkdir(parents=True, exist_ok=True)
    packed = resources.files("seglog") / "data" / f"{ROCKETMQ_STORE}.tar.xz"
    with packed.open("rb") as stream, tarfile.open(fileobj=stream, mode="r:xz") as archive:
        # Python 3.11.0 to 3.11.3 have no extraction filters; the archive is part of this package.
        archive.extraction_filter = getattr(tarfile, "data_filter", lambda member, _path: member)
        archive.extractall(folder)  # noqa: S202 - as above
    return folder / ROCKETMQ_STORE


def iter_messages(store: MessageStore, topic: str, queue_id: int) -> Iterator[Message]:
    """Yields every message of a queue."""
    at = store.min_offset(topic, queue_id)
    while at < store.max_offset(topic, queue_id):
        result = store.get(topic, queue_id, at, _STEP_MESSAGES)
        yield from result
        at = result.next_offset


def _digests(path: Path) -> dict[str, str]:
    return {
        str(item.relative_to(path)): hashlib.sha256(item.read_bytes()).hexdigest()
        for item in path.rglob("*")
        if item.is_file()
    }
