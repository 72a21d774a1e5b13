"""An audit finds what a survey finds, on every store and with every split size."""

from __future__ import annotations

import shutil
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seglog import MessageStore, VirtualClock
from seglog.storage.files.files import RealFiles
from seglog.storage.survey.store_survey import survey
from tests.support.audits import audit, audit_as_survey, write_log
from tests.support.material.golden import config_names, golden_names, shared
from tests.support.material.mixed import fill_mixed
from tests.support.material.records import Record, pack_log
from tests.support.rows import every_row
from tests.support.scale import chance, is_gate, scaled

SEGMENT_BYTES = 16384
SPLIT_BYTES = (1024, 5000, 65536)
QUEUE_FOLDERS = ("consumequeue", "batchconsumequeue")
LARGE = {"big": (500_000, 8 << 20), "broker-store": (65536, 64 << 20)}


def test_audit_agrees_with_the_survey_of_a_real_store():
    with every_row() as row:
        for name in (*golden_names(), *config_names()):
            with row(name):
                splits: tuple[int, ...] = LARGE.get(name, SPLIT_BYTES)
                if is_gate():  # the longest, for what the report says of it, and one of the others
                    splits = (chance("splits of", name).choice(splits[:-1]), splits[-1])
                report = audit_as_survey(shared(name), *splits)
                assert report.walked_again == 0
                if name in golden_names(damaged=False):
                    assert report.is_clean


DAMAGED = (
    ("d-bodyflip-first", 1024),
    ("d-magic", 5000),
    ("d-nocq", 65536),
    ("d-cqgarbage", 1024),
    ("d-trunclast", 1024),
)


def test_damage_is_never_clean():
    with every_row() as row:
        for name, split_bytes in DAMAGED:
            with row(name, split_bytes):
                report = audit(shared(name), split_bytes)
                assert not report.is_clean


def test_without_checksums_a_flipped_body_passes_as_it_does_in_the_survey():
    assert audit_as_survey(shared("d-bodyflip-first"), *SPLIT_BYTES, verify=False).is_clean


def fill(root, message_count, clock, *, seed=0):
    with MessageStore.open(
        root, segment_size_bytes=SEGMENT_BYTES, queue_file_size_bytes=2000, clock=clock
    ) as store:
        for number in range(seed, seed + message_count):
            clock.advance(number % 3)
            body = bytes([number % 251]) * (number * 37 % 700 if number % 11 else 3000)
            store.put(f"T{number % 3}", body, queue_id=number % 2, tags="a" if number % 2 else None)


@pytest.fixture(scope="module")
def written(module_folders):
    root = module_folders.mktemp("written")
    fill(root, 120, VirtualClock())
    return root


@pytest.fixture(scope="module")
def mixed(module_folders):
    root = module_folders.mktemp("mixed")
    fill_mixed(root, 90)
    return root


