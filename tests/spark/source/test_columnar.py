"""The columnar reader gives the rows that Python gives, of every store, and says in the plan that it does."""

from __future__ import annotations

import random
import runpy
import shutil
import subprocess
import sys
import zipfile
from dataclasses import replace
from pathlib import Path
from shutil import which

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from seglog import MessageStore
from seglog.clock import VirtualClock
from seglog.spark.columnar_jar import EXTENSIONS, JAR, SETTING, columnar_settings
from seglog.spark.compact.compact import Compaction
from seglog.spark.compact.policy import Policy
from seglog.spark.source.read.read_plan import plan_pieces, read_piece
from seglog.spark.source.values.columns import COLUMNS, named_columns, spark_name
from seglog.spark.source.values.times import END_MS, FIRST_MS
from seglog.spark.source.wanted.options import Options
from seglog.storage.files.files import RealFiles
from seglog.storage.format.record import COMPRESSED, INNER_BATCH, LOST_FLAG, PLACEHOLDER_FLAG
from seglog.storage.format.record.sys_flag import TRANSACTION_PREPARED
from tests.storage.kernels.test_gather import PIECES
from tests.storage.kernels.test_message_columns import IDS, MANY, V4, V6
from tests.support.local_runner import LocalRunner
from tests.support.material.golden import extract, golden_names
from tests.support.material.records import Record
from tests.support.scale import chance, is_gate

on_spark = pytest.mark.spark
MADE_IN_JAVA = [column for column in COLUMNS if column.name != "placeholder"]
BUILD = Path(__file__).parents[3] / "tools" / "build-columnar"
SEGMENT_BYTES = 1 << 20
ARROW_ROWS = "spark.sql.execution.arrow.maxRecordsPerBatch"


def schemas():
    """Returns every column with its first type, then with its other ones, so that each type is there once."""
    for number in range(max(len(column.types) for column in COLUMNS)):
        kinds = [(column.name, column.types[min(number, len(column.types) - 1)]) for column in MADE_IN_JAVA]
        yield ", ".join(f"{name} {spark_name(kind)}" for name, kind in kinds)


EVERYTHING = next(schemas())


def rows(spark: SparkSession, root, schema, *, columnar=True, **options):
    spark.conf.set(SETTING, str(columnar).lower())
    try:
        # Times beyond what Python's can be are compared as Spark's numbers.
        frame = (
            spark.read.format("seglog")
            .options(**options)
            .schema(schema)
            .load(root if isinstance(root, list) else str(root))
        )
        assert ("columnar" in frame._jdf.queryExecution().executedPlan().toString()) == columnar
        times = [name for name, kind in frame.dtypes if kind == "timestamp"]
        seen = frame.withColumns({name: frame[name].cast("double") for name in times})
        return [tuple(row) for row in seen.collect()]
    finally:
        spark.conf.unset(SETTING)


def check_same(spark, root, schema, **options):
    found = rows(spark, root, schema, **options)
    assert found == rows(spark, root, schema, columnar=False, **options)
    return found


@on_spark
def test_rows_of_golden_stores_are_those_of_python(spark: SparkSession, tmp_path):
    roots = [str(extract(name, tmp_path)) for name in golden_names()]
    # At the gate one, another with each commit; odd records are in all of them below.
    asked = [chance("columns of golden stores").choice([*schemas()])] if is_gate() else schemas()
    for schema in asked:
        found = check_same(spark, roots, schema, failOnDataLoss="false", brokerName="b")
        assert len(found) > 400


