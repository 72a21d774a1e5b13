"""RocketMQ's own tool prints the same of our broker and of the real one, and does the same to both.

One JVM runs the real broker, and the commands at both. What they print is compared without what differs
between two processes: addresses, ids, times and rates.
"""

from __future__ import annotations

import json
import operator
import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Final

import pytest

from seglog.broker.broker import Broker
from seglog.consumer.push import PushConsumer
from seglog.producer.producer import Producer
from seglog.producer.send_result import SendResult
from tests.interop.clients.conftest import DRAWN, RELEASES
from tests.interop.judging.places import BROKER_NAME, CONFIG, Place, place_of_rocketmq
from tests.support.listening import BrokerServer
from tests.support.machine.patience import LateError, wait_until
from tests.support.rows import every_row
from tests.support.scale import is_full

pytestmark = pytest.mark.interop

TOPIC: Final = "T"
GROUP: Final = "g"
MS: Final = "1750000000000"
BODIES: Final = [b"message %d" % number for number in range(8)]
_PLAIN: Final = (
    (re.compile(r"127\.0\.0\.1:\d+"), "ADDRESS"),
    (re.compile(r"\b[0-9A-F]{32}(?:[0-9A-F]{24})?\b"), "ID"),
    (re.compile(r"\S+@\d+#[0-9a-f]+"), "CLIENT"),
    (re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?:,\d{3})?"), "TIME"),
    (re.compile(r"\b1[6-9]\d{11}\b"), "MS"),
    (re.compile(r"\d+\.\d+"), "RATE"),
    (re.compile(r"^\tat .*\n|^For more information.*\n|^See https.*\n", re.MULTILINE), ""),
    (re.compile(r"(?<=\S) +"), " "),
)
"""What of a text differs between two processes, and what stands for it; columns are as wide as that is."""


@dataclass(frozen=True)
class Side:
    """One of the two brokers, and what was done to it."""

    place: Place
    sent: list[SendResult]
    tool: Callable[..., str]

    def run(self, *command: str) -> str:
        """Returns what a command prints; the words for places and ids in it are filled in."""
        last = self.sent[-1]
        names = {
            "broker": self.place.address,
            "offset_id": last.offset_message_id,
            "unique_key": last.message_id,
        }
        return self.tool(*(word.format(**names) for word in command), name_servers=self.place.target)


@dataclass(frozen=True)
class Both:
    """Our broker and the real one."""

    broker: Broker
    ours: Side
    theirs: Side
    counted: tuple[str, str]
    """What `statsAll` printed of both, once the real one had counted what was sent and consumed."""

    def run(self, *command: str) -> tuple[str, str]:
        """Returns what both print."""
        return self.ours.run(*command), self.theirs.run(*command)

    def alike(self, *command: str) -> str:
        """Fails where they do not print the same; returns what ours prints."""
        ours, theirs = self.run(*command)
        assert plain(ours) == plain(theirs)
        return ours


def plain(text: str) -> str:
    """Returns what of a text two processes have in common."""
    for pattern, stands in _PLAIN:
        text = pattern.sub(stands, text)
    return text


@pytest.fixture(scope="module", params=RELEASES if is_full() else [DRAWN])
def both(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Both]:
    """Two brokers with the same topic, messages, and a group that has consumed them and is online."""
    request.getfixturevalue("judge")  # it skips, or fails, where there is no Java
    folder = tmp_path_factory.mktemp("both")
    config = replace(CONFIG, compatible_with=request.param)
    with ExitStack() as opened:
        theirs = opened.enter_context(place_of_rocketmq(folder / "theirs", request.param))
        server = opened.enter_context(BrokerServer(folder / "ours", config=config, record_crc=False))
        ours = Place(server.address, server.address)
        opened.callback(ours.close)
        assert theirs.java is not None
        sides = [Side(place, _filled(place, opened), theirs.java.admin) for place in (ours, theirs)]
        # The real broker fails on questions about itself, or says less, until its statistics have a sample.
        wait_until(lambda: "putTps" in sides[1].run("brokerStatus", "-b", "{broker}"), idle_s=30, look_s=0.2)
        both = _once_alike(sides[0], sides[1], "statsAll", "-t", TOPIC)
        yield Both(server.broker, sides[0], sides[1], both)


