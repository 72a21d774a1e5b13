"""Placeholders of a compaction are no messages: they have a verdict of their own."""

from __future__ import annotations

import json

import pytest
from pyspark.sql import SparkSession

from seglog import MessageStore
from seglog.clock import VirtualClock
from seglog.spark.compact.policy import Policy
from seglog.spark.reconcile.outcome import reconcile_all
from tests.spark.archive.stores import BEGIN_MS, compact, put
from tests.support.material.compactions import SIZES
from tests.support.narrow import not_none

pytestmark = pytest.mark.spark


def reconciled(spark, root):
    counts = not_none(reconcile_all(spark, [root], messages=True).counts)
    assert counts.adds_up
    return {(group, verdict): count for (group, _topic, verdict), count in counts.verdicts.items()}


def put_keyed(root):
    """Puts messages with keys of their own, so that what is dropped of others leaves placeholders."""
    with MessageStore.open(root, clock=VirtualClock(BEGIN_MS), **SIZES) as store:
        for number in range(20):
            store.put("T", b"the only one of its key", queue_id=number % 2, keys=f"own{number}")
    return put(root, 60, begin=20)


def test_placeholders_are_no_messages_that_were_delivered(spark: SparkSession, tmp_path):
    root = put_keyed(tmp_path / "s")
    (root / "config").mkdir(exist_ok=True)
    offsets = {"T@ahead": {"0": 40, "1": 40}, "T@behind": {"0": 5, "1": 40}}
    (root / "config/consumerOffset.json").write_text(json.dumps({"offsetTable": offsets}))
    before = reconciled(spark, root)
    assert before == {("ahead", "delivered"): 80, ("behind", "delivered"): 45, ("behind", "pending"): 35}
    compact(root, BEGIN_MS + 10**9, T=Policy(compact=True))
    rows = spark.read.format("seglog").option("includePlaceholders", "true").load(str(root))
    kept = spark.read.format("seglog").load(str(root)).count()
    placeholders = rows.count() - kept
    assert placeholders > 0
    after = reconciled(spark, root)
    assert after["ahead", "compacted"] == after["behind", "compacted"] == placeholders
    assert after["ahead", "delivered"] == kept
    assert after["behind", "delivered"] + after["behind", "pending"] == kept
    assert (
        sum(count for (group, _verdict), count in after.items() if group == "behind") >= kept + placeholders
    )


def test_a_message_of_an_application_with_the_flag_of_placeholders_is_one(spark: SparkSession, tmp_path):
    root = tmp_path / "s"
    with MessageStore.open(root) as store:
        store.put("T", b"", flag=0x434D5054, tags="A")
        store.put("T", b"x", flag=0x434D5054)
    assert reconciled(spark, root) == {("", "pending"): 2}


@pytest.mark.sampled(1)
@pytest.mark.parametrize("form", [None, "parquet", "json"])
def test_verdicts_are_kept_nowhere_but_where_they_were_asked_for(spark: SparkSession, tmp_path, form):
    root, folder = put_keyed(tmp_path / "s"), None if form is None else str(tmp_path / "found")
    compact(root, BEGIN_MS + 10**9, T=Policy(compact=True))
    kept_before = spark.sparkContext._jsc.getPersistentRDDs().size()
    found = reconcile_all(
        spark, [root], messages=True, wants_rows=True, folder=folder, form=form or "parquet"
    )
    first, *others = found.rows
    assert spark.sparkContext._jsc.getPersistentRDDs().size() == kept_before
    counts = not_none(found.counts)
    assert counts.adds_up
    assert first["verdict"] == "compacted"
    assert counts.verdicts["", "T", "compacted"] == 1 + len(others)
    if folder is not None:
        assert spark.read.format(not_none(form)).load(f"{folder}/messages").count() == counts.total
