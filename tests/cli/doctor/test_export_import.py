"""``seglog export`` and ``seglog import``: what went out comes back, for any bytes."""

from __future__ import annotations

import json
import os
import random
import shlex
import sys
import zlib

import pytest

from seglog.broker.broker import Broker
from seglog.errors import (
    Ending,
    FullError,
    InvalidArgumentError,
    InvalidNameError,
    MessageIllegalError,
    MissingDependencyError,
    NotFoundError,
)
from seglog.storage.format.record import properties as props
from seglog.storage.format.record.host import Host
from seglog.storage.format.record.sys_flag import COMPRESSED, STORE_HOST_V6
from seglog.storage.format.record.tags import tags_code
from seglog.storage.reads.export_row import from_fields, to_fields
from seglog.storage.store import MessageStore
from tests.support.command_line import Seglog
from tests.support.machine.disks import memory_disk
from tests.support.material import golden
from tests.support.material.lives import GROUP, TOPIC, live
from tests.support.material.stores import SMALL_INDEX, AllLengths, served

SMALL: AllLengths = {"segment_size_bytes": 1 << 16, "queue_file_size_bytes": 2000, **SMALL_INDEX}
SAME = ("topic", "queue_id", "body", "flag", "born_timestamp_ms", "born_host", "reconsume_times")
MORE = ("prepared_transaction_offset", "tags", "keys", "unique_key", "compression")
FORMS = pytest.mark.parametrize("form", ["jsonl", "parquet"])


def odd_store(path):
    """Bodies and properties of every kind: text, bytes, empty, repeated names, other addresses."""
    chance = random.Random(7)
    raws = [
        b"",
        props.encode_properties({"TAGS": "a", "KEYS": "k1 k2", "UNIQ_KEY": "U1"}),
        b"a\x01\x02a\x011\x02a\x012\x02",
        b"no end\x01of entry",
        b"bytes\x01\xff\xfe\x02",
        "Name\x01Wert – ✓\x02".encode(),
    ]
    with MessageStore.open(path, **SMALL) as store:
        for number in range(60):
            raw = raws[number % len(raws)]
            body = [b"", b"text", chance.randbytes(50), b"\xff" * 3, "✓ – ".encode(), b'"\n\\'][number % 5]
            store.append(
                "odd" if number % 2 else TOPIC,
                number % 3,
                body,
                raw,
                tags_code("a" if raw is raws[1] else ""),
                flag=-number,
                sys_flag=0x301 if number % 7 == 0 else 0,
                born_timestamp_ms=1_000_000 + number,
                born_host=Host.parse("[1050::5]:40000" if number % 2 else "10.1.2.3:5"),
                reconsume_times=number % 4,
            )
    return path


def values(path):
    with MessageStore.open(path, read_only=True) as store:
        return {
            key: [
                [getattr(m, name) for name in (*SAME, *MORE)]
                + [m.sys_flag & ~STORE_HOST_V6, props.without_crc_property(m.properties_raw)]
                for m in queue
            ]
            for key, queue in served(store).items()
        }


@FORMS
def test_everything_comes_back(seglog: Seglog, tmp_path, form):
    source = odd_store(tmp_path / "s")
    before = golden.file_digest(source)
    file = tmp_path / "all.out"
    ran = seglog("export", source, "--format", form, "-o", file, "--json")
    assert (ran.exit_code, ran.lines[0]["messages"], ran.lines[0]["lost"], ran.stderr) == (0, 60, 0, "")
    assert golden.file_digest(source) == before
    with MessageStore.open(tmp_path / "t", **SMALL) as store:
        store.put("odd", b"was there before", queue_id=1)
    ran = seglog("import", tmp_path / "t", file, "--json")
    assert ran.exit_code == 0, ran.stderr
    after = values(tmp_path / "t")
    del after["odd", 1][0]
    assert after == values(source)
    moved = {(run["topic"], run["queueId"]): (run["from"], run["count"], run["newFrom"]) for run in ran.lines}
    assert moved["odd", 1] == (0, 10, 1)
    assert moved[TOPIC, 0] == (0, 10, 0)