def _once_alike(ours: Side, theirs: Side, *command: str) -> tuple[str, str]:
    """Asks until both count alike, or returns what they say in the end.

    The real broker samples every ten seconds and forgets a sample after a minute; what came before that is
    counted again when ten minutes are over. So this is asked at once, not when a test comes to it.
    """

    def asked() -> tuple[str, str]:
        return ours.run(*command), theirs.run(*command)

    with suppress(LateError):  # what differs for so long is wrong
        wait_until(lambda: len(set(map(plain, asked()))) == 1, idle_s=30, look_s=0.2)
    return asked()


def _filled(place: Place, opened: ExitStack) -> list[SendResult]:
    place.make_topic(TOPIC)
    producer = opened.enter_context(Producer(place.target))
    sent = [
        producer.send(TOPIC, body, queue_id=number % 4, keys=f"k{number}", tags="A")
        for number, body in enumerate(BODIES)
    ]
    consumer = place.consumer(PushConsumer, GROUP, TOPIC, lambda _message: None)
    place.settle(lambda: [place.done(consumer, TOPIC, number) for number in range(4)] == [2] * 4)
    return sent


READ: Final = (
    "clusterList",
    "topicStatus -t T",
    "topicRoute -t T",
    "topicRoute -t T -l",
    "topicRoute -t nothing",
    "topicClusterList -t T",
    "queryMsgById -i {offset_id} -t T",
    "queryMsgByKey -t T -k k3",
    "queryMsgByKey -t T -k nothing",
    "queryMsgByUniqueKey -i {unique_key} -t T",
    "queryMsgByOffset -t T -b broker-a -i 0 -o 1",
    "queryCq -b {broker} -t T -q 0 -i 0",
    "queryCq -b {broker} -t T -q 9 -i 0",
    "printMsg -t T",
    "printMsgByQueue -t T -a broker-a -i 1 -p true",
    "consumerProgress -g g",
    "brokerConsumeStats -b {broker}",
    "producer -b {broker}",
    "producerConnection -g DEFAULT_PRODUCER -t T",
    "producerConnection -g nothing -t T",
    "consumerConnection -g g",
    "consumerConnection -g nothing",
    "getConsumerConfig -g g",
    "allocateMQ -t T -i a,b",
)


def test_what_is_read_is_printed_as_of_the_real_broker(both):
    with every_row() as row:
        for command in READ:
            with row(command):
                if command.startswith("producer "):
                    wait_until(partial(has_no_producer_of_the_tool, both, command), idle_s=30)
                both.alike(*command.split())


def has_no_producer_of_the_tool(both, command):
    """Returns whether the brokers know by now that the commands before have ended, which had clients."""
    return not any("CLIENT_INNER_PRODUCER" in text for text in both.run(*command.split()))


def test_messages_are_printed_as_they_are_stored(both):
    store, sent = both.broker.store, both.ours.sent
    for command in ("queryMsgById -i {offset_id} -t T", "queryMsgByUniqueKey -i {unique_key} -t T"):
        shown = fields_of(both.ours.run(*command.split()))
        stored = store.message_by_id(sent[-1].offset_message_id)
        assert (shown["Topic"], shown["Tags"], shown["Keys"]) == (TOPIC, "[A]", "[k7]")
        assert shown["CommitLog Offset"] == str(stored.phy_offset)
        assert (shown["Queue ID"], shown["Queue Offset"]) == (str(stored.queue_id), str(stored.queue_offset))
        assert Path(shown["Message Body Path"]).read_bytes() == BODIES[-1]
    printed = both.ours.run("printMsg", "-t", TOPIC)
    ids = re.findall(r"^MSGID: (\w+)", printed, re.MULTILINE)
    assert sorted(ids) == sorted(one.message_id for one in sent)
    (line,) = both.ours.run("queryMsgByKey", "-t", TOPIC, "-k", "k3").splitlines()[1:2]
    assert line.split()[:3] == [sent[3].message_id, "3", "0"]
    for queue_id, line in enumerate(both.ours.run("topicStatus", "-t", TOPIC).splitlines()[1:5]):
        assert line.split()[:4] == [BROKER_NAME, str(queue_id), "0", str(store.max_offset(TOPIC, queue_id))]