DAMAGES = {
    "flip": lambda content, at, _size: content[:at] + bytes([content[at] ^ 0x10]) + content[at + 1 :],
    "zero": lambda content, at, size: content[:at] + bytes(size) + content[at + size :],
    "noise": lambda content, at, size: (
        content[:at] + b"\xda\xa3\x20\xa7" * (size // 4) + content[at + size :]
    ),
    "cut": lambda content, at, _size: content[:at],
    "remove": lambda _content, _at, _size: None,
}


@settings(max_examples=scaled(60, 2000))
@given(
    damages=st.lists(
        st.tuples(
            st.sampled_from(sorted(DAMAGES)),
            st.integers(0, 99),
            st.floats(0, 1, exclude_max=True),
            st.integers(1, 4096),
        ),
        max_size=3,
    ),
    split_bytes=st.integers(1024, 20_000),
    kept=st.sets(st.sampled_from(QUEUE_FOLDERS)) | st.just(set(QUEUE_FOLDERS)),
    is_declared=st.booleans(),
    is_mixed=st.booleans(),
)
def test_audit_agrees_with_the_survey_of_any_damaged_store(
    written, mixed, module_folders, damages, split_bytes, kept, is_declared, is_mixed
):
    origin = mixed if is_mixed else written
    folders = {"commitlog", *kept} | ({"config"} if is_declared else set())
    files = {path.relative_to(origin): path for path in origin.rglob("*") if path.is_file()}
    files = {name: path.read_bytes() for name, path in files.items() if name.parts[0] in folders}
    for kind, file_number, place, size in damages:
        hit = ["commitlog"] if file_number % 3 else ["commitlog", *QUEUE_FOLDERS]
        names = sorted(path for path in files if path.parts[0] in hit)
        path = names[file_number % len(names)]
        content = files.pop(path)
        used = len(content.rstrip(b"\0"))
        damaged = DAMAGES[kind](content, int(place * used), size) if used else content
        if damaged is not None:
            files[path] = damaged[: len(content)]
        if not any(path.parts[0] == "commitlog" for path in files):
            return
    root = module_folders.mktemp("damaged")
    for path, content in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes(content)
    audit_as_survey(root, split_bytes, SEGMENT_BYTES)
    shutil.rmtree(root)


@pytest.mark.sampled(6)
@pytest.mark.parametrize("pause_ms", [0, 1, 1000], ids=lambda pause_ms: f"{pause_ms} ms later")
@pytest.mark.parametrize("cut_at", [5, 40, 90], ids=lambda cut_at: f"cut before record {cut_at}")
@pytest.mark.parametrize("is_mixed", [False, True], ids=["plain queues", "all kinds"])
def test_records_of_an_older_life_stay_dead(written, mixed, tmp_path, cut_at, pause_ms, is_mixed):
    """RocketMQ cuts a log without erasing what is behind: valid records in their right places."""
    origin = mixed if is_mixed else written
    rows = survey(origin, RealFiles()).rows
    cut = int(rows["phy_offset"][cut_at])
    old = b"".join(path.read_bytes() for path in sorted((origin / "commitlog").iterdir()))
    root = tmp_path / "store"
    write_log(root, old[:cut], SEGMENT_BYTES)
    clock = VirtualClock(int(rows["store_timestamp_ms"][cut_at - 1]) + pause_ms)
    if is_mixed:
        fill_mixed(root, 15, clock)
    else:
        fill(root, 15, clock, seed=1000)
    end = survey(root, RealFiles()).max_phy_offset
    new = b"".join(path.read_bytes() for path in sorted((root / "commitlog").iterdir()))
    write_log(root, new[:end] + old[end:], SEGMENT_BYTES)
    audit_as_survey(root, *SPLIT_BYTES, 3000)


BORDER = 2048
BEFORE = Record(topic=b"T", body=b"b" * 300, queue_offset=0)
SIZE = len(BEFORE.pack())


def log_with_record_at(place):
    """Returns a log whose fourth record starts at ``place``, and the place where that one ends."""
    first = replace(BEFORE, body=b"f" * (place - 3 * SIZE + 300))
    records = [first, BEFORE, BEFORE, *[replace(BEFORE, body=b"x" * 400)] * 4]
    return pack_log([replace(record, queue_offset=number) for number, record in enumerate(records)])


AROUND = {
    "starts at the border": 0,
    "starts a byte before": -1,
    "starts a byte behind": 1,
    "crosses with its head": -20,
    "crosses with its last byte": 1 - len(replace(BEFORE, body=b"x" * 400).pack()),
    "ends at the border": -len(replace(BEFORE, body=b"x" * 400).pack()),
}
WHERE = {"size": 0, "magic": 5, "phy offset": 35, "body crc": 9, "body": 100, "last byte": -1}


def test_damage_around_a_border_is_one_hole(tmp_path):
    size = len(replace(BEFORE, body=b"x" * 400).pack())
    with every_row() as row:
        for around, shift in AROUND.items():
            for field, where in WHERE.items():
                root = tmp_path / around / field
                log = bytearray(log_with_record_at(BORDER + shift))
                log[BORDER + shift + where % size] ^= 0x40
                write_log(root, bytes(log), SEGMENT_BYTES)
                with row(around, field):
                    report = audit_as_survey(root, BORDER)
                    holes = [(hole.phy_offset, hole.size_bytes) for hole in report.holes]
                    assert holes == [(BORDER + shift, size)]
                    assert report.records == 6
                    # A split cannot know that a record of the one before ends a byte behind its start,
                    # right at the damage.
                    assert report.walked_again == (1 if shift == 1 else 0)


@pytest.mark.parametrize("shift", AROUND.values(), ids=AROUND)
@pytest.mark.parametrize("lost", [SIZE, 3000], ids=["in one split", "over several splits"])
def test_lost_page_around_a_border_is_one_hole(shift, lost, tmp_path):
    log = bytearray(log_with_record_at(BORDER + shift))
    more = [replace(BEFORE, queue_offset=7 + number) for number in range(12)]
    log += pack_log(more, start=len(log))
    log[BORDER + shift : BORDER + shift + lost] = bytes(lost)
    write_log(tmp_path, bytes(log), SEGMENT_BYTES)
    report = audit_as_survey(tmp_path, BORDER, 1024)
    assert [hole.phy_offset for hole in report.holes] == [BORDER + shift]


def test_record_longer_than_many_splits_belongs_to_the_first(tmp_path):
    log = pack_log(
        [BEFORE, replace(BEFORE, body=b"L" * 9000, queue_offset=1), replace(BEFORE, queue_offset=2)]
    )
    write_log(tmp_path, log, SEGMENT_BYTES)
    report = audit_as_survey(tmp_path, 1024)
    assert (report.records, report.walked_again) == (3, 0)


@pytest.mark.parametrize("is_outer_damaged", [False, True], ids=["intact", "damaged"])
def test_record_inside_a_body_is_no_record_while_the_body_is_one(is_outer_damaged, tmp_path):
    """The worst body: a record that says of itself that it is where it does, behind a split's border."""
    head_bytes, inner_at = 88, 1200
    inner = replace(BEFORE, topic=b"Inner", phy_offset=inner_at).pack()
    body = bytes(inner_at - head_bytes) + inner + bytes(500)
    log = bytearray(pack_log([replace(BEFORE, body=body), replace(BEFORE, queue_offset=1)]))
    assert log.index(inner) == inner_at
    if is_outer_damaged:
        log[12] ^= 0x80  # the queue id of the outer record: negative
    write_log(tmp_path, bytes(log), SEGMENT_BYTES)
    report = audit_as_survey(tmp_path, 1024)
    assert {queue.topic for queue in report.queues} == ({"Inner", "T"} if is_outer_damaged else {"T"})
