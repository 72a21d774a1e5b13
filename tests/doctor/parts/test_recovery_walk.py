"""After a crash RocketMQ walks the log from where its checkpoint says: 5.5.0 by a place, others by a time."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from seglog.doctor.check.broker_start import BrokerStart, Start
from seglog.doctor.check.check import check_store
from seglog.doctor.check.triage import verdict_on
from seglog.storage.format.checkpoint import Checkpoint, encode_checkpoint
from tests.doctor.check.test_lengths import SEGMENT, log_files
from tests.support.material import golden
from tests.support.material.sealed import flip
from tests.support.material.stores import new_clock

LAST = sys.maxsize
"""A store time later than any."""


@pytest.fixture
def crashed(tmp_path: Path) -> Path:
    """A store of several log files that was not closed, with a damaged body in its second file."""
    root = golden.extract("roll-halt", tmp_path)
    flip(log_files(root)[1], 200)
    return root


def told(root: Path, **values: int) -> BrokerStart:
    """Returns the verdict on a store with these values in its checkpoint, and 0 elsewhere."""
    (root / "checkpoint").write_bytes(encode_checkpoint(Checkpoint(**values)))
    return verdict_on(check_store(root, clock=new_clock())).start


def with_records(root: Path) -> list[Path]:
    """Returns the files of the log that are not empty."""
    return [path for path in log_files(root) if any(path.read_bytes())]


def walked_from(start: BrokerStart) -> int | None:
    """Returns the number of the first file of the log that is walked."""
    return None if start.walk is None else start.walk.first_phy_offset // SEGMENT


def test_a_release_before_5_5_begins_at_the_time_of_the_checkpoint(crashed):
    start = told(crashed)
    assert (start.start, walked_from(start)) == (Start.LOSES, 0)
    start = told(crashed, physic_timestamp_ms=LAST, logics_timestamp_ms=LAST)
    assert (start.start, walked_from(start)) == (Start.YES, len(with_records(crashed)) - 1)


def test_from_5_5_on_it_begins_at_the_place_of_the_checkpoint_whatever_its_times_are(crashed):
    last = len(with_records(crashed)) - 1
    for number in range(last + 1):
        for place in (number * SEGMENT, (number + 1) * SEGMENT - 1):
            for time_ms in (0, LAST):
                start = told(
                    crashed, physic_timestamp_ms=time_ms, logics_timestamp_ms=time_ms, logics_phy_offset=place
                )
                if place == 0:  # as an older release left it
                    continue
                # A file that begins with what cannot be read is no place to begin at.
                assert walked_from(start) == (0 if number == 1 else number), place
                assert start.start is (Start.LOSES if number < 2 else Start.YES), place