def test_all_topics_and_groups_are_listed(both):
    ours, theirs = (set(text.split()) for text in both.run("topicList"))
    assert {topic.name for topic in both.broker.topics.all()} == ours
    of_parts_that_we_have_not = {"ROCKSDB", "REVIVE_LOG", "SYNC_BROKER_MEMBER", "RETRY%TOOLS"}
    assert {
        name for name in theirs - ours if not any(part in name for part in of_parts_that_we_have_not)
    } == set()
    for text in both.run("topicList", "-c"):
        assert ["DefaultCluster", TOPIC, GROUP] in [line.split() for line in text.splitlines()]

    # The tool has a group of its own, at times; and the real broker samples every ten seconds.
    def listed():
        return [
            [line for line in text.splitlines() if "TOOLS_CONSUMER" not in line]
            for text in both.run("consumerProgress")
        ]

    with suppress(LateError):
        wait_until(lambda: operator.eq(*listed()), idle_s=30, look_s=0.2)
    here, there = listed()
    assert here == there
    assert here[1].split()[:2] == [GROUP, "1"]


def test_the_settings_and_the_state_of_the_broker_have_the_names_that_the_real_one_gives_them(both):
    ours, theirs = (fields_of(text, "=") for text in both.run("getBrokerConfig", "-b", "{broker}"))
    assert ours.keys() - {f"{both.ours.place.address}"} <= theirs.keys()
    assert ours["storePathRootDir"] == str(both.broker.path)
    same = ("brokerName", "brokerClusterName", "brokerId", "brokerRole", "messageDelayLevel", "deleteWhen")
    assert [ours[name] for name in same] == [theirs[name] for name in same]
    ours, theirs = (fields_of(text) for text in both.run("brokerStatus", "-b", "{broker}"))
    of_a_path = f"commitLogDiskRatio_{both.broker.path}/commitlog"
    own = {name for name in ours if name.startswith("seglog.")}
    assert {"seglog.lag", "seglog.connections"} <= own
    assert ours.keys() - {of_a_path, *own} <= theirs.keys()
    assert ours["commitLogMaxOffset"] == str(both.broker.store.max_phy_offset)
    assert ours["brokerVersionDesc"] == theirs["brokerVersionDesc"]
    page = (Path(__file__).parents[3] / "docs" / "server.md").read_text()
    (table,) = re.findall(r"\| key of `brokerStatus` \| why not \|\n\|.*\n((?:\|.*\n)+)", page)
    not_given = set(re.findall(r"^\| `(\w+)`", table, re.MULTILINE))
    assert {name for name in theirs.keys() - ours.keys() if "/" not in name} == not_given
    for name in ("putMessageSizeTotal", "putMessageTimesTotal", "sendThreadPoolQueueCapacity"):
        assert int(ours[name]) > 0
    assert ours["putMessageAverageSize"].partition(".")[0] == str(
        int(ours["putMessageSizeTotal"]) // int(ours["putMessageTimesTotal"])
    )
    first = both.broker.store.message_at(0)
    assert ours["earliestMessageTimeStamp"] == str(first.store_timestamp_ms)


def test_messages_are_counted_as_by_the_real_broker(both):
    ours, theirs = (text.splitlines()[1].split() for text in both.run("clusterList", "-m"))
    assert ours[:5] == theirs[:5]
    assert min(int(ours[5]), int(theirs[5])) >= len(BODIES)  # the tool itself has pulled some
    ours, theirs = both.counted
    assert plain(ours) == plain(theirs)
    assert [int(number) for number in ours.splitlines()[1].split()[-2:]] == [len(BODIES)] * 2


