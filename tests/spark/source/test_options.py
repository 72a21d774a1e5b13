"""What options may say, and that a wrong one is told by name."""

from __future__ import annotations

import pytest

from seglog.errors import InvalidArgumentError
from seglog.spark.source.tables import check_table_schema
from seglog.spark.source.values.columns import named_columns, wanted_columns
from seglog.spark.source.wanted.options import Options, parse_options
from seglog.spark.source.wanted.selection import Selection, Span


def test_names_are_taken_in_letters_of_any_case():
    parsed = parse_options(
        {"PATH": "/a, /b", "BROKERNAME": "x,y", "maxpartitionbytes": "64k", "verify": "FALSE"}
    )
    assert parsed == Options(("/a", "/b"), broker_names=("x", "y"), max_partition_bytes=65536, verify=False)
    assert [parsed.broker_name(store) for store in (0, 1)] == ["x", "y"]
    assert Options(("/a", "/b"), broker_names=("x",)).broker_name(1) == "x"
    assert Options(("/a",)).broker_name(0) is None


def test_several_paths_come_as_spark_sends_them():
    assert parse_options({"paths": '["/with, comma", "/b"]'}).paths == ("/with, comma", "/b")


def test_offsets_and_times_make_a_selection():
    parsed = parse_options(
        {
            "path": "/a",
            "topic": "T,U",
            "startingOffsets": '{"T": {"0": 5, "1": -2}}',
            "endingOffsets": '{"T": {"0": 9, "1": -1}}',
            "startingTimestamp": "1000",
            "endingTimestamp": "2000",
        }
    )
    assert parsed.selection == Selection(
        frozenset({"T", "U"}),
        store_times_ms=Span(1000, 1999),
        starting={("T", 0): 5},
        ending={("T", 0): 9},
    )
    assert parsed.selection.of_queue("T", 0) == Span(5, 8)
    assert parsed.selection.of_queue("T", 1) == Span()
    assert parsed.selection.of_queue("V", 0) is None
    assert parse_options({"path": "/a", "startingOffsets": "earliest"}).selection == Selection()


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"path": "/a", "topics": "T"}, "no option 'topics'"),
        ({}, "no path"),
        ({"path": "/a", "verify": "yes"}, "verify is 'yes': it must be true or false"),
        ({"path": "/a", "batchRows": "100"}, "batchRows is '100': it must be at least 8192"),
        ({"path": "/a", "maxPartitionBytes": "1 TB"}, "maxPartitionBytes"),
        ({"path": "/a", "minPartitions": "0"}, "at least 1"),
        ({"path": "/a", "minPartitions": "9" * 5000}, "must be a number"),
        ({"path": "/a,/b,/c", "brokerName": "x,y"}, "2 names for 3 stores"),
        ({"path": "/a", "startingOffsets": "now"}, "earliest or latest"),
        ({"path": "/a", "startingOffsets": "{"}, "startingOffsets"),
        ({"path": "/a", "startingOffsets": '{"T": {"0": -1}}'}, "cannot be at -1"),
        ({"path": "/a", "endingOffsets": '{"T": {"0": -2}}'}, "cannot be at -2"),
        ({"path": "/a", "endingOffsets": "earliest"}, "must be latest"),
        ({"path": "/a", "startingOffsets": '{"T": 5}'}, "an offset by queue"),
        ({"path": "/a", "startingOffsets": '{"T": {"0": "5"}}'}, "an offset by queue"),
        ({"path": "/a", "accessPath": "index"}, "auto or cq or scan"),
        ({"path": "/a", "table": "messages2"}, "messages or queues"),
        ({"path": "[1]"}, "list of paths"),
        ({"path": "/a", "paths": '["/b"]'}, "path and paths both say which stores are read"),
        ({"path": "/a", "subscribe": "T", "subscribePattern": "T.*"}, "both say which topics"),
        ({"path": "/a", "topic": "T", "assign": '{"T": [0]}'}, "both say which topics"),
        ({"path": "/a", "subscribePattern": "("}, "no regular expression"),
        ({"path": "/a", "assign": '{"T": 0}'}, "must be like"),
        ({"path": "/a", "assign": '{"T": [-1]}'}, "0 and more"),
        ({"path": "/a", "assign": "{}"}, "names no queue"),
        ({"path": "/a", "assign": '{"T": []}'}, "names no queue"),
        ({"path": "/a", "assign": '{"T": [0], "T": [1]}'}, "names 'T' twice"),
        ({"path": "/a", "assign": "[]"}, "must be like"),
        ({"path": "/a", "topic": ""}, "names no topic"),
        ({"path": "/a", "subscribe": " , "}, "names no topic"),
        ({"path": "/a", "subscribePattern": ""}, "no topic is called like that"),
        ({"path": "/a", "columns": "topic,body, TOPIC"}, "names TOPIC twice"),
        ({"path": "/a", "startingOffsets": '{"T": {"0": 5}, "T": {"1": 5}}'}, "names 'T' twice"),
        ({"path": "/a", "endingOffsets": '{"T": {"0": 5, "00": 6}}'}, "names queue T/0 twice"),
        ({"path": "/a", "startingOffsets": '{"T": {"0": 9223372036854775808}}'}, "an offset by queue"),
        ({"path": "/a", "startingOffsetsByTimestamp": "5"}, "must be like"),
        ({"path": "/a", "endingOffsetsByTimestamp": "[]"}, "must be like"),
        ({"path": "/a", "endingOffsetsByTimestamp": '{"T": {"0": 1, "0": 2}}'}, "names '0' twice"),
        ({"path": "/a", "topic": "U", "startingOffsets": '{"T": {"0": 5}}'}, "names queue T/0, which other"),
        ({"path": "/a", "subscribePattern": "U.*", "endingOffsets": '{"T": {"0": 5}}'}, "names queue T/0"),
        (
            {"path": "/a", "assign": '{"T": [1]}', "startingOffsetsByTimestamp": '{"T": {"0": 5}}'},
            "startingOffsetsByTimestamp names queue T/0",
        ),
    ],
)
def test_what_is_wrong_is_said(given, said):
    with pytest.raises(InvalidArgumentError, match=said):
        parse_options(given)