def odd_records(seed, addresses, sys_flags):
    """Yields records whose properties, numbers and addresses are anything, with text that is no UTF-8."""
    numbers = random.Random(seed)
    cut = [b"\xed\xa0\x80", b"\xf0\x9f\x98", b"\xe2\x82", b"\xc0\xaf", b"\xf4\x90\x80\x80", "ä€😀".encode()]
    for number in range(600):
        pieces = [numbers.choice([*PIECES, *cut]) for _ in range(numbers.randrange(12))]
        owns = numbers.choice([b"KEYS\x01", b"TAGS\x01", b""]) + numbers.choice(
            [*cut, numbers.randbytes(5), b""]
        )
        yield Record(
            topic=numbers.choice([b"T", b"L" * 200]),
            queue_id=number % 3,
            queue_offset=number // 3,
            flag=numbers.choice([0, -5, LOST_FLAG, PLACEHOLDER_FLAG]),
            sys_flag=numbers.choice(sys_flags),
            born_timestamp_ms=numbers.choice(
                [0, 1 << 62, -(1 << 63), FIRST_MS - 1, FIRST_MS, END_MS - 1, END_MS, (1 << 63) // 1000]
            ),
            born_address=numbers.choice(addresses),
            born_port=numbers.randrange(-(1 << 31), 1 << 31),
            store_address=numbers.choice(addresses),
            reconsume_times=numbers.randrange(1 << 31),
            prepared_transaction_offset=numbers.randrange(1 << 63),
            body=numbers.randbytes(numbers.randrange(40)),
            properties=numbers.choice(
                [b"".join(pieces) + b"\x02" + owns + b"\x02" + numbers.choice(IDS), MANY]
            ),
            record_crc=numbers.random() < 0.5,
        )


@on_spark
def test_rows_of_odd_records_are_those_of_python(spark: SparkSession, tmp_path):
    kinds = [
        ([V4], [0, COMPRESSED, TRANSACTION_PREPARED]),
        ([V4, V6], [0]),
        ([V4, V6], [0, 0, INNER_BATCH]),
    ]
    for seed, (addresses, sys_flags) in enumerate(kinds):
        log = b""
        for record in odd_records(seed, addresses, sys_flags):
            log += replace(record, phy_offset=len(log)).pack()
        folder = tmp_path / str(seed) / "commitlog"
        folder.mkdir(parents=True)
        (folder / f"{0:020}").write_bytes(log.ljust(SEGMENT_BYTES, b"\0"))
    roots = [str(tmp_path / str(seed)) for seed in range(len(kinds))]
    no_hosts = "msgId string, offsetMsgId string, body binary, properties map<string,string>"
    for schema in (*schemas(), no_hosts):
        found = check_same(spark, roots, schema, verify="false", failOnDataLoss="false")
        assert len(found) > 300


def log_of(root, count, time_ms):
    """Makes a store; those of other times have the same lengths, and differ in nothing else."""
    with MessageStore.open(root, segment_size_bytes=SEGMENT_BYTES, clock=VirtualClock(time_ms)) as store:
        for number in range(count):
            store.put("T", b"%06d" % number, queue_id=0)
    return root


def taken(spark, frame):
    """Returns how many rows of a frame the columnar reader has, which opens the log for them."""
    jvm, new_array = spark._jvm, spark.sparkContext._gateway.new_array
    kind = jvm.org.apache.spark.util.Utils.classForName("seglog.spark.LogRows", True, False)
    maker = kind.getDeclaredConstructor(new_array(jvm.java.lang.Class, 0))
    maker.setAccessible(True)
    (take,) = [
        one for one in kind.getDeclaredMethods() if one.getName() == "take" and one.getParameterCount() == 2
    ]
    take.setAccessible(True)
    reading = jvm.java.nio.ByteBuffer.wrap(frame).order(jvm.java.nio.ByteOrder.nativeOrder())
    reading.getInt()
    given = new_array(jvm.java.lang.Object, 2)
    given[0], given[1] = frame, reading
    return take.invoke(maker.newInstance(new_array(jvm.java.lang.Object, 0)), given)


@on_spark
def test_a_file_that_was_exchanged_since_it_was_walked_is_noticed(spark: SparkSession, tmp_path):
    """As where a restore or a compaction puts another store in its place: Java opens files by their names."""
    root, other = log_of(tmp_path / "s", 200, 1000), log_of(tmp_path / "other", 200, 2000)
    options = Options((str(root),))
    (piece,) = plan_pieces(options)
    (frames,) = read_piece(piece, options, options.selection, named_columns(["body"]), gives_frames=True)
    frame = frames.column(0)[0].as_py()
    assert taken(spark, frame) == 200
    root.rename(tmp_path / "away")
    with pytest.raises(Py4JJavaError, match="was taken away while it was read: read it again"):
        taken(spark, frame)
    other.rename(root)
    with pytest.raises(Py4JJavaError, match="was changed while it was read: read it again"):
        taken(spark, frame)


@on_spark
def test_a_compaction_under_a_query_is_noticed(spark: SparkSession, tmp_path):
    """Tasks that have not begun find no files of the old log where they look for them."""
    root = tmp_path / "s"
    with MessageStore.open(root, segment_size_bytes=1 << 16, clock=VirtualClock(1)) as store:
        for number in range(600):
            store.put("T", b"%06d" % number * 300, queue_id=0, keys="k")
    compacted = shutil.copytree(root, tmp_path / "c")
    policies = {"T": Policy(compact=True)}
    runner, clock = LocalRunner(RealFiles()), VirtualClock(1 << 40)
    assert Compaction(compacted, policies, runner=runner, clock=clock).apply().is_done

    def exchange(batches):
        for batch in batches:
            if root.exists() and not (tmp_path / "away").exists():
                root.rename(tmp_path / "away")
                compacted.rename(root)
            yield batch

    frame = spark.read.format("seglog").schema("body binary").load(str(root)).coalesce(1)
    spark.conf.set(ARROW_ROWS, "20")
    try:
        with pytest.raises(PySparkException, match=r"found zeros, expected a record|was taken away"):
            frame.mapInArrow(exchange, frame.schema).count()
    finally:
        spark.conf.unset(ARROW_ROWS)


@on_spark
def test_options_choose_the_same_rows(spark: SparkSession, tmp_path):
    for name, options in {
        "roll": {"startingOffsets": '{"T": {"0": 3}}', "includePlaceholders": "true", "accessPath": "cq"},
        "comp": {"decompress": "true"},
        "innerbatch": {"innerBatches": "records"},
        "ipv6": {"table": "messages", "verify": "false"},
    }.items():
        root = extract(name, tmp_path)
        if "startingOffsets" in options:
            topic = rows(spark, root, "topic string")[0][0]
            options["startingOffsets"] = options["startingOffsets"].replace("T", topic)
        assert check_same(spark, root, EVERYTHING, **options)
        assert check_same(spark, f"file://{root}", "body binary, topic string", **options)
    root = (tmp_path / "ipv6").rename(tmp_path / "größe")
    assert check_same(spark, root, "body binary, topic string")
    root = extract("broker-store", tmp_path)
    assert check_same(spark, root, "topic string, queueId int", table="queues")


@on_spark
def test_what_only_python_makes_is_left_to_it(spark: SparkSession, tmp_path):
    root = extract("roll", tmp_path)
    frame = spark.read.format("seglog").schema("queueId int, placeholder boolean").load(str(root))
    assert "columnar" not in frame._jdf.queryExecution().executedPlan().toString()
    assert {row["placeholder"] for row in frame.collect()} == {False}


@on_spark
def test_columns_live_on_in_what_spark_makes_of_them(spark: SparkSession, tmp_path):
    with MessageStore.open(tmp_path, segment_size_bytes=1 << 16) as store:
        for number in range(500):
            store.put(f"T{number % 3}", b"%d" % number + bytes(600), tags=f"t{number % 7}", keys=f"k{number}")
    frame = spark.read.format("seglog").option("maxPartitionBytes", "64k").load(str(tmp_path))
    found = {
        row["tags"]: (row["most"], row["count"])
        for row in frame.groupBy("tags")
        .agg({"keys": "max", "*": "count"})
        .toDF("tags", "most", "count")
        .collect()
    }
    by_hand = {
        f"t{tag}": (max(f"k{number}" for number in range(tag, 500, 7)), len(range(tag, 500, 7)))
        for tag in range(7)
    }
    assert found == by_hand
    assert frame.selectExpr("max(keys)", "min(topic)").collect()[0] == ("k99", "T0")
    last = frame.orderBy(frame["keys"].desc()).limit(2).collect()
    assert [row["properties"]["KEYS"] for row in last] == ["k99", "k98"]
    joined = frame.alias("a").join(frame.alias("b"), "physicalOffset")
    assert joined.where("a.body = b.body").count() == 500
    assert frame.where("queueId = 9").count() == 0


@on_spark
def test_an_error_of_python_is_said(spark: SparkSession, tmp_path):
    root = str(extract("d-magic", tmp_path))
    with pytest.raises(PySparkException, match=r"commitlog/\d{20} \+\d+: magic"):
        spark.read.format("seglog").load(root).count()


def test_settings_are_added_to_those_of_the_user():
    said = {"spark.jars": "/theirs.jar", "spark.sql.extensions": ""}
    found = {"spark.jars": f"/theirs.jar,{JAR}", "spark.sql.extensions": EXTENSIONS}
    assert columnar_settings("4.3.0", said) == found
    assert columnar_settings("4.1.4", said) == columnar_settings("4.3.0", {SETTING: "false"}) == {}


def test_the_jar_names_the_sources_that_are_there():
    built = runpy.run_path(str(BUILD))["manifest"]("any").decode()
    with zipfile.ZipFile(JAR) as jar:
        named = jar.read("META-INF/MANIFEST.MF").decode()
    assert named.split("Sources: ")[1] == built.split("Sources: ")[1]


@pytest.mark.campaign
def test_the_jar_is_made_of_the_sources(tmp_path):
    if which("javac") is None:
        pytest.skip("there is no javac: tools/ensure-java --jdk installs one")
    made = tmp_path / "made.jar"
    subprocess.run([sys.executable, BUILD, made], check=True)
    with zipfile.ZipFile(made) as ours, zipfile.ZipFile(JAR) as theirs:
        assert ours.namelist() == theirs.namelist()
        of_ours, of_theirs = (
            jar.read("META-INF/MANIFEST.MF").decode().split("Sources: ") for jar in (ours, theirs)
        )
        assert of_ours[1] == of_theirs[1]
        if of_ours == of_theirs:  # the same compiler and the same Spark
            assert made.read_bytes() == JAR.read_bytes()