@FORMS
def test_a_second_export_is_the_first_but_for_places(seglog: Seglog, tmp_path, form):
    source = odd_store(tmp_path / "s")
    seglog("export", source, "--format", form, "-o", tmp_path / "one")
    assert seglog("import", tmp_path / "t", tmp_path / "one").exit_code == 0
    outs = [seglog("export", path, "-o", "-").lines for path in (source, tmp_path / "t")]
    placed = ("commitLogOffset", "msgId", "storeTimestamp", "storeHost")
    assert [[line for name, line in one.items() if name not in placed] for one in outs[0]] == [
        [line for name, line in one.items() if name not in placed] for one in outs[1]
    ]
    for line in outs[0]:
        assert to_fields(from_fields(line)) == line


@pytest.mark.parametrize("name", ["roll", "broker-store", "outerbatch", "ipv6", "propcrc", "tx"])
def test_real_stores_come_back(seglog: Seglog, tmp_path, name):
    path = golden.extract(name, tmp_path)
    assert seglog("export", path, "-o", tmp_path / "out.jsonl").exit_code == 0
    assert seglog("import", tmp_path / "t", tmp_path / "out.jsonl").exit_code == 0
    before, after = values(path), values(tmp_path / "t")
    assert after
    assert after == {key: before[key] for key in after}
    left = {topic for topic, _queue in before.keys() - after.keys()}
    assert all(topic.startswith(("rmq_sys_", "RMQ_SYS_TRANS", "SCHEDULE_TOPIC")) for topic in left)


def test_inner_batches_come_back_once_the_topic_that_the_error_names_is_made(seglog: Seglog, tmp_path):
    path, again = golden.extract("innerbatch", tmp_path), tmp_path / "a b"
    assert seglog("export", path, "-o", tmp_path / "out.jsonl").exit_code == 0
    refused = seglog("import", again, tmp_path / "out.jsonl")
    assert refused.exit_code == MessageIllegalError.exit_code
    assert values(again) == {}
    (advice,) = [line for line in refused.stderr.splitlines() if line.startswith("help:")]
    create = shlex.split(advice.split("`")[1])
    assert create[:3] == ["seglog", "topic", "create"]
    assert seglog(*create[1:]).exit_code == 0
    assert seglog("import", again, tmp_path / "out.jsonl").exit_code == 0
    before, after = values(path), values(again)
    # The last value are properties; the store writes INNER_BASE, and puts it behind the others.
    assert {key: [one[:-1] for one in queue] for key, queue in after.items()} == {
        key: [one[:-1] for one in queue] for key, queue in before.items()
    }


def bodies(ran):
    assert ran.exit_code == 0, ran.stderr
    return [line["body"] for line in ran.lines]


def test_filters_choose(seglog: Seglog, tmp_path):
    path = tmp_path / "s"
    with MessageStore.open(path, **SMALL) as store:
        puts = [
            store.put("t", b"%d" % n, queue_id=n % 2, tags="ab"[n % 2], keys=[f"k{n}", "all"])
            for n in range(8)
        ]
        store.put("u", b"other")

    def export(*arguments):
        return bodies(seglog("export", path, "-o", "-", *arguments))

    assert export("--topic", "t") == list("02461357")
    assert export("--topic", "t", "--topic", "u", "--queue", "0") == [*"0246", "other"]
    assert export("--topic", "t", "--from-offset", "1", "--to-offset", "2") == list("2435")
    assert export("--tag", "b") == list("1357")
    assert export("--key", "k5") == ["5"]
    last = puts[-1].store_timestamp_ms
    assert export("--topic", "t", "--from", last + 1) == []
    assert len(export("--topic", "t", "--to", last)) == 8