def test_topics_are_made_changed_and_deleted(both, tmp_path):
    topics = both.broker.topics
    both.alike("updateTopic", "-b", "{broker}", "-t", "Made", "-r", "3", "-w", "2", "-p", "6")
    both.alike("updateTopicPerm", "-b", "{broker}", "-t", "Made", "-p", "4")
    assert (topics.get("Made").read_queue_nums, topics.get("Made").write_queue_nums) == (3, 2)
    assert topics.get("Made").perm == 4
    both.alike("updateTopic", "-c", "DefaultCluster", "-t", "Fifo", "-a", "+message.type=FIFO")
    assert topics.get("Fifo").attributes == {"message.type": "FIFO"}
    both.alike("updateTopic", "-b", "{broker}", "-t", "no name")
    listed = [
        {"topicName": f"Listed{number}", "readQueueNums": number, "writeQueueNums": number, "perm": 6}
        for number in (1, 2)
    ]
    (tmp_path / "topics.json").write_text(json.dumps(listed))
    both.alike("updateTopicList", "-b", "{broker}", "-f", str(tmp_path / "topics.json"))
    assert [topics.get(f"Listed{number}").read_queue_nums for number in (1, 2)] == [1, 2]
    # The real broker fails here: its timer, which tests have switched off, is to forget the topic.
    assert both.ours.run("deleteTopic", "-c", "DefaultCluster", "-t", "Made").splitlines() == [
        "delete topic [Made] from cluster [DefaultCluster] success.",
        "delete topic [Made] from NameServer success.",
    ]
    assert topics.get("Made") is None


def test_groups_are_made_moved_and_deleted(both):
    groups, offsets = both.broker.groups, both.broker.offsets
    both.alike("updateSubGroup", "-b", "{broker}", "-g", "made", "-s", "true", "-r", "3")
    assert groups.get("made").retry_max_times == 3
    both.alike("cloneGroupOffset", "-s", GROUP, "-d", "made", "-t", TOPIC, "-o", "true")
    assert [offsets.query("made", TOPIC, number) for number in range(4)] == [2] * 4
    for command, offset in (
        (("resetOffsetByTime", "-s", "0"), 0),
        (("skipAccumulatedMessage",), 2),
        (("resetOffsetByTime", "-s", "0", "-b", "{broker}", "-q", "1", "-o", "1"), 1),
    ):
        both.alike(*command, "-g", "made", "-t", TOPIC)
        assert offsets.query("made", TOPIC, 1) == offset
    both.alike("deleteSubGroup", "-b", "{broker}", "-g", "made", "-r", "true")
    assert groups.get("made") is None
    assert offsets.query("made", TOPIC, 1) is None


def test_values_are_kept_by_the_name_server(both):
    values = both.broker.path / "seglog" / "kvConfig.json"
    both.alike("updateKvConfig", "-s", "space", "-k", "key", "-v", "a value")
    assert json.loads(values.read_text())["configTable"]["space"] == {"key": "a value"}
    both.alike("deleteKvConfig", "-s", "space", "-k", "key")
    assert json.loads(values.read_text())["configTable"]["space"] == {}
    for how in (("put", "-v", "broker-a:4"), ("get",), ("delete",), ("get",)):
        both.alike("updateOrderConf", "-t", TOPIC, "-m", *how)


def test_settings_are_changed(both):
    assert both.broker.config.auto_create_topics
    for value in ("false", "true"):
        both.alike("updateBrokerConfig", "-b", "{broker}", "-k", "autoCreateTopicEnable", "-v", value)
        assert both.broker.config.auto_create_topics == (value == "true")
    both.alike("updateBrokerConfig", "-b", "{broker}", "-k", "brokerConfigPath", "-v", "/elsewhere")
    both.alike("updateBrokerConfig", "-b", "{broker}", "-k", "sendMessageThreadPoolNums", "-v", "2")
    both.alike("updateBrokerConfig", "-b", "{broker}", "-k", "waitTimeMillsInSendQueue", "-v", "60001")
    for text in both.run("getBrokerConfig", "-b", "{broker}"):
        assert fields_of(text, "=")["waitTimeMillsInSendQueue"] == "60001"