def test_a_name_that_is_nearly_one_is_named():
    with pytest.raises(InvalidArgumentError, match="no option 'failondataLos'") as caught:
        parse_options({"path": "/a", "failondataLos": "true"})
    assert caught.value.help.startswith("did you mean failOnDataLoss? options are path")
    with pytest.raises(InvalidArgumentError) as caught:
        named_columns(["quueueId"])
    assert caught.value.help.startswith("did you mean queueId? ")


def test_commas_separate_paths_but_not_in_braces():
    assert parse_options({"path": "/a/{b,c{d,e}}/store, /f"}).paths == ("/a/{b,c{d,e}}/store", "/f")


def test_columns_that_are_not_there_or_of_another_type():
    pa = pytest.importorskip("pyarrow")
    with pytest.raises(InvalidArgumentError, match="no column 'bodies'") as caught:
        named_columns(["bodies"])
    assert "body" in caught.value.help
    with pytest.raises(InvalidArgumentError, match="'topic' cannot be read as int32") as caught:
        wanted_columns(pa.schema([("topic", pa.int32())]))
    assert caught.value.help == "it can be string"


def test_columns_that_must_not_be_null_are_refused_by_the_driver():
    pa = pytest.importorskip("pyarrow")
    topic = pa.schema([pa.field("topic", pa.string(), nullable=False)])
    for read in (wanted_columns, lambda schema: check_table_schema("queues", schema)):
        with pytest.raises(InvalidArgumentError, match="'topic' cannot be read as NOT NULL"):
            read(topic)
