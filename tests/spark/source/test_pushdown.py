"""Filters leave the same rows whether Spark's setting for filter pushdown is on or off.

Spark 4.1 to 4.3 keeps what a reader took over for one query with the table, so a frame is asked often.
"""

from __future__ import annotations

import datetime as dt
from functools import reduce

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from pyspark.sql import DataFrame, SparkSession

from seglog import MessageStore
from seglog.clock import VirtualClock

pytestmark = pytest.mark.spark
PUSHDOWN = "spark.sql.python.filterPushdown.enabled"
START_MS = 1_800_000_000_000
COUNT = 60

TOPICS = st.sampled_from(["'A'", "'B'", "'gone'", "NULL", "''"])
NUMBERS = st.sampled_from(
    ["0", "1", "2", "7", "-1", "NULL", "2.5", "'3'", "3000000000", "9223372036854775807"]
)
START = dt.datetime.fromtimestamp(START_MS / 1000, dt.UTC)
TIMES = st.integers(-2, COUNT * 1000 + 2).map(
    lambda after_us: f"TIMESTAMP '{START + dt.timedelta(microseconds=after_us)}'"
) | st.just("CAST(NULL AS TIMESTAMP)")
COLUMNS = (("topic", TOPICS), ("queueId", NUMBERS), ("queueOffset", NUMBERS), ("storeTimestamp", TIMES))
COMPARISONS = st.sampled_from(["=", "<=>", "<", "<=", ">", ">=", "<>"])


def of_column(name, values):
    """Returns filters on one column."""
    lists = st.lists(values, min_size=1, max_size=3).map(", ".join)
    return (
        st.builds("{} {} {}".format, st.just(name), COMPARISONS, values)
        | st.builds("{} {} {}".format, values, COMPARISONS, st.just(name))
        | st.builds("{} {} ({})".format, st.just(name), st.sampled_from(["IN", "NOT IN"]), lists)
        | st.sampled_from([f"{name} IS NULL", f"{name} IS NOT NULL"])
        | st.builds("{} BETWEEN {} AND {}".format, st.just(name), values, values)
    )


ATOMS = st.one_of(*(of_column(name, values) for name, values in COLUMNS))
FILTERS = st.recursive(
    ATOMS,
    lambda inner: (
        st.builds("({} {} {})".format, inner, st.sampled_from(["AND", "OR"]), inner)
        | st.builds("NOT ({})".format, inner)
    ),
    max_leaves=4,
)
ODD = [
    "queueId IN (1, NULL)",
    "queueId NOT IN (1, NULL)",
    "topic = NULL",
    "topic <=> NULL",
    "topic IN (NULL)",
    "queueOffset > NULL",
    "queueOffset IN (2, 7, NULL)",
    "queueId = '1'",
    "topic IN ('A', NULL) OR queueId = 1",
]


@pytest.fixture(scope="module")
def frame(spark: SparkSession, tmp_path_factory):
    root, clock = tmp_path_factory.mktemp("pushdown") / "store", VirtualClock(START_MS)
    with MessageStore.open(root, clock=clock) as store:
        for number in range(COUNT):
            store.put("AB"[number % 3 == 0], b"%d" % number, queue_id=number % 2)
            clock.advance(1)
    columns = "physicalOffset bigint, topic string, queueId int, queueOffset bigint, storeTimestamp timestamp"
    return spark.read.format("seglog").schema(columns).load(str(root))


@settings(
    max_examples=2,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.large_base_example],
)
@example(filters=ODD)
@given(filters=st.lists(FILTERS, min_size=12, max_size=12))
def test_rows_are_those_that_spark_would_leave(spark: SparkSession, frame, filters):
    spark.conf.unset(PUSHDOWN)
    holds = [f"({one}) AS f{at}" for at, one in enumerate(filters)]
    rows = frame.selectExpr("physicalOffset", *holds).collect()
    wanted = sorted((at, row[0]) for row in rows for at in range(len(filters)) if row[at + 1])
    spark.conf.set(PUSHDOWN, "true")
    try:
        chosen = [frame.where(one).selectExpr(str(at), "physicalOffset") for at, one in enumerate(filters)]
        assert sorted(map(tuple, reduce(DataFrame.unionAll, chosen).collect())) == wanted, filters
        assert frame.count() == COUNT
    finally:
        spark.conf.unset(PUSHDOWN)