def test_the_lag_of_a_group_is_what_it_has_not_consumed(seglog: Seglog, tmp_path):
    life = live(tmp_path / "s", others=5)
    lines = seglog("export", life.path, "--group-lag", GROUP, "-o", "-").lines
    assert {line["topic"] for line in lines} == {TOPIC}
    assert [line["queueOffset"] for line in lines] == list(range(life.born.queue_offset + 1, 21))
    assert (
        seglog("export", life.path, "--group-lag", "nobody", "-o", "-").exit_code == NotFoundError.exit_code
    )


def test_a_queue_without_an_offset_is_not_consumed_if_the_group_has_one_in_its_topic(
    seglog: Seglog, tmp_path
):
    with Broker.open(tmp_path / "s") as broker:
        for queue_id in (0, 0, 1):
            broker.store.put("t", b"x", queue_id=queue_id)
        broker.store.put("other", b"x", queue_id=0)
        broker.offsets.commit("g", "t", 0, 1)
    lines = seglog("export", tmp_path / "s", "--group-lag", "g", "-o", "-").lines
    assert [(line["topic"], line["queueId"], line["queueOffset"]) for line in lines] == [
        ("t", 0, 1),
        ("t", 1, 0),
    ]


def test_inflated_bodies_are_those_of_the_producer(seglog: Seglog, tmp_path):
    path = tmp_path / "s"
    with MessageStore.open(path, **SMALL) as store:
        store.append("t", 0, zlib.compress(b"apples " * 20), b"", 0, sys_flag=COMPRESSED)
        store.put("t", b"pears")
    assert [line["bodyForm"] for line in seglog("export", path, "-o", "-").lines] == ["base64", "text"]
    inflated = seglog("export", path, "--inflate", "-o", "-").lines
    assert [(line["body"], line["sysFlag"]) for line in inflated] == [("apples " * 20, 0), ("pears", 0)]


def test_nothing_is_left_of_an_export_that_failed(seglog: Seglog, tmp_path):
    path = odd_store(tmp_path / "s")
    ran = seglog("export", path, "--topic", "nosuch", "-o", tmp_path / "x.jsonl")
    assert ran.exit_code == NotFoundError.exit_code
    assert not list(tmp_path.glob("x*"))


def lost_by_dump(seglog, path, kind="lost"):
    """Topic, queue, first queue offset and count of what a store lost, as a dump says."""
    lines = seglog("dump", path, "--json").lines
    return [
        (line["topic"], line["queueId"], line["firstOffset"], line["count"])
        for line in lines
        if line["kind"] == kind
    ]


@FORMS
@pytest.mark.parametrize(
    ("name", "count", "kind"),
    [("d-zeropage-first", 10, "lost"), ("d-trunclast", 32, "lost"), ("d-magic", 1, "repairable")],
)
def test_messages_that_are_lost_or_repairable_are_named_and_end_with_5(
    seglog: Seglog, tmp_path, name, count, kind, form
):
    path = golden.extract(name, tmp_path)
    lost = lost_by_dump(seglog, path, kind)
    assert sum(messages for *_place, messages in lost) == count
    target = tmp_path / "out"
    ran = seglog("export", path, "--format", form, "-o", target)
    *named, summary = ran.stderr.splitlines()
    assert ran.exit_code == Ending.LOSS
    assert named == [
        f"{topic}/{queue} @{first}{f'..{first + messages - 1}' if messages > 1 else ''}  {kind}"
        for topic, queue, first, messages in lost
    ]
    noun = "message" if count == 1 else "messages"
    assert summary.startswith(f"warning: {count} {noun} {kind}, all others are written; `seglog check")
    assert target.exists()
    ran = seglog("export", path, "--format", form, "-o", target, "--force", "--json", "--allow-lost")
    assert (ran.exit_code, ran.lines[0]["messages"], ran.lines[0][kind]) == (0, 400 - count, count)
    assert ran.lines[0]["lost"] + ran.lines[0]["repairable"] == count
    told = [json.loads(line) for line in ran.stderr.splitlines()]
    assert [(one["topic"], one["queueId"], one["firstOffset"], one["count"]) for one in told] == lost
    assert {one["kind"] for one in told} == {kind}