def test_permission_to_write_goes_out_of_routes_and_comes_back(both):
    for command, perm in (("wipeWritePerm", 4), ("addWritePerm", 6)):
        ours, theirs = (re.sub(r"\d+$", "", text.strip()) for text in both.run(command, "-b", BROKER_NAME))
        assert plain(ours) == plain(theirs)  # how many topics they have differs
        assert f'"perm":{perm}' in both.alike("topicRoute", "-t", TOPIC)


def test_a_message_is_sent_and_consumed(both):
    both.alike("updateTopic", "-b", "{broker}", "-t", "Sent", "-r", "1", "-w", "1")
    both.alike("sendMessage", "-t", "Sent", "-p", "hello", "-k", "key", "-c", "tag")
    (stored,) = both.broker.store.get("Sent", 0, 0, 32).messages
    assert (stored.body, stored.properties["KEYS"], stored.properties["TAGS"]) == (b"hello", "key", "tag")
    both.alike("consumeMessage", "-t", "Sent")


def test_the_trace_of_a_message_is_printed(both):
    """Traces are messages that clients of Java send; this one is as 5.4.0 writes it."""
    for side in (both.ours, both.theirs):
        sent = side.sent[-1]
        rows = (
            (
                "Pub",
                MS,
                "r",
                "pg",
                TOPIC,
                sent.message_id,
                "A",
                "k7",
                "127.0.0.1:1",
                "9",
                "12",
                "0",
                "X",
                "true",
            ),
            ("SubBefore", MS, "r", GROUP, "REQUEST", sent.message_id, "0", "k7"),
            ("SubAfter", "REQUEST", sent.message_id, "3", "true", "k7", "0", MS, GROUP),
        )
        body = "".join("\x01".join(row) + "\x02" for row in rows).encode()
        with Producer(side.place.target) as producer:
            producer.send("RMQ_SYS_TRACE_TOPIC", body, keys=sent.message_id)
    shown = both.alike("queryMsgTraceById", "-i", "{unique_key}")
    assert [line.split()[:2] for line in shown.splitlines() if line.startswith(("Pub", "Sub"))] == [
        ["Pub", "pg"],
        ["Sub", GROUP],
    ]
    both.alike("queryMsgTraceById", "-i", "nothing")


def test_the_state_of_a_consumer_is_printed(both):
    """With ``-i`` it goes to the output; without, into files of the folder that the tool runs in."""
    shown = []
    for side in (both.ours, both.theirs):
        (member,) = side.place.members(GROUP)
        text = side.run("consumerStatus", "-g", GROUP, "-i", member)
        assert "PROP_CONSUME_TYPE" in text
        # Times, rates and what is fetched ahead differ from run to run, as addresses do.
        shown.append(re.sub(r"\d+", "N", plain(text)))
    assert shown[0] == shown[1]
    both.alike("consumerStatus", "-g", "nothing", "-i", "nothing")


def test_sends_are_timed(both):
    both.alike("updateTopic", "-b", "{broker}", "-t", "Timed", "-r", "4", "-w", "4")
    shown = [
        re.sub(r"\d+(?=\n)|RATE", "N", plain(text))
        for text in both.run("checkMsgSendRT", "-t", "Timed", "-a", "6", "-s", "64")
    ]
    assert shown[0] == shown[1]
    assert both.broker.store.max_offset("Timed", 0) == 2


def test_old_files_are_cleaned_at_once(both):
    with every_row() as row:
        for command in ("cleanExpiredCQ", "cleanUnusedTopic", "deleteExpiredCommitLog"):
            with row(command):
                assert both.alike(command, "-b", "{broker}").strip() == "success"


def fields_of(text: str, between: str = ":") -> dict[str, str]:
    """Returns what is printed as a name and a value a line."""
    split = (line.partition(between) for line in text.splitlines())
    return {name.strip(): value.strip() for name, _, value in split if value.strip()}
