"""``seglog dlq``: dead letters, and sending them again with a receipt for each."""

from __future__ import annotations

import time

import pytest

from seglog.clock import VirtualClock
from seglog.doctor.groups.receipts import RESENT_ID
from seglog.doctor.groups.resend_copy import DLQ_ORIGIN_TOPIC
from seglog.doctor.message.copy_names import DLQ_ORIGIN_MESSAGE_ID, ORIGIN_MESSAGE_ID, RETRY_TOPIC
from seglog.doctor.tables.offset_table import OffsetTable
from seglog.errors import InvalidArgumentError, NotFoundError, StoreLockedError
from seglog.storage.files.files import RealFiles
from seglog.storage.format.system_names import TOOLS_GROUP
from seglog.storage.store import MessageStore
from tests.support.brokers import open_broker, send
from tests.support.command_line import Seglog
from tests.support.material.stores import SMALL, read_all

START_MS = 1_700_000_000_000


def bury(store, group, number, *, topic="Orders", tag="A"):
    store.append(
        f"%DLQ%{group}",
        0,
        b"letter %d" % number,
        "".join(
            f"{name}\x01{value}\x02"
            for name, value in {
                "KEYS": f"k{number}",
                "TAGS": tag,
                "UNIQ_KEY": f"U{group}{number}",
                "shop": "north" if number % 2 else "south",
                RETRY_TOPIC: topic,
                ORIGIN_MESSAGE_ID: f"ID{number}",
                DLQ_ORIGIN_TOPIC: topic,
                DLQ_ORIGIN_MESSAGE_ID: f"ID{number}",
                "DELAY": "-1",
            }.items()
        ).encode(),
        0,
        reconsume_times=16,
    )