def test_only_what_is_lost_among_the_messages_asked_for_is_named(seglog: Seglog, tmp_path):
    path = golden.extract("d-zeropage-first", tmp_path)  # TopicB/1 lost 6 and 7
    queue = ("--topic", "TopicB", "--queue", 1, "-o", "-")
    ran = seglog("export", path, *queue)
    assert (ran.exit_code, ran.stderr.splitlines()[0]) == (Ending.LOSS, "TopicB/1 @6..7  lost")
    assert 6 not in [line["queueOffset"] for line in ran.lines]
    ran = seglog("export", path, *queue, "--to-offset", 6)
    assert (ran.exit_code, ran.stderr.splitlines()[0]) == (Ending.LOSS, "TopicB/1 @6  lost")
    for ends in (("--to-offset", 5), ("--from-offset", 8)):
        ran = seglog("export", path, *queue, *ends)
        assert (ran.exit_code, ran.stderr) == (0, "")


@FORMS
@pytest.mark.parametrize("place", ["in", "symlink", "folder link", "hard link"])
def test_an_export_overwrites_no_file_of_the_store(seglog: Seglog, tmp_path, form, place):
    source = odd_store(tmp_path / "s")
    log = source / "commitlog" / ("0" * 20)
    target = {"in": log, "folder link": tmp_path / "link" / "all"}.get(place, tmp_path / "all")
    if place == "symlink":
        target.symlink_to(log)
    elif place == "folder link":
        (tmp_path / "link").symlink_to(source / "commitlog")
    elif place == "hard link":
        target.hardlink_to(log)
    before = golden.tree_digest(tmp_path)
    for force in ([], ["--force"]):
        ran = seglog("export", source, "--format", form, "-o", target, *force)
        assert (ran.exit_code, golden.tree_digest(tmp_path)) == (24, before)
        assert "name a file outside of the store" in ran.stderr


@pytest.mark.parametrize("words", [["export", "-o"], ["report", "--html"]], ids=["export", "report"])
def test_a_file_is_replaced_only_by_force_and_as_a_whole(seglog: Seglog, tmp_path, words):
    source, target, pipe = odd_store(tmp_path / "s"), tmp_path / "all.jsonl", tmp_path / "pipe.jsonl"
    command, option = words
    os.mkfifo(pipe)
    target.write_text("mine")
    refused = seglog(command, source, option, target)
    assert (refused.exit_code, target.read_text()) == (InvalidArgumentError.exit_code, "mine")
    assert f"{target} exists already" in refused.stderr
    assert "--force" in refused.stderr
    assert seglog(command, tmp_path / "none", option, target, "--force").exit_code != 0
    assert target.read_text() == "mine"
    done = seglog(command, source, option, target, "--force")
    assert seglog(command, source, option, tmp_path / "new.jsonl", "--force").exit_code == done.exit_code
    assert target.stat().st_size > len("mine")
    assert {path.name for path in tmp_path.iterdir()} == {"s", "all.jsonl", "new.jsonl", "pipe.jsonl"}
    refused = seglog(command, source, option, pipe, "--force")
    assert refused.exit_code == InvalidArgumentError.exit_code
    assert f"{pipe} is no regular file" in refused.stderr


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may mount a small file system")
@pytest.mark.parametrize(
    "words", [["export", "--format", "jsonl", "-o"], ["report", "--html"], ["backup"]], ids=" ".join
)
def test_a_full_file_system_is_named_by_the_file_that_did_not_fit(seglog: Seglog, tmp_path, words):
    source = odd_store(tmp_path / "s")
    with memory_disk(tmp_path, 1) as disk:
        (disk / "ballast").write_bytes(bytes(1 << 20))
        ran = seglog(words[0], source, *words[1:], disk / "made")
        assert (ran.exit_code, [path.name for path in disk.iterdir()]) == (FullError.exit_code, ["ballast"])
        assert f"error: {disk / 'made'}" in ran.stderr


