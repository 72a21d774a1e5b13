"""``seglog.scan``: Arrow's columns of stores without a JVM, for Polars, DuckDB and pandas."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from datetime import UTC, datetime

import duckdb
import polars as pl
import pyarrow as pa
import pytest

import seglog
from seglog import MessageStore
from seglog.errors import CorruptError, InvalidArgumentError, NotFoundError
from seglog.spark.source.read.batches import Messages
from tests.spark.source.test_messages import read
from tests.support.material.golden import extract
from tests.support.narrow import not_none

COUNT = 3_000


@pytest.fixture(scope="module")
def orders(tmp_path_factory):
    root = tmp_path_factory.mktemp("scan") / "s"
    with MessageStore.open(root, small=True) as store:
        for number in range(COUNT):
            tags = ("paid", "open", None)[number % 3]
            store.put("orders", b"%d" % number, queue_id=number % 2, tags=tags, keys=f"k{number}")
        store.put("other", b"x")
    return root


@pytest.fixture
def made(monkeypatch):
    """Counts the rows of each column that is made."""
    counts = Counter()
    whole = Messages.batch

    def batch(self, wanted, constants):
        counts.update({one.name: len(self.rows) for one in wanted})
        return whole(self, wanted, constants)

    monkeypatch.setattr(Messages, "batch", batch)
    return counts


@pytest.mark.parametrize("name", ["basic", "roll", "innerbatch", "delay", "comp"])
def test_a_scan_has_the_rows_that_a_read_of_spark_has(tmp_path, name):
    root = extract(name, tmp_path)
    asked = ["topic", "queueId", "queueOffset", "body", "keys", "tags", "msgId", "physicalOffset", "size"]
    rows = read(root, inner_batches="messages")
    found = seglog.scan(root, columns=asked).table().to_pylist()
    assert found == [{column: row[column] for column in asked} for row in rows]
    assert seglog.scan(root).count() == len(rows) == len(pl.DataFrame(seglog.scan(root)))


def test_only_what_is_asked_for_is_read(orders):
    assert seglog.scan(orders).count() == COUNT + 1
    assert seglog.scan(orders, topic="orders").count() == COUNT
    assert seglog.scan(orders, topic=["orders", "other"]).count() == COUNT + 1
    assert seglog.scan(orders, topic_pattern="oth.*").count() == 1
    queue = seglog.scan(orders, queues={"orders": [1]}, columns=["body"])
    assert [int(body) for body in queue.table()["body"].to_pylist()] == list(range(1, COUNT, 2))
    part = seglog.scan(orders, begin={("orders", 0): 10}, end={("orders", 0): 13}, queues={"orders": [0]})
    assert [int(body) for body in part.table()["body"].to_pylist()] == [20, 22, 24]
    assert seglog.scan(orders).schema.names[:3] == ["topic", "flag", "body"]


def test_times_are_datetimes_or_milliseconds(tmp_path):
    clock = seglog.VirtualClock(1_700_000_000_000)
    with MessageStore.open(tmp_path / "s", small=True, clock=clock) as store:
        for number in range(10):
            store.put("T", b"%d" % number)
            clock.advance(1000)
    third = datetime.fromtimestamp(1_700_000_003, UTC)
    assert seglog.scan(tmp_path / "s", since=third).count() == 7
    assert seglog.scan(tmp_path / "s", until=1_700_000_003_000).count() == 3
    assert (
        seglog.scan(tmp_path / "s", since=third.astimezone().replace(tzinfo=None), until=third).count() == 0
    )
    (time,) = seglog.scan(tmp_path / "s", since=third, until=1_700_000_003_001).table()["storeTimestamp"]
    assert time.as_py() == third


def test_a_scan_can_be_used_again_and_sees_what_was_stored_since(tmp_path):
    with MessageStore.open(tmp_path / "s", small=True) as store:
        store.put("T", b"0")
        scan = seglog.scan(tmp_path / "s", columns=["body"])
        assert scan.table()["body"].to_pylist() == [b"0"]
        store.put("T", b"1")
        assert scan.table()["body"].to_pylist() == [b"0", b"1"]
        assert [batch.num_rows for batch in scan] == [2]


def test_polars_pushes_columns_rows_and_predicates_down(orders, made):
    frame = seglog.scan(orders).lazy()
    assert frame.select(pl.len()).collect().item() == COUNT + 1
    assert len(made) == 1  # Polars counts the rows of one column
    assert made.keys().isdisjoint({"body", "properties"})
    made.clear()
    found = frame.filter((pl.col("tags") == "paid") & (pl.col("queueOffset") < 6)).select("body").collect()
    assert found["body"].to_list() == [b"0", b"3", b"6", b"9"]
    assert made.keys() == {"tags", "queueOffset", "body"}
    assert made["body"] == 4  # of the messages that are left alone
    made.clear()
    assert frame.filter(pl.col("tags") == "none").collect().shape == (0, 18)
    assert made.keys() == {"tags"}
    assert frame.head(2).select("body").collect()["body"].to_list() == [b"0", b"1"]


def test_a_limit_before_a_filter_counts_all_messages(orders):
    scan = seglog.scan(orders, columns=["tags", "body"])
    is_open = pl.col("tags") == "open"
    for most in (1, 50, 2_999, COUNT + 9):
        ours, theirs = scan.lazy(), pl.DataFrame(scan).lazy()
        assert ours.limit(most).filter(is_open).collect().equals(theirs.limit(most).filter(is_open).collect())
        assert ours.filter(is_open).limit(most).collect().equals(theirs.filter(is_open).limit(most).collect())


def test_polars_gets_of_inner_batches_the_messages(tmp_path):
    root = extract("innerbatch", tmp_path)
    frame = seglog.scan(root).lazy()
    rows = read(root, inner_batches="messages")
    assert frame.select(pl.len()).collect().item() == len(rows)
    wanted = [row["body"] for row in rows if row["queueOffset"] >= 20]
    assert frame.filter(pl.col("queueOffset") >= 20).select("body").collect()["body"].to_list() == wanted
    assert len(wanted) < len(rows)


def test_what_polars_filters_is_what_it_filters_itself(orders):
    scan = seglog.scan(orders, columns=["queueId", "queueOffset", "tags", "body", "storeTimestamp"])
    whole = pl.DataFrame(scan)
    for predicate in (
        pl.col("tags").is_null(),
        pl.col("tags") != "paid",  # null where there is none: left out
        pl.col("queueId").is_in([1]) | (pl.col("queueOffset") % 7 == 0),
        pl.lit(value=True),
    ):
        assert scan.lazy().filter(predicate).collect().equals(whole.filter(predicate))


def test_duckdb_and_pandas_take_a_scan(orders):
    scan = seglog.scan(orders, columns=["topic", "tags", "body"])
    rows = duckdb.sql("select tags, count(*) from scan where topic = 'orders' group by tags order by 1")
    assert not_none(rows).fetchall() == [("open", 1000), ("paid", 1000), (None, 1000)]
    assert len(scan.table().to_pandas()) == COUNT + 1
    assert pa.table(scan).num_rows == COUNT + 1


def test_damage_is_an_error_or_left_out(tmp_path):
    with MessageStore.open(tmp_path / "s", small=True) as store:
        places = [store.put("T", b"body %d" % number) for number in range(5)]
    (file,) = (tmp_path / "s" / "commitlog").glob("0*0")
    data = file.read_bytes()
    at = data.index(b"body 2", places[2].phy_offset)
    with file.open("r+b") as log:
        log.seek(at)
        log.write(b"BODY")
    with pytest.raises(CorruptError):
        seglog.scan(tmp_path / "s").count()
    left = seglog.scan(tmp_path / "s", skip_damage=True, columns=["body"]).table()["body"].to_pylist()
    assert left == [b"body 0", b"body 1", b"body 3", b"body 4"]
    assert seglog.scan(tmp_path / "s", verify=False).count() == 5


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"columns": ["bodies"]}, "there is no column 'bodies'"),
        ({"columns": ["body", "body"]}, "each of them once"),
        ({"columns": 5}, "columns=5"),
        ({"topic": 5}, "topic=5"),
        ({"topic": b"T"}, "topic="),
        ({"topic": "T", "topic_pattern": "T"}, "give one of them"),
        ({"topic_pattern": "("}, "regular expression"),
        ({"queues": {"T": 1}}, "numbers by topic"),
        ({"queues": {"T": [-1]}}, "queues number=-1"),
        ({"queues": {}}, "numbers by topic"),
        ({"begin": {"T": 1}}, "offsets by topic and number"),
        ({"end": {("T", 0): "1"}}, "end='1'"),
        ({"since": "yesterday"}, "since='yesterday'"),
        ({"until": datetime(1, 1, 1, tzinfo=UTC), "since": 1.5}, "since=1.5"),
        ({"broker_names": ["a", "b"]}, "broker_names="),
        ({"inflate": 1}, "inflate=1"),
        ({"verify": None}, "verify=None"),
        ({"skip_damage": "no"}, "skip_damage='no'"),
    ],
)
def test_wrong_arguments_are_named(tmp_path, wrong, said):
    with pytest.raises(InvalidArgumentError) as refused:
        seglog.scan(tmp_path, **wrong)
    assert said in f"{refused.value} {refused.value.help}"


def test_a_store_is_needed_once_and_has_to_be_there(tmp_path):
    for stores in ((), (5,), (b"s",), ("",)):
        with pytest.raises(InvalidArgumentError, match="store"):
            seglog.scan(*stores)
    with pytest.raises(InvalidArgumentError, match="read twice"):
        seglog.scan(tmp_path, tmp_path)
    with pytest.raises(NotFoundError, match="there is no store"):
        seglog.scan(tmp_path / "none").count()


def without(names, code):
    """Runs code in a process that has none of some packages; returns the lines that it printed."""
    absent = f"""
