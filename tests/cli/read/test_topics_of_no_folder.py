"""A record of a topic that no folder can be named after costs itself: commands step over it and name it."""

from __future__ import annotations

import pytest

from seglog.doctor.check.check import check_store
from seglog.errors import Ending
from seglog.storage.directory.queue_files import QueueFiles, list_queue, remove_topic_folders
from seglog.storage.files.files import RealFiles
from seglog.storage.format.names import can_name_directory
from seglog.storage.store import MessageStore
from seglog.storage.survey.store_survey import survey
from tests.support.command_line import Seglog
from tests.support.material.records import Record
from tests.support.material.stores import SMALL_INDEX, AllLengths

SMALL: AllLengths = {"segment_size_bytes": 1 << 16, "queue_file_size_bytes": 2000, **SMALL_INDEX}
TOPICS = {
    "long": b"t" * 300,
    "long in bytes": "é".encode() * 200,
    "dots": b"..",
    "dot": b".",
    "slash": b"a/b",
    "up": b"../up",
    "absolute": b"/etc/x",
    "nul": b"a\0b",
    "empty": b"",
}


@pytest.fixture(params=TOPICS.values(), ids=list(TOPICS))
def path(request, tmp_path):
    """A store that ends with a record of such a topic and one of a good topic behind it."""
    path = tmp_path / "store"
    with MessageStore.open(path, record_crc=False, **SMALL) as store:
        for number in range(3):
            store.put("good", b"m%d" % number, keys=f"k{number}")
        end = store.max_phy_offset
    bad = Record(topic=request.param, phy_offset=end, body=b"bad").pack()
    after = Record(topic=b"good", queue_offset=3, phy_offset=end + len(bad), body=b"after").pack()
    with (path / "commitlog" / ("0" * 20)).open("r+b") as log:
        log.seek(end)
        log.write(bad + after)
    (path / "abort").touch()
    return path


def codes(findings):
    return {finding.code for finding in findings}


COMMANDS = [
    ["check"],
    ["report", "--html", "report.html"],
    ["dump", "--log"],
    ["info", "--verify"],
    ["verify"],
    ["queues"],
    ["get", "good"],
    ["tail"],
    ["query", "good", "k1"],
    ["explain", "k1"],
    ["export", "-o", "-"],
    ["backup", "copy"],
    ["repair"],
]


MADE = {"copy", "report.html"}


def ran(seglog, path, words):
    command, *rest = words
    return seglog(command, path, *(path.parent / word if word in MADE else word for word in rest))


def test_every_command_goes_on_behind_it(seglog: Seglog, path):
    surroundings = sorted(path.parent.iterdir())
    for words in COMMANDS:
        answer = ran(seglog, path, words)
        assert answer.exit_code in (0, 1, Ending.LOSS), (words, answer.stderr)
    shown = seglog("get", path, "good", "--body", "raw").stdout_bytes
    assert shown == b"m0\nm1\nm2\nafter"
    for made in set(path.parent.iterdir()) - set(surroundings):
        assert made.name in MADE


def test_it_is_named_and_nothing_else_suffers(path):
    assert "topic-name" in codes(check_store(path).findings)
    with MessageStore.open(path, read_only=True) as reader:
        assert "topic-name" in codes(reader.recovery.findings)
        assert reader.topics() == ["good"]
    with MessageStore.open(path) as store:
        assert [message.body for message in store.get("good", 0, 0)] == [b"m0", b"m1", b"m2", b"after"]
        assert store.put("good", b"more").queue_offset == 4
    assert "topic-name" in codes(survey(path, RealFiles()).findings)
    assert [each.name for each in (path / "consumequeue").iterdir()] == ["good"]
    assert [each.name for each in path.parent.iterdir()] == ["store"]


def test_such_a_topic_has_no_files_wherever_it_would_lead(tmp_path):
    outside = tmp_path / "outside" / "0"
    outside.mkdir(parents=True)
    (outside / ("0" * 20)).write_bytes(bytes(20))
    root = tmp_path / "store"
    (root / "consumequeue").mkdir(parents=True)
    for name in ("../../outside", str(outside.parent), "..", "x" * 300, "a\0b"):
        assert not can_name_directory(name)
        listed = list_queue(RealFiles(), QueueFiles(name, 0, root / "consumequeue" / name / "0"))
        assert listed.sizes == {}
        remove_topic_folders(RealFiles(), root, name)
    assert list(outside.iterdir())
