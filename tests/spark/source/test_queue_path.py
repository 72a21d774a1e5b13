"""Reading by consume queues gives what reading the log gives, also where they are wrong."""

from __future__ import annotations

import re
import shutil

import numpy as np
import pyarrow as pa
import pytest

from seglog import MessageStore
from seglog.spark.source.read.log_plan import plan_log
from seglog.spark.source.read.queue_path import QueuePath
from seglog.spark.source.read.read_plan import plan_pieces, read_piece
from seglog.spark.source.read.split_rows import SplitRows
from seglog.spark.source.values.columns import named_columns
from seglog.spark.source.wanted.options import Options
from seglog.spark.source.wanted.selection import Selection
from seglog.storage.files.files import RealFiles
from tests.support.machine.shared import copy_tree
from tests.support.material.golden import golden_names, shared
from tests.support.rows import every_row

SPLIT_BYTES = 20_000


def read(root, selection, access_path):
    options = Options((str(root),), access_path=access_path, max_partition_bytes=SPLIT_BYTES)
    wanted = named_columns(["physicalOffset", "topic", "queueId", "queueOffset"])
    batches = [
        batch for piece in plan_pieces(options) for batch in read_piece(piece, options, selection, wanted)
    ]
    schema = pa.schema([(one.name, one.type) for one in wanted])
    return pa.Table.from_batches(batches, schema).to_pylist()


def windows_of(root, selection, access_path="cq"):
    """Returns for each split how many bytes the queues made it read, None where it would be walked."""
    files = RealFiles()
    plan = plan_log(root, files, split_bytes=SPLIT_BYTES)
    rows = SplitRows(files, root, plan.geometry, verify=True, batch_rows=8192)
    path = QueuePath(files, root, plan.geometry, rows, selection)
    found = [path.windows(split, access_path) for split in plan.splits]
    rows.close()
    return [None if one is None else sum(len(window.memory) for window in one) for one in found]


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """Three topics; the second is rare. For reading only."""
    root = tmp_path_factory.mktemp("whole") / "store"
    with MessageStore.open(root, segment_size_bytes=1 << 18) as opened:
        for number in range(600):
            topic = "rare" if number % 40 == 0 else f"common-{number % 2}"
            opened.put(topic, bytes(800), queue_id=number % 3, keys=str(number))
    return root


@pytest.fixture
def store(whole, tmp_path):
    """A copy of that store."""
    return copy_tree(whole, tmp_path / "store")


RARE = Selection(topics=frozenset({"rare"}))
SELECTIONS = [
    RARE,
    Selection(queues=frozenset({("common-0", 1), ("common-1", 0), ("none", 0)})),
    Selection(topic_pattern=re.compile("common-[1-9]|ra.*")),
    Selection(topics=frozenset({"common-1"}), starting={("common-1", 0): 50, ("common-1", 1): 60}),
    Selection(starting={("rare", 0): 2}, ending={("common-0", 0): 1, ("common-1", 1): 7}),
    Selection(topics=frozenset({"none"})),
]


@pytest.mark.parametrize("selection", SELECTIONS)
def test_all_ways_give_the_same_messages(whole, selection):
    by_log = read(whole, selection, "scan")
    assert read(whole, selection, "cq") == read(whole, selection, "auto") == by_log
    assert all(size is not None for size in windows_of(whole, selection))
    if selection is RARE:
        assert [row["topic"] for row in by_log] == ["rare"] * 15


def test_only_what_is_wanted_is_read(whole):
    found = windows_of(whole, RARE, "auto")
    by_queues = [size for size in found if size is not None]
    assert len(by_queues) > len(found) - 3
    assert sum(by_queues) < 60_000 < 600 * 800
    assert None in windows_of(whole, Selection(topics=frozenset({"common-1"})), "auto")


def swap_queues(store):
    """Gives each of two topics the queues of the other."""
    queues = store / "consumequeue"
    (queues / "rare").rename(queues / "x")
    (queues / "common-1").rename(queues / "rare")
    (queues / "x").rename(queues / "common-1")


def cut_queue(store):
    file = next((store / "consumequeue" / "rare" / "0").iterdir())
    with file.open("r+b") as opened:
        opened.truncate(20 * 3)


def damage_unit(store):
    file = next((store / "consumequeue" / "rare" / "0").iterdir())
    raw = np.fromfile(file, np.uint8)
    raw[20 * 2 + 6] ^= 4
    raw.tofile(file)


def turn_around(store):
    file = next((store / "consumequeue" / "rare" / "1").iterdir())
    raw = np.fromfile(file, "V20")
    raw[:5] = raw[:5][::-1]
    raw.tofile(file)


def drop_queue(store):
    shutil.rmtree(store / "consumequeue" / "rare" / "2")


def drop_queues(store):
    shutil.rmtree(store / "consumequeue")


@pytest.mark.parametrize(
    "damage",
    [swap_queues, cut_queue, damage_unit, turn_around, drop_queue, drop_queues],
    ids=lambda it: it.__name__,
)
@pytest.mark.parametrize("access_path", ["cq", "auto"])
def test_no_message_is_missed_where_queues_are_wrong(store, damage, access_path):
    wanted = read(store, RARE, "scan")
    damage(store)
    assert read(store, RARE, access_path) == wanted


DAMAGED = ["d-magic", "d-cqgarbage", "d-cqtrunc", "d-nocq-halt", "d-trimfront"]


def test_golden_stores_by_queues():
    with every_row() as row:
        for name in (*golden_names(damaged=False), *DAMAGED):
            with row(name):
                check_by_queues(shared(name))


def check_by_queues(root):
    """Asserts that queues lead to the messages that the log has."""
    wanted = named_columns(["topic", "queueId", "queueOffset", "physicalOffset"])

    def rows(selection, access_path):
        chosen = Options(
            (str(root),), fail_on_data_loss=False, access_path=access_path, max_partition_bytes=30_000
        )
        return [
            row
            for piece in plan_pieces(chosen)
            for batch in read_piece(piece, chosen, selection, wanted)
            for row in batch.to_pylist()
        ]

    everything = rows(Selection(), "scan")
    for topic in sorted({row["topic"] for row in everything})[-3:]:
        selection = Selection(queues=frozenset({(topic, 0)}))
        assert rows(selection, "cq") == [
            row for row in everything if (row["topic"], row["queueId"]) == (topic, 0)
        ]
