"""A verification says of a damaged log what a check says, and runs none for a sound one."""

from __future__ import annotations

import shutil

import pytest

from seglog.doctor.check.check import check_store
from seglog.doctor.check.verify import verify_store
from seglog.storage.findings.code import Severity
from tests.support.material.sealed import SEGMENT_BYTES, flip, record_near, seal_of, sealed_stores, segment
from tests.support.material.stores import new_clock


@pytest.fixture(scope="module")
def stores(tmp_path_factory):
    return sealed_stores(tmp_path_factory.mktemp("sealed"))


@pytest.fixture
def store(stores, tmp_path):
    return shutil.copytree(stores[True][0], tmp_path / "store")


def last_gone(path):
    segment(path, 4).unlink()


def all_but_first_gone(path):
    for number in range(1, 5):
        segment(path, number).unlink()
        seal_of(path, number).unlink(missing_ok=True)


def last_emptied(path):
    segment(path, 4).write_bytes(b"")


def half_copied(path):
    segment(path, 4).unlink()
    with segment(path, 3).open("r+b") as stream:
        stream.truncate(30_000)


def sealed_file_longer(path):
    with segment(path, 0).open("ab") as stream:
        stream.write(b"junkjunk")


def body_flipped(path):
    seal_of(path, 1).unlink()
    flip(segment(path, 1), record_near(path, 1, 5000)[0] + 300)


def last_record_damaged(path):
    raw = segment(path, 4).read_bytes()
    end = len(raw.rstrip(b"\0"))
    segment(path, 4).write_bytes(raw[: end - 150] + bytes(150) + raw[end:])


def garbage_at_the_end(path):
    raw = segment(path, 4).read_bytes()
    end = len(raw.rstrip(b"\0"))
    segment(path, 4).write_bytes(raw[: end - 700] + bytes(range(1, 256)) * 8 + raw[end - 700 + 2040 :])


def junk_far_behind_the_end(path):
    flip(segment(path, 4), SEGMENT_BYTES - 1)


def folder_in_place_of_the_last(path):
    segment(path, 4).unlink()
    segment(path, 4).mkdir()


def stray_beside_the_log(path):
    (path / "commitlog" / "00000000000000000007").write_bytes(b"x")


def middle_gone(path):
    segment(path, 2).unlink()


def rot(path):
    flip(segment(path, 2), 70_000)


@pytest.mark.parametrize("crc", [True, False])
@pytest.mark.parametrize(
    "harm",
    [
        last_gone,
        all_but_first_gone,
        last_emptied,
        half_copied,
        sealed_file_longer,
        body_flipped,
        last_record_damaged,
        garbage_at_the_end,
        junk_far_behind_the_end,
        folder_in_place_of_the_last,
        stray_beside_the_log,
        middle_gone,
        rot,
    ],
)
def test_what_is_said_of_a_damaged_log_is_what_a_check_says(stores, tmp_path, harm, crc):
    path = shutil.copytree(stores[crc][0], tmp_path / "store")
    harm(path)
    checked = check_store(path, clock=new_clock())
    report = verify_store(path)

    def of_log(findings):
        return sorted(repr(finding) for finding in findings if finding.file.startswith("commitlog"))

    of_check = of_log(checked.findings)
    assert of_check
    assert of_log(report.findings) == of_check
    assert report.is_clean == all(
        finding.severity is Severity.NOTE
        for finding in checked.findings
        if finding.file.startswith("commitlog")
    )
    assert report.concerned == checked.concerned


def test_a_sound_log_is_not_checked(store, monkeypatch):
    def refuse(*_args, **_kwargs):
        raise AssertionError

    monkeypatch.setattr("seglog.doctor.check.verify.check_store", refuse)
    assert verify_store(store).is_clean
    assert verify_store(store, seal=True).is_clean
    segment(store, 0).unlink()  # retention
    assert verify_store(store).is_clean
