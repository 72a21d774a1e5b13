"""Values of config tables that cannot be come back where a name of RocketMQ's or the backup proves them."""

from __future__ import annotations

from typing import Any

import pytest

from seglog.doctor.repair.tables import mend_tables
from seglog.storage.files.files import RealFiles
from seglog.storage.format.config.config_json import decode_config

PLAIN = b'{"topicConfigTable": {"P": {"attributes": {}}, "B": {"attributes": {"queue.type": "BatchCQ"}}}}'
OFFSETS = b'{"offsetTable":{"P@g":{0:5},"P@h":{0:7}}}'


@pytest.fixture
def root(tmp_path):
    for folder in ("consumequeue/P/0", "batchconsumequeue/B/0", "config"):
        (tmp_path / folder).mkdir(parents=True)
    for folder in ("consumequeue/P/0", "batchconsumequeue/B/0"):
        (tmp_path / folder / f"{0:020d}").write_bytes(bytes(920))
    return tmp_path


def mended(root, name, content, backup=None):
    path = root / "config" / name
    path.write_bytes(content)
    if backup is not None:
        path.with_name(f"{name}.bak").write_bytes(backup)
    actions = list(mend_tables(RealFiles(), root))
    assert [action.file for action in actions] == ([f"config/{name}"] if actions else [])
    assert (path.read_bytes() != content) == bool(actions)
    return path.read_bytes()


@pytest.mark.parametrize("word", [b"topicConfigTable", b"queue.type", b"BatchCQ"])
@pytest.mark.parametrize("bit", [1, 4, 8])
def test_each_byte_of_a_name_comes_back_that_one_change_explains(word, bit, root):
    start = PLAIN.index(word)
    for place in range(start, start + len(word)):
        content = bytearray(PLAIN)
        content[place] ^= bit
        if bytes(content)[place : place + 1] not in b'"\\' and content[place] < 128:
            assert mended(root, "topics.json", bytes(content)) == PLAIN


def test_the_name_of_the_table_of_offsets_comes_back(root):
    assert mended(root, "consumerOffset.json", OFFSETS.replace(b"offsetT", b"ogfsetT")) == OFFSETS


@pytest.mark.parametrize("content", [
    PLAIN.replace(b"BatchCQ", b"BatxxCQ"),
    PLAIN.replace(b"topicConfig", b"topicxonfxg"),
    PLAIN.replace(b'"queue.type": "BatchCQ"', b""),
    PLAIN.replace(b'"P": {"attributes": {}}', b'"P": 1'),
])  # fmt: skip
def test_what_nothing_proves_stays(content, root):
    assert mended(root, "topics.json", content) == content


def test_entries_come_from_the_backup_and_the_others_stay(root):
    content = b'{"offsetTable":{"P@g":{0:-5},"P@h":{0:9}},"dataVersion":{"counter":4}}'
    made = decode_config(mended(root, "consumerOffset.json", content, OFFSETS))
    assert made == {"offsetTable": {"P@g": {0: 5}, "P@h": {0: 9}}, "dataVersion": {"counter": 4}}


def test_a_kind_of_queue_comes_from_the_backup_that_its_folder_agrees_with(root):
    content = PLAIN.replace(b"BatchCQ", b"Bxxxx").replace(b'"P": {', b'"P": {"perm": 6, ')
    made: Any = decode_config(mended(root, "topics.json", content, PLAIN))
    assert made["topicConfigTable"]["B"] == {"attributes": {"queue.type": "BatchCQ"}}
    assert made["topicConfigTable"]["P"]["perm"] == 6


def test_a_backup_that_cannot_be_either_proves_nothing(root):
    content = PLAIN.replace(b"BatchCQ", b"Bxxxx")
    assert mended(root, "topics.json", content, content) == content


def test_sound_tables_are_left_alone(root):
    assert mended(root, "topics.json", PLAIN, OFFSETS) == PLAIN