def test_parquet_without_pyarrow_says_what_to_install(seglog: Seglog, tmp_path, monkeypatch):
    path = odd_store(tmp_path / "s")
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    ran = seglog("export", path, "--format", "parquet", "-o", tmp_path / "x")
    assert ran.exit_code == MissingDependencyError.exit_code
    assert "seglog[parquet]" in ran.stderr
    assert (
        seglog("export", path, "--format", "parquet", "-o", "-").exit_code == InvalidArgumentError.exit_code
    )


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"topic": "a/b"}, InvalidNameError),
        ({"topic": "SCHEDULE_TOPIC_XXXX"}, InvalidArgumentError),
        ({"topic": "rmq_sys_wheel_timer"}, InvalidArgumentError),
        ({"queueId": -1}, InvalidNameError),
        ({"queueId": "0"}, InvalidArgumentError),
        ({"body": 7}, InvalidArgumentError),
        ({"bodyForm": "base64", "body": "#"}, InvalidArgumentError),
        ({"bornHost": "nowhere"}, InvalidArgumentError),
        ({"properties": {"a": 1}}, InvalidArgumentError),
        (None, InvalidArgumentError),
    ],
)
def test_a_file_with_one_bad_line_changes_nothing(seglog: Seglog, tmp_path, change, error):
    path = odd_store(tmp_path / "s")
    lines = seglog("export", path, "-o", "-").stdout.splitlines()
    lines[5] = "no json" if change is None else json.dumps({**json.loads(lines[5]), **change})
    (tmp_path / "bad.jsonl").write_text("\n".join(lines) + "\n")
    ran = seglog("import", tmp_path / "t", tmp_path / "bad.jsonl")
    assert ran.exit_code == error.exit_code
    if (
        error is InvalidArgumentError
        and change != {"topic": "SCHEDULE_TOPIC_XXXX"}
        and "topic" not in (change or {})
    ):
        assert "line 6" in ran.stderr
    assert not (tmp_path / "t").exists()


@pytest.mark.parametrize("name", ["x", "x.json", "parquet", "x.jsonl.gz"])
def test_a_name_that_says_no_format_is_refused_before_anything_is_written(seglog: Seglog, tmp_path, name):
    with MessageStore.open(tmp_path / "s", segment_size_bytes=1 << 20, queue_file_size_bytes=20_000) as store:
        store.put("T", b"x")
    refused = seglog("export", tmp_path / "s", "-o", tmp_path / name)
    assert refused.exit_code == InvalidArgumentError.exit_code
    assert f"{name!r} says no format: expected one that ends with .jsonl or .parquet" in refused.stderr
    assert "--format jsonl or --format parquet" in refused.stderr
    assert not (tmp_path / name).exists()


def test_other_files_are_refused(seglog: Seglog, tmp_path):
    (tmp_path / "x").write_bytes(b"PAR1 and no more")
    assert seglog("import", tmp_path / "t", tmp_path / "x").exit_code == InvalidArgumentError.exit_code
    assert not (tmp_path / "t").exists()


@pytest.mark.parametrize(
    ("name", "options", "is_parquet"),
    [
        ("x.parquet", [], True),
        ("x.PARQUET", [], True),
        ("x.jsonl", [], False),
        ("x", ["--format", "jsonl"], False),
        ("x.parquet", ["--format", "jsonl"], False),
        ("x.jsonl", ["--format", "parquet"], True),
    ],
)
def test_the_ending_of_the_name_is_the_format_where_none_is_given(
    seglog: Seglog, tmp_path, name, options, is_parquet
):
    with MessageStore.open(tmp_path / "s", segment_size_bytes=1 << 20, queue_file_size_bytes=20_000) as store:
        store.put("T", b"x")
    assert seglog("export", tmp_path / "s", "-o", tmp_path / name, *options).exit_code == 0
    assert ((tmp_path / name).read_bytes()[:4] == b"PAR1") is is_parquet