@pytest.fixture
def store(tmp_path):
    """Six dead letters of ``g`` from two topics, a second apart, and one of ``h``."""
    clock = VirtualClock(START_MS)
    path = tmp_path / "s"
    with open_broker(path, clock) as broker:
        for queue_id in range(3):
            send(broker, "Orders", queue_id=queue_id)
        for number in range(6):
            bury(broker.store, "g", number, topic="Bills" if number == 5 else "Orders", tag="AB"[number // 4])
            clock.advance(1000)
        bury(broker.store, "h", 9)
    return path


def messages(path, topic, queue_id=0):
    with MessageStore.open(path, read_only=True) as opened:
        return read_all(opened, topic, queue_id)


def offsets(lines):
    return [line["queueOffset"] for line in lines]


def test_groups_with_dead_letters_are_listed(seglog: Seglog, store):
    lines = seglog("dlq", "ls", store, "--json").lines
    assert [(line["group"], line["letters"], line["resent"]) for line in lines] == [("g", 6, 0), ("h", 1, 0)]
    assert lines[0]["newestTimestamp"] - lines[0]["oldestTimestamp"] == 5000
    assert "sent again" in seglog("dlq", "ls", store).stdout


def test_a_store_without_dead_letters_says_so(seglog: Seglog, tmp_path):
    with MessageStore.open(tmp_path / "s", **SMALL) as opened:
        opened.put("T", b"x")
    for command in (["ls"], ["show"], ["resend"]):
        assert "no dead letters" in seglog("dlq", *command, tmp_path / "s").stdout


def test_letters_tell_where_they_were_consumed_from_and_how_often(seglog: Seglog, store):
    lines = seglog("dlq", "show", store, "--group", "g", "--json").lines
    assert [line["origin"] for line in lines] == ["Orders"] * 5 + ["Bills"]
    assert {line["reconsumeTimes"] for line in lines} == {16}
    assert lines[0]["body"] == "letter 0"
    assert lines[0]["resentId"] is None
    assert len(seglog("dlq", "show", store, "--json").lines) == 7
    assert len(seglog("dlq", "show", store, "--count", "2", "--json").lines) == 2


@pytest.mark.parametrize(
    ("conditions", "found"),
    [
        (["key=k3"], [3]),
        (["key!=k3"], [0, 1, 2, 4, 5]),
        (["tag=B"], [4, 5]),
        (["shop=north"], [1, 3, 5]),
        (["shop=north", "tag=A"], [1, 3]),
        (["shop!=north"], [0, 2, 4]),
        (["nothing=1"], []),
        (["nothing!=1"], [0, 1, 2, 3, 4, 5]),
        (["id=Ug2"], [2]),
        (["body~ter 1"], [1]),
        (["retries>=16"], [0, 1, 2, 3, 4, 5]),
        (["retries<16"], []),
        (["offset>2", "offset<=4"], [3, 4]),
        (["size=8"], [0, 1, 2, 3, 4, 5]),
        (["queue!=0"], []),
        ([f"stored>={START_MS + 4000}"], [4, 5]),
        (["stored<2023-11-14T22:13:22Z"], [0, 1]),
    ],
)
def test_conditions_choose_letters(seglog: Seglog, store, conditions, found):
    options = [word for condition in conditions for word in ("--where", condition)]
    lines = seglog("dlq", "show", store, "--group", "g", *options, "--json").lines
    assert offsets(lines) == found


@pytest.mark.parametrize(
    "condition", ["", "key", "=x", "offset~1", "offset=x", "stored>=yesterday", "key>=k", "size=-1"]
)
def test_what_is_no_condition_is_refused(seglog: Seglog, store, condition):
    ran = seglog("dlq", "show", store, "--where", condition)
    assert ran.exit_code == InvalidArgumentError.exit_code


def test_without_apply_nothing_is_sent(seglog: Seglog, store):
    *lines, _preview = seglog("dlq", "resend", store, "--to", "origin", "--json").lines
    assert [(line["group"], line["topic"], line["letters"]) for line in lines] == [
        ("g", "Bills", 1),
        ("g", "Orders", 5),
        ("h", "Orders", 1),
    ]
    assert "nothing was changed" in seglog("dlq", "resend", store).stdout
    assert seglog("dlq", "ls", store, "--json").lines[0]["resent"] == 0


def test_the_group_that_gave_up_gets_its_letters_again_as_if_for_the_first_time(seglog: Seglog, store):
    receipts = seglog("dlq", "resend", store, "--group", "g", "--apply", "--json").lines
    assert [(line["status"], line["topic"], line["queueOffset"]) for line in receipts] == [
        ("sent", "%RETRY%g", number) for number in range(6)
    ]
    back = messages(store, "%RETRY%g")
    assert [message.message_id for message in back] == [line["newId"] for line in receipts]
    assert [message.body for message in back] == [b"letter %d" % number for number in range(6)]
    first = back[0]
    assert first.reconsume_times == 0
    assert (first.properties[RETRY_TOPIC], first.properties[ORIGIN_MESSAGE_ID]) == ("Orders", "ID0")
    assert "DELAY" not in first.properties
    assert (first.tags, first.keys, first.properties["shop"]) == ("A", ["k0"], "south")
    with open_broker(store) as broker:
        assert broker.topics.get("%RETRY%g") is not None


def test_a_topic_gets_letters_as_new_messages_spread_over_its_queues(seglog: Seglog, store):
    receipts = seglog("dlq", "resend", store, "--group", "g", "--to", "origin", "--apply", "--json").lines
    assert [(line["topic"], line["queueId"]) for line in receipts] == [
        *(("Orders", number % 3) for number in range(5)),
        ("Bills", 0),
    ]
    message = messages(store, "Orders", 1)[-1]
    assert {
        RETRY_TOPIC,
        ORIGIN_MESSAGE_ID,
        DLQ_ORIGIN_TOPIC,
        DLQ_ORIGIN_MESSAGE_ID,
    } & message.properties.keys() == set()
    assert message.properties["shop"] in {"north", "south"}


def test_a_letter_is_sent_again_once(seglog: Seglog, store):
    chosen = ["--group", "g", "--where", "shop=north"]
    first = seglog("dlq", "resend", store, *chosen, "--apply", "--json").lines
    assert [line["status"] for line in first] == ["sent"] * 3
    again = seglog("dlq", "resend", store, "--group", "g", "--apply", "--json").lines
    assert [line["status"] for line in again] == ["sent", "was-sent"] * 3
    assert [line["newId"] for line in again][1::2] == [line["newId"] for line in first]
    assert len(messages(store, "%RETRY%g")) == 6
    assert seglog("dlq", "ls", store, "--json").lines[0]["resent"] == 6
    told = seglog("dlq", "resend", store, "--group", "g", "--apply").stdout
    assert "0 dead letters sent again, 6 were sent before" in told
    assert seglog("dlq", "show", store, "--group", "g", "--left", "--json").lines == []
    shown = seglog("dlq", "show", store, "--group", "g", "--json").lines
    assert {line["queueOffset"]: line["resentId"] for line in shown}[1] == first[0]["newId"]


def test_a_letter_that_dies_again_is_another_letter(seglog: Seglog, store):
    seglog("dlq", "resend", store, "--group", "h", "--apply")
    with MessageStore.open(store) as opened:
        (retry,) = read_all(opened, "%RETRY%h", 0)
        opened.append("%DLQ%h", 0, retry.body, retry.properties_raw, 0, reconsume_times=16)
    lines = seglog("dlq", "resend", store, "--group", "h", "--apply", "--json").lines
    assert [line["status"] for line in lines] == ["was-sent", "sent"]
    second = messages(store, "%RETRY%h")[-1]
    assert second.properties[RESENT_ID].startswith(lines[-1]["oldId"])


def test_the_group_for_tools_passes_letters_that_were_all_sent(seglog: Seglog, store):
    def passed():
        return OffsetTable(RealFiles(), store).of(TOOLS_GROUP, "%DLQ%g", 0)

    seglog("dlq", "resend", store, "--group", "g", "--where", "offset!=2", "--apply")
    assert passed() == 2
    seglog("dlq", "resend", store, "--group", "g", "--apply")
    assert passed() == 6


def test_a_rate_is_kept(seglog: Seglog, store):
    began_s = time.monotonic()
    seglog("dlq", "resend", store, "--group", "g", "--rate", "20", "--apply")
    assert time.monotonic() - began_s >= 6 / 20 * 0.9


def test_a_group_without_letters_is_named(seglog: Seglog, store):
    for words in (["show"], ["resend"], ["resend", "--apply"]):
        ran = seglog("dlq", words[0], store, "--group", "nobody", *words[1:])
        assert ran.exit_code == NotFoundError.exit_code
        assert "nobody" in ran.stderr


def test_a_letter_that_does_not_tell_its_topic_can_go_to_its_group_only(seglog: Seglog, tmp_path):
    path = tmp_path / "s"
    with MessageStore.open(path, **SMALL) as opened:
        opened.put("%DLQ%g", b"lost")
    ran = seglog("dlq", "resend", path, "--to", "origin", "--apply")
    assert ran.exit_code == InvalidArgumentError.exit_code
    assert "does not tell its topic" in ran.stderr
    assert seglog("dlq", "resend", path, "--apply", "--json").lines[0]["status"] == "sent"


def test_letters_are_shown_beside_a_broker_and_not_sent(seglog: Seglog, store):
    with MessageStore.open(store):
        assert seglog("dlq", "show", store).exit_code == 0
        assert seglog("dlq", "resend", store).exit_code == 0
        assert seglog("dlq", "resend", store, "--apply").exit_code == StoreLockedError.exit_code
