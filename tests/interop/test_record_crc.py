"""What RocketMQ makes of ``__CRC32#`` wherever it stands, and where its writers put it: ours asks no less."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from seglog import MessageStore
from seglog.doctor.check.check import check_store
from seglog.storage.findings.code import Severity
from seglog.storage.format.record.message import decode_message
from seglog.storage.format.record.properties import CRC_NAME, crc_property
from seglog.storage.format.record.record import CRC_MASK, Damage, examine
from tests.interop.brokers.test_broker_directories import GEOMETRY, await_body, pulling, sending
from tests.interop.judging.judge import Judge
from tests.interop.judging.questions import SMALL_GEOMETRY, JavaMessages
from tests.interop.judging.states import crashed
from tests.support.material.records import Record
from tests.support.material.stores import read_all
from tests.support.rows import every_row

pytestmark = pytest.mark.interop

COPY = crc_property(1_234_567_890)
"""The property as another record had it."""
HEAD = bytes.fromhex("0000011ddaa320a7")
"""What the next record begins with."""


@dataclass(frozen=True)
class Case:
    """Properties, and who takes a record that has them; RocketMQ by default takes every one.

    Attributes:
        is_right: Whether the digits of :data:`COPY` in them become those of what is before the last 20 bytes.
    """

    properties: bytes
    ours: bool
    forced: bool
    is_right: bool = False

    def pack(self, queue_offset=0, phy_offset=0):
        record = Record(
            topic=b"T", queue_offset=queue_offset, phy_offset=phy_offset, properties=self.properties
        )
        if not self.is_right:
            return record.pack()
        right = crc_property(zlib.crc32(record.pack()[:-20]) & CRC_MASK)
        return record.pack().replace(COPY[9:19], right[9:19])


CASES = {
    "none": Case(b"a\1b\2", ours=True, forced=False),
    "last": Case(b"a\1b\2" + COPY, is_right=True, ours=True, forced=True),
    "last, of another record": Case(b"a\1b\2" + COPY, ours=False, forced=False),
    "last, behind an entry without end": Case(b"a\1b" + COPY, is_right=True, ours=True, forced=False),
    "last, without its end": Case(b"a\1b\2" + COPY[:-1], ours=False, forced=False),
    # RocketMQ reckons up to 20 bytes before the end, with any content. No writer leaves the end out.
    "last, right but for its end": Case(b"a\1b\2" + COPY[:-1], is_right=True, ours=False, forced=True),
    "cut within the digits": Case(b"a\1b\2" + COPY[:14], ours=False, forced=False),
    "cut behind the name": Case(b"a\1b\2" + COPY[:9], ours=False, forced=False),
    "the next record's head behind it": Case(b"a\1b\2" + COPY + HEAD, ours=False, forced=False),
    "one byte of it": Case(b"a\1b\2" + COPY + HEAD[:1], ours=False, forced=False),
    "five bytes of it": Case(b"a\1b\2" + COPY + HEAD[:5], ours=False, forced=False),
    "among others": Case(COPY + b"a\1b\2", ours=True, forced=False),
    "among others, of which the last has no end": Case(COPY + b"a\1b", ours=True, forced=False),
    "a user's": Case(b"__CRC32#\1x\2KEYS\1some key\2", ours=True, forced=False),
    "twice, the last right": Case(b"__CRC32#\1x\2" + COPY, is_right=True, ours=True, forced=True),
    "twice, none right": Case(COPY + COPY, ours=False, forced=False),
}


def write_log(root, log):
    """Makes a store of nothing but a log, as a crash leaves it."""
    path = root / "commitlog" / f"{0:020d}"
    path.parent.mkdir(parents=True)
    path.write_bytes(log.ljust(SMALL_GEOMETRY.segment_size_bytes, b"\0"))
    crashed(root)


def test_what_ours_takes_the_real_reader_takes_by_default(judge: Judge, tmp_path):
    log, taken = b"", [case for case in CASES.values() if case.ours]
    for number, case in enumerate(taken):
        log += case.pack(number, len(log))
    write_log(tmp_path, log)
    with MessageStore.open(tmp_path, read_only=True) as store:
        ours = [message.phy_offset for message in read_all(store, "T", 0)]
        assert [one for one in store.recovery.findings if one.severity is Severity.LOSS] == []
    dump = judge.dump(tmp_path, SMALL_GEOMETRY)
    assert [line["cqPos"] for line in dump.of_kind("msg")] == ours
    assert len(ours) == len(taken)


def test_which_place_counts(judge: Judge, tmp_path, copied: Callable[[Path], Path]):
    with every_row() as row:
        for number, (name, case) in enumerate(CASES.items()):
            with row(name):
                assert isinstance(examine(memoryview(case.pack()), 0, 0), Damage) is not case.ours
                root = tmp_path / str(number)
                write_log(root, case.pack())
                for is_forced, is_taken in ((False, True), (True, case.forced)):
                    dump = judge.dump(copied(root), SMALL_GEOMETRY, forceVerifyPropCRC=is_forced)
                    assert len(dump.of_kind("msg")) == is_taken, f"forced: {is_forced}"


SENT = {"__CRC32#": "0123456789", "z": "1"}
"""What a client's own classes refuse to send, and other clients may."""


@pytest.mark.parametrize("is_batch", [False, True], ids=["single", "batch"])
@pytest.mark.parametrize("is_on", [False, True], ids=["off", "on"])
def test_where_the_real_writer_puts_it(
    judge: Judge, tmp_path, copied: Callable[[Path], Path], is_on, is_batch
):
    sent = JavaMessages(topic="T", count=3, batch=is_batch, properties=SENT)
    judge.write(tmp_path / "store", [sent], SMALL_GEOMETRY, halt=True, enabledAppendPropCRC=is_on)
    entries = _stored(tmp_path / "store", "T")
    was_sent = [b"__CRC32#\x010123456789", b"z\x011"]
    for each in entries:
        own = [each.pop()] if is_on else []
        assert all(entry.startswith(CRC_NAME) for entry in own)
        assert each == (was_sent[1:] if is_on and not is_batch else was_sent)
    forced = judge.dump(copied(tmp_path / "store"), SMALL_GEOMETRY, forceVerifyPropCRC=True)
    assert len(forced.of_kind("msg")) == (3 if is_on else 0)


def test_a_copy_that_the_broker_makes_once_the_option_is_off_has_it_among_others(judge: Judge, tmp_path):
    levels: dict[str, Any] = {"messageDelayLevel": "5s"}
    with judge.broker(tmp_path, GEOMETRY, halt=True, enabledAppendPropCRC=True, **levels) as theirs:
        theirs.ask(sending("T", "now"))
        theirs.ask(sending("T", "later", level=1))
    with judge.broker(tmp_path, GEOMETRY, **levels) as theirs:
        await_body(theirs.ask, "T", "later")
        assert decode_message(memoryview(theirs.ask(pulling("T", 1)).body)).body == b"later"
    now, later = _stored(tmp_path, "T")
    assert now[-1].startswith(CRC_NAME)
    assert any(entry.startswith(CRC_NAME) for entry in later[:-1])
    assert not later[-1].startswith(CRC_NAME)


def _stored(root, topic):
    """Returns the entries of each message, of a store in which nothing is lost."""
    assert [one for one in check_store(root).findings if one.severity is Severity.LOSS] == []
    with MessageStore.open(root, read_only=True) as store:
        return [message.properties_raw.split(b"\2")[:-1] for message in read_all(store, topic, 0)]
