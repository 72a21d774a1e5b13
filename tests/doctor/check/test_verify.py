"""Every flipped bit of a sealed segment is found, and what RocketMQ wrote is not taken for one."""

from __future__ import annotations

import errno
import shutil
import struct

import pytest
from typing_extensions import override

from seglog.doctor.check.verify import verify_store
from seglog.errors import NotFoundError
from seglog.storage.files.files import RealFiles
from seglog.storage.files.real_file import RealFile
from seglog.storage.findings.code import Severity
from seglog.storage.format.record.message import decode_message
from seglog.storage.seals.seal_files import read_seal
from seglog.storage.store import MessageStore
from tests.support.material import golden
from tests.support.material.sealed import (
    BLOCK_BYTES,
    COUNT,
    SEGMENT_BYTES,
    fill,
    flip,
    record_near,
    seal_of,
    sealed_store,
    sealed_stores,
    segment,
)
from tests.support.material.stores import SMALL_INDEX

BEYOND_JAVA = 56
"""Where in a record the store time is, which no checksum of RocketMQ's covers."""


def codes(report):
    return [finding.code for finding in report.findings]


def of_seals(report):
    """Returns what a report says by seals; what it says of records is what a check says of them."""
    return [finding for finding in report.findings if finding.code.startswith("seal-")]


@pytest.fixture(scope="module")
def stores(tmp_path_factory):
    """A store with ``__CRC32#`` and one without, each sealed."""
    return sealed_stores(tmp_path_factory.mktemp("sealed"))


@pytest.fixture
def store(stores, tmp_path):
    """A copy of the store with ``__CRC32#``."""
    return shutil.copytree(stores[True][0], tmp_path / "store")


@pytest.fixture
def plain(stores, tmp_path):
    """A copy of the store without."""
    return shutil.copytree(stores[False][0], tmp_path / "plain")


def end_of_records(path, number):
    seal = read_seal(RealFiles(), path, number * SEGMENT_BYTES)
    return seal.end_phy_offset - seal.first_phy_offset


def test_a_sealed_store_is_clean_and_the_rest_is_walked(store):
    before = golden.tree_digest(store)
    report = verify_store(store)
    assert report.is_clean
    assert codes(report) == []
    assert (len(report.by_seal), len(report.by_records)) == (4, 1)
    assert report.records == COUNT
    assert golden.tree_digest(store) == before


@pytest.mark.parametrize(
    ("place", "block"),
    [
        ("first byte", 0),
        ("body", 1),
        ("properties", 1),
        ("store time", 1),
        ("block end", 0),
        ("block start", 1),
        ("filler size", 3),
        ("filler magic", 3),
    ],
)
@pytest.mark.parametrize("crc", [True, False])
def test_rot_is_found_wherever_it_is(stores, tmp_path, crc, place, block):
    path = shutil.copytree(stores[crc][0], tmp_path / "store")
    start, size = record_near(path, 1, BLOCK_BYTES + 9000)
    position = {
        "first byte": 0,
        "body": start + 200,
        "properties": start + size - 25,
        "store time": start + BEYOND_JAVA + 7,
        "block end": BLOCK_BYTES - 1,
        "block start": BLOCK_BYTES,
        "filler size": end_of_records(path, 1) + 3,
        "filler magic": end_of_records(path, 1) + 4,
    }[place]
    flip(segment(path, 1), position)
    report = verify_store(path)
    (finding,) = of_seals(report)
    assert finding.code == "seal-rot"
    assert (finding.file, finding.position_bytes) == (
        f"commitlog/{segment(path, 1).name}",
        block * BLOCK_BYTES,
    )
    assert finding.size_bytes == BLOCK_BYTES
    assert not report.is_clean
    if crc and not place.startswith("filler"):
        assert finding.messages == 1
    elif not crc:
        assert finding.messages > 50, "a record without record CRC is never certain"