import sys
class Absent:
    def find_spec(self, name, path=None, target=None):
        if name in {names!r}:
            raise ModuleNotFoundError(name)
sys.meta_path.insert(0, Absent())
import seglog
"""
    ran = subprocess.run([sys.executable, "-c", absent + code], check=True, capture_output=True, text=True)
    return ran.stdout.splitlines()


def test_a_scan_needs_neither_spark_nor_pandas_nor_polars(orders):
    code = f"""
print(seglog.scan({str(orders)!r}, columns=["body"]).table().num_rows)
try:
    seglog.scan({str(orders)!r}).lazy()
except seglog.SeglogError as error:
    print(error, "|", error.help)
"""
    said = "Scan.lazy needs the Python package polars | install it with `pip install polars`"
    assert without(("pyspark", "pandas", "polars", "py4j"), code) == [str(COUNT + 1), said]


def test_without_pyarrow_it_says_what_to_install(orders):
    code = f"""
try:
    seglog.scan({str(orders)!r})
except seglog.SeglogError as error:
    print(error, "|", error.help)
"""
    said = "seglog.scan needs the Python package pyarrow | install it with `pip install 'seglog[arrow]'`"
    assert without(("pyarrow",), code) == [said]


def test_a_log_in_several_folders_is_read_from_all_of_them(tmp_path):
    root = extract("roll", tmp_path)
    whole = seglog.scan(root).table()
    (root / "commitlog2").mkdir()
    for path in sorted((root / "commitlog").iterdir())[1::2]:
        path.rename(root / "commitlog2" / path.name)
    assert seglog.scan(root).table() == whole
