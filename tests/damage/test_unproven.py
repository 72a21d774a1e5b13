"""What a repair leaves to the operator: a value of a table that nothing else in the store proves."""

from __future__ import annotations

import json
import shutil

import pytest
from click.testing import CliRunner

from seglog.cli.main import commands
from seglog.errors import Ending
from seglog.storage.store import MessageStore
from tests.support.damage.unproven import LEFT, left_to_operator
from tests.support.material.stores import QUEUE_FILE_BYTES, SEGMENT_BYTES, SMALL_INDEX, new_clock

TABLE = {"topicConfigTable": {"P": {"perm": 6, "attributes": {"queue.type": "SimpleCQ"}}}}


@pytest.fixture
def stores(tmp_path):
    """An undamaged store, and a copy to damage."""
    store = tmp_path / "store"
    (store / "config").mkdir(parents=True)
    (store / "config" / "topics.json").write_text(json.dumps(TABLE))
    with MessageStore.open(
        store,
        clock=new_clock(),
        segment_size_bytes=SEGMENT_BYTES,
        queue_file_size_bytes=QUEUE_FILE_BYTES,
        **SMALL_INDEX,
    ) as opened:
        opened.put("P", b"body")
    return store, shutil.copytree(store, tmp_path / "damaged")


def change(root, old, new):
    path = root / "config" / "topics.json"
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new))


@pytest.mark.parametrize(("old", "new"), [
    ("topicConfigTable", "topicConfXXTable"), ('"perm": 6', '"perm": "6"'), ('{"perm"', '1, "Q": {"perm"'),
])  # fmt: skip
def test_a_repair_leaves_and_names_what_nothing_proves(old, new, stores):
    store, damaged = stores
    change(damaged, old, new)
    assert left_to_operator(store, damaged) == LEFT
    repaired = CliRunner().invoke(commands, ["repair", "--apply", "--yes", str(damaged)])
    assert repaired.exit_code == Ending.LEFT
    assert "config-shape config/topics.json" in repaired.stdout
    assert f"`seglog inspect config {damaged}`" in " ".join(repaired.stdout.split())


def test_one_byte_of_a_word_must_be_mended(stores):
    store, damaged = stores
    change(damaged, "topicConfigTable", "topicConfXgTable")
    assert left_to_operator(store, damaged) == frozenset()
    assert CliRunner().invoke(commands, ["repair", "--apply", "--yes", str(damaged)]).exit_code == 0
    assert json.loads((damaged / "config" / "topics.json").read_text()) == TABLE


def test_nothing_may_stay_where_a_backup_tells(stores):
    store, damaged = stores
    change(damaged, "topicConfigTable", "topicConfXXTable")
    shutil.copy(store / "config" / "topics.json", damaged / "config" / "topics.json.bak")
    assert left_to_operator(store, damaged) == frozenset()
    assert CliRunner().invoke(commands, ["repair", "--apply", "--yes", str(damaged)]).exit_code == 0


def test_nothing_may_stay_where_another_file_changed_too(stores):
    store, damaged = stores
    change(damaged, "topicConfigTable", "topicConfXXTable")
    (damaged / "checkpoint").unlink()
    assert left_to_operator(store, damaged) == frozenset()