def test_what_may_be_damaged_is_named_message_by_message(store):
    start, _size = record_near(store, 2, 3 * BLOCK_BYTES // 2)
    message = decode_message(segment(store, 2).read_bytes()[start:])
    flip(segment(store, 2), start + 300)
    (concerned,) = verify_store(store).concerned
    assert (concerned.topic, concerned.queue_id, concerned.queue_offset) == (
        "orders",
        message.queue_id,
        message.queue_offset,
    )
    assert (concerned.position_bytes, concerned.is_readable) == (start, False)


def test_without_record_crc_every_message_of_the_block_is_uncertain(plain):
    start, size = record_near(plain, 2, 3 * BLOCK_BYTES // 2)
    flip(segment(plain, 2), start + size - 3)
    report = verify_store(plain)
    mend, rot = report.findings
    assert (rot.code, mend.code) == ("seal-rot", "record-repairable")
    assert all(message.is_readable for message in report.concerned)
    assert len(report.concerned) == rot.messages
    assert start in {message.position_bytes for message in report.concerned}


def test_rot_behind_the_last_record_concerns_no_message(store):
    assert end_of_records(store, 0) + 8 < SEGMENT_BYTES
    flip(segment(store, 0), SEGMENT_BYTES - 1)
    report = verify_store(store)
    assert codes(report) == ["seal-rot-unused"]
    assert report.findings[0].severity is Severity.WARNING


def test_blocks_side_by_side_are_one_finding_and_others_another(store):
    raw = bytearray(segment(store, 1).read_bytes())
    raw[BLOCK_BYTES - 600 : BLOCK_BYTES + 600] = bytes(1200)
    raw[3 * BLOCK_BYTES + 100] ^= 1
    segment(store, 1).write_bytes(raw)
    first, second = of_seals(verify_store(store))
    assert (first.position_bytes, first.size_bytes) == (0, 2 * BLOCK_BYTES)
    assert 2 <= first.messages <= 3
    assert (second.position_bytes, second.messages) == (3 * BLOCK_BYTES, 1)


def test_a_segment_cut_short_is_rot_where_bytes_are_missing(store):
    with segment(store, 1).open("r+b") as stream:
        stream.truncate(3 * BLOCK_BYTES)
    report = verify_store(store)
    assert codes(report) == ["log-hole", "log-file-size", "seal-rot"]
    assert report.findings[-1].position_bytes == 3 * BLOCK_BYTES
    assert "read error" in report.findings[-1].found


class BadSector(RealFiles):
    """A disk that cannot read one place of one file."""

    def __init__(self, name, position):
        self._name = name
        self._position = position

    @override
    def open(self, path, *, writable):
        opened = super().open(path, writable=writable)
        return BadFile(path, self._position) if path.name == self._name else opened


class BadFile(RealFile):
    __slots__ = ("_bad",)

    def __init__(self, path, position):
        super().__init__(path, 0)
        self._bad = position

    @override
    def read_into(self, buffer, position):
        if position <= self._bad < position + len(buffer):
            raise OSError(errno.EIO, "Input/output error")
        return super().read_into(buffer, position)

    @override
    def map(self):
        # A map of such a file faults, after which it is read: so it is where there is none.
        raise OSError(errno.EIO, "Input/output error")


def test_a_sector_that_cannot_be_read_costs_its_block(store):
    report = verify_store(store, BadSector(segment(store, 2).name, 2 * BLOCK_BYTES + 700))
    assert codes(report) == ["seal-rot"]
    assert (report.findings[0].position_bytes, report.findings[0].size_bytes) == (
        2 * BLOCK_BYTES,
        BLOCK_BYTES,
    )
    assert report.findings[0].messages > 50
    assert len(report.by_seal) == 4


def test_progress_ends_at_the_whole_log(store):
    told = []
    report = verify_store(store, progress=lambda done, total: told.append((done, total)))
    assert [done for done, _total in told] == sorted(done for done, _total in told)
    assert told[-1][0] == report.read_bytes <= told[-1][1] == 5 * SEGMENT_BYTES


def test_a_segment_that_retention_takes_meanwhile_is_not_missed(store):
    class Vanishing(RealFiles):
        @override
        def open(self, path, *, writable):
            if path == segment(store, 0):
                path.unlink(missing_ok=True)
            return super().open(path, writable=writable)

    report = verify_store(store, Vanishing())
    assert report.is_clean
    assert len(report.by_seal) == 3


def test_a_missing_segment_is_lost_with_as_many_messages_as_its_seal_says(store):
    counts = [read_seal(RealFiles(), store, number * SEGMENT_BYTES).record_count for number in range(4)]
    segment(store, 1).unlink()
    segment(store, 2).unlink()
    (finding,) = verify_store(store).findings
    assert (finding.code, finding.messages) == ("log-file-missing", counts[1] + counts[2])
    assert finding.size_bytes == 2 * SEGMENT_BYTES


def test_segments_that_retention_took_are_not_missed(store):
    segment(store, 0).unlink()
    assert verify_store(store).is_clean


def test_a_sealed_segment_gone_from_the_end_is_lost(store):
    segment(store, 3).unlink()
    segment(store, 4).unlink()
    assert set(codes(verify_store(store))) == {"log-file-missing", "log-tail-lost", "messages-lost"}


@pytest.mark.parametrize("damage", ["flip", "empty", "other version", "another's"])
def test_a_damaged_seal_is_a_warning_and_the_records_decide(store, damage):
    file = seal_of(store, 1)
    if damage == "flip":
        flip(file, 100)
    elif damage == "empty":
        file.write_bytes(b"")
    elif damage == "other version":
        flip(file, 7, 0x80)
    else:
        shutil.copy(seal_of(store, 2), file)
    report = verify_store(store)
    assert codes(report) == ["seal-unreadable"]
    assert report.findings[0].file == f"seglog/seals/{file.name}"
    assert report.records == COUNT
    assert len(report.by_records) == 2
    assert codes(verify_store(store, seal=True)) == ["seal-unreadable"]
    assert verify_store(store).is_clean


def rewritten(path, clock, keep_bytes, count):
    """Cuts the log within segment 2, as a RocketMQ that lost its tail does, and goes on from there.

    Seals stay as they were: RocketMQ knows nothing of them.
    """
    seals = {number: seal_of(path, number).read_bytes() for number in range(4)}
    cut, _size = record_near(path, 2, keep_bytes)
    with segment(path, 2).open("r+b") as stream:
        stream.truncate(cut)
        stream.truncate(SEGMENT_BYTES)
    segment(path, 3).unlink()
    segment(path, 4).unlink()
    shutil.rmtree(path / "consumequeue")  # it cuts the queues as well
    clock.advance(60_000)
    fill(path, count, clock, record_crc=False, seed=1)
    (path / "seglog" / "holes").unlink()  # nor does it note that it lost an end
    for number, raw in seals.items():
        seal_of(path, number).write_bytes(raw)
    return cut


@pytest.mark.parametrize("keep_bytes", [10, BLOCK_BYTES + 5000, SEGMENT_BYTES - 3000])
def test_a_segment_that_was_written_anew_has_a_stale_seal(stores, tmp_path, keep_bytes):
    original, clock = stores[False]
    path = shutil.copytree(original, tmp_path / "store")
    rewritten(path, clock, keep_bytes, 900)
    report = verify_store(path)
    assert set(codes(report)) == {"seal-stale", "seal-missing"}
    assert {finding.file[-7:] for finding in report.findings if finding.code == "seal-stale"} == {
        segment(path, number).name[-7:] for number in (2, 3)
    }
    again = verify_store(path, seal=True, clock=clock)
    assert again.sealed[:2] == (2 * SEGMENT_BYTES, 3 * SEGMENT_BYTES)
    assert verify_store(path).is_clean


def test_a_seal_is_stale_too_where_the_new_log_ends_within_its_segment(stores, tmp_path):
    """RocketMQ does not erase what is behind a cut: records of the older life follow the new ones."""
    original, clock = stores[False]
    path = shutil.copytree(original, tmp_path / "store")
    old = segment(path, 2).read_bytes()
    rewritten(path, clock, BLOCK_BYTES, 40)
    new = segment(path, 2).read_bytes()
    end = len(new.rstrip(b"\0"))
    segment(path, 2).write_bytes(new[:end] + old[end:])
    report = verify_store(path)
    assert of_seals(report)[0].code == "seal-stale"
    assert all(finding.severity is not Severity.LOSS for finding in report.findings)
    verify_store(path, seal=True, clock=clock)
    assert not seal_of(path, 2).exists()
    assert not seal_of(path, 3).exists()


def test_rot_in_the_old_part_of_a_segment_written_anew_is_rot(stores, tmp_path):
    original, clock = stores[False]
    path = shutil.copytree(original, tmp_path / "store")
    rewritten(path, clock, 3 * BLOCK_BYTES, 900)
    start, size = record_near(path, 2, BLOCK_BYTES + 3000)
    flip(segment(path, 2), start + size - 3)
    assert "seal-rot" in codes(verify_store(path))


def test_a_flipped_store_time_is_not_news(plain):
    """The last record of a segment seems to be from the future: but the next segment is not."""
    at = 0
    raw = segment(plain, 1).read_bytes()
    last = 0
    while struct.unpack_from(">I", raw, at + 4)[0] != 0xCBD43194:
        last = at
        at += struct.unpack_from(">i", raw, at)[0]
    flip(segment(plain, 1), last + BEYOND_JAVA + 2, 0x04)
    assert decode_message(segment(plain, 1).read_bytes()[last:], verify=True).body_error is None
    assert codes(verify_store(plain)) == ["seal-rot"]


def test_damage_in_a_segment_without_seal_is_found_by_its_records(store):
    for number in range(4):
        seal_of(store, number).unlink()
    start, _size = record_near(store, 1, 5000)
    flip(segment(store, 1), start + 300)
    raw = bytearray(segment(store, 2).read_bytes())
    raw[-40_000:] = bytes(40_000)
    segment(store, 2).write_bytes(raw)
    report = verify_store(store, seal=True)
    assert codes(report)[:2] == ["record-repairable", "log-hole"]
    assert report.sealed == (0, 3 * SEGMENT_BYTES)
    assert not seal_of(store, 1).exists()
    assert codes(verify_store(store))[:2] == ["record-repairable", "log-hole"]


def test_sealing_beside_the_writer_leaves_the_growing_segment_alone(store):
    with MessageStore.open(store) as opened:
        opened.put("orders", b"x")
        report = verify_store(store, seal=True)
        assert report.is_clean
        assert report.by_records == (4 * SEGMENT_BYTES,)
        opened.put("orders", b"y")
    assert verify_store(store).records == COUNT + 2


@pytest.mark.parametrize("name", golden.golden_names(damaged=False))
def test_real_stores_verify_and_can_be_sealed(tmp_path, name):
    path = golden.extract(name, tmp_path)
    before = golden.tree_digest(path)
    assert not [finding for finding in verify_store(path).findings if finding.severity is Severity.LOSS]
    assert golden.tree_digest(path) == before
    sealed = verify_store(path, seal=True)
    again = verify_store(path)
    assert again.by_seal == sealed.sealed
    assert again.records == sealed.records


def test_a_store_that_is_not_there_is_an_error(tmp_path):
    with pytest.raises(NotFoundError):
        verify_store(tmp_path / "nothing")


def flip_property(path):
    """Flips one bit of a property's value in the first segment; returns how many records the store has."""
    with MessageStore.open(path, read_only=True) as opened:
        (info,) = opened.queues()
        message = opened.get(info.topic, info.queue_id, 5, 1).messages[0]
    raw = bytearray(segment(path, 0).read_bytes())
    at = raw.index(b"KEYS\x01", message.phy_offset) + len(b"KEYS\x01")
    raw[at] ^= 0x02
    segment(path, 0).write_bytes(raw)
    return info.max_offset


@pytest.mark.parametrize("record_crc", [False, True])
def test_what_no_checksum_covers_is_counted_and_claimed_by_nobody(tmp_path, record_crc):
    path = tmp_path / "s"
    with MessageStore.open(
        path, segment_size_bytes=1 << 16, queue_file_size_bytes=2000, record_crc=record_crc, **SMALL_INDEX
    ) as opened:
        for number in range(1000):
            opened.put("orders", b"%d" % number + bytes(100), keys=f"key{number}", properties={"p": "v"})
    shutil.rmtree(path / "seglog", ignore_errors=True)
    sound = verify_store(path)
    assert (sound.is_clean, sound.records) == (True, 1000)
    assert sound.bare_records == (0 if record_crc else 1000)
    flip_property(path)
    damaged = verify_store(path)
    # Nothing covers the bit without a record CRC, and verify says of how many records that is so.
    assert damaged.is_clean == (not record_crc)
    assert damaged.bare_records == (0 if record_crc else 1000)


def test_records_are_bare_until_their_segment_is_sealed(tmp_path):
    path = tmp_path / "s"
    sealed_store(path, record_crc=False)
    shutil.rmtree(path / "seglog")
    assert verify_store(path).bare_records == COUNT
    assert verify_store(path, seal=True).bare_records == COUNT
    report = verify_store(path)
    sealed = sum(read_seal(RealFiles(), path, first).record_count for first in report.by_seal)
    assert report.bare_records == report.records - sealed < COUNT
