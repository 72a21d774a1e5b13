"""What a split saw arrives on the driver as it was sent."""

from __future__ import annotations

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from seglog.spark.arrow import STRETCH, from_table, spark_schema, to_batch
from seglog.storage.audit.stretches import BatchRun, Head, Interval, QueueEnd, Stopped, Stretch, UnitState
from seglog.storage.format.record import Damage

I31, I63 = st.integers(0, 2**31 - 1), st.integers(0, 2**63 - 1)
TEXT = st.text(st.characters(exclude_categories=["Cs"]))
INTERVALS = st.builds(
    Interval, TEXT, I31, st.sampled_from(UnitState), I63, I63, I63, I63, I63, I63, st.integers(-(2**63), 0)
)
STRETCHES = st.builds(
    Stretch,
    I31,
    I63,
    I63,
    st.sampled_from(Stopped),
    st.none() | st.builds(Damage, TEXT, TEXT, TEXT),
    I63,
    I63,
    st.none() | st.builds(Head, I63, TEXT, I31, st.none() | I63),
    I63,
    I63,
    st.lists(INTERVALS, max_size=3).map(tuple),
    st.lists(st.builds(BatchRun, TEXT, I31, I63, I63, st.binary(max_size=92)), max_size=3).map(tuple),
    st.lists(st.builds(QueueEnd, TEXT, I31, I63), max_size=3).map(tuple),
    st.lists(TEXT, max_size=3).map(tuple),
)


@given(st.lists(STRETCHES, max_size=3))
def test_stretches_come_back_from_arrow(stretches):
    assert list(from_table(pa.Table.from_batches([to_batch(stretches)]))) == stretches


def test_spark_names_the_same_columns():
    assert spark_schema().startswith("`split` int, `start` bigint, ")
    assert "`batch_runs` array<struct<`topic`: string, `queue_id`: int, " in spark_schema()
    assert "`units`: binary>>, " in spark_schema()
    assert all(f"`{name}` " in spark_schema() for name in STRETCH.names)
