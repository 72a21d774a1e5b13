"""Slots without a message are ranges: how many there are behind a group does not matter."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner
from pyspark.sql import SparkSession

from seglog.cli.main import commands
from tests.support.material.records import Record, pack_log

pytestmark = pytest.mark.spark

FIRST, AFTER_GAP, END = 300_000_000, 300_000_100, 300_000_102
SEGMENT_BYTES = 1 << 16


@pytest.fixture(scope="module")
def abandoned(tmp_path_factory):
    """A queue that retention and a lost stretch left little of, and groups that were there long ago."""
    root = tmp_path_factory.mktemp("abandoned") / "store"
    log = pack_log(
        [
            Record(topic=b"T", queue_offset=at, body=b"<%d>" % at, properties=b"UNIQ_KEY\x01id%d\x02" % at)
            for at in range(FIRST, END)
        ]
    )
    for at in range(FIRST + 2, AFTER_GAP):
        log = log.replace(b"<%d>" % at, b"<%d!" % at)
    (root / "commitlog").mkdir(parents=True)
    (root / "commitlog" / "00000000000000000000").write_bytes(log.ljust(SEGMENT_BYTES, b"\0"))
    (root / "config").mkdir()
    table = {"T@abandoned": {"0": 5}, "T@later": {"0": 1_000_005}, "T@live": {"0": AFTER_GAP + 1}}
    (root / "config" / "consumerOffset.json").write_text(json.dumps({"offsetTable": table}))
    return root


def test_an_abandoned_group_costs_a_row(spark: SparkSession, abandoned, tmp_path):
    receipts = tmp_path / "told.jsonl"
    told = [
        {"msgId": "in-the-gap", "topic": "T", "queueId": 0, "queueOffset": AFTER_GAP - 1},
        {"topic": "T", "queueId": 0, "queueOffset": 17},
        {"msgId": f"id{FIRST}", "topic": "T", "queueId": 0, "queueOffset": FIRST},
        {"topic": "T", "queueId": 0, "queueOffset": END + 5},
    ]
    receipts.write_text("".join(json.dumps(one) + "\n" for one in told))
    words = ["spark", "reconcile", str(abandoned), "--receipts", str(receipts), "--json"]
    ran = CliRunner().invoke(commands, words)
    assert (ran.exit_code, ran.stderr) == (1, ""), ran.output
    lines = [json.loads(line) for line in ran.stdout.splitlines()]
    found = sorted(
        (line["group"], line["verdict"], line["queueOffset"], line["endOffset"], line["messages"])
        for line in lines
        if line["kind"] == "message-verdict"
    )
    gap = ("lost", FIRST + 2, AFTER_GAP, AFTER_GAP - FIRST - 2)
    behind_all = ("lost", END + 5, END + 6, 1)
    assert found == sorted(
        [
            ("abandoned", "expired", 5, FIRST, FIRST - 5),
            ("later", "expired", 1_000_005, FIRST, FIRST - 1_000_005),
            *((group, *row) for group in ("abandoned", "later", "live") for row in (gap, behind_all)),
        ]
    )
    counts = {
        (line["group"], line["verdict"]): line["messages"]
        for line in lines
        if line["kind"] == "verdict-count"
    }
    assert counts["later", "passed"] == 1_000_000
    assert (counts["live", "passed"], counts["live", "delivered"]) == (FIRST - 5, 3)
    assert counts["abandoned", "pending"] == 4
    last = lines[-1]
    assert last["addsUp"]
    assert last["verdicts"] == last["messagesTimesGroups"] == 3 * (END - 5 + 1)
