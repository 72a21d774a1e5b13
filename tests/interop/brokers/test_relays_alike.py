"""What is asked of clients through the real broker and ours: the same answers, and the same questions.

The clients are ours, over connections of bytes to both. Not alike: where a client goes while it is asked,
the real broker waits for the rest of the ten seconds, and ours refuses at once.
"""

from __future__ import annotations

import socket
import threading
from contextlib import ExitStack

import pytest

from seglog.clock import SystemClock
from seglog.remoting.bodies import ConsumerStatusBody
from seglog.remoting.body_json.dialects import Dialect
from seglog.remoting.body_json.queue_bodies import CONSUMER_STATUS
from seglog.remoting.client_headers import ConsumeDirectlyHeader, ConsumerStatusHeader, RunningInfoHeader
from seglog.remoting.codes import RequestCode, ResponseCode
from seglog.remoting.command import Request, Response, Sender, expect_header, refuse
from seglog.remoting.frames.frame import Serialization
from seglog.remoting.headers import SendMessageResponseHeader
from seglog.remoting.heartbeat import ConsumerData, HeartbeatBody
from seglog.remoting.message_queue import MessageQueue
from seglog.remoting.versions import OLD_VERSIONS, V3_1_8_SNAPSHOT
from seglog.schedule import Timers
from seglog.storage.format.record import decode_message
from tests.interop.judging import toolchain
from tests.interop.judging.differential import GEOMETRY, SETTINGS, STORE_SETTINGS, open_ours
from tests.interop.judging.judge import Judge
from tests.interop.judging.requests import make_group, send
from tests.support.connections import ServedEnd, WireEnd
from tests.support.machine.patience import join_thread, wait_for_result
from tests.support.scale import chance, is_gate

pytestmark = pytest.mark.interop

IDLE_S = 30
NEW = 493
RUNNING_INFO = b'{"mqTable":{{"brokerName":"b","queueId":0,"topic":"T"}:{"locked":true}},"jstack":"\xc3\xa9"}'
RELEASES = (toolchain.DEFAULT_VERSION, toolchain.NEWEST_VERSION)
TRIED = (chance("release of relays").choice(RELEASES),) if is_gate() else RELEASES
"""In the gate one of them, which the commit draws."""


class OurSide:
    """Connections to our broker."""

    def __init__(self, broker):
        self._broker = broker

    def connect(self, client_id, sender):
        """Returns a socket, and what has to be closed with it."""
        here, there = socket.socketpair()
        return there, [ServedEnd(here, self._broker, client_id, sender)]


class TheirSide:
    """Connections to the real broker."""

    def __init__(self, port):
        self._port = port

    def connect(self, client_id, sender):
        """Returns a socket."""
        return socket.create_connection(("127.0.0.1", self._port)), []


class Clients:
    """Clients of one of the brokers, and one that asks it about them."""

    def __init__(self, side):
        self._side = side
        self._stack = ExitStack()
        self.admin = self.connect("admin")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._stack.close()

    def connect(self, client_id, answer=lambda _: None, *, version=NEW, serialization=Serialization.JSON):
        sender = Sender("JAVA", version)
        end, others = self._side.connect(client_id, sender)
        client = WireEnd(end, Timers(SystemClock()), answer, serialization, sender)
        for one in (*others, client):
            self._stack.callback(one.close)
        return client

    def join(self, group, client_id, answer=lambda _: None, **more):
        """Returns a client that is in a group."""
        client = self.connect(client_id, answer, **more)
        body = HeartbeatBody(client_id, (), (ConsumerData(group, ()),))
        beaten = wait_for_result(
            client.ask(Request(RequestCode.HEART_BEAT, body=body), 60_000), idle_s=IDLE_S
        )
        assert beaten.code is ResponseCode.SUCCESS
        return client

    def ask(self, request):
        """Returns what the broker answers, as something that can be compared."""
        return seen_of(wait_for_result(self.admin.ask(request, 60_000), idle_s=IDLE_S))


def seen_of(answer):
    """Returns code, remark and body; of a success the real broker's remark may be of before it was one."""
    body = bytes(answer.body) if isinstance(answer.body, bytes | memoryview) else answer.body
    return answer.code, answer.remark if answer.code else None, body


@pytest.fixture(scope="module", params=TRIED)
def sides(request, judge, tmp_path_factory):
    """Both brokers of one release after the other."""
    folder = tmp_path_factory.mktemp("relays")
    with (
        Judge(request.param) as of_release,
        open_ours(folder / "ours", request.param) as ours,
    ):
        of_release.build()
        theirs = of_release.broker(folder / "theirs", GEOMETRY, settings=SETTINGS, **STORE_SETTINGS)
        with theirs as broker:
            yield OurSide(ours), TheirSide(broker.port)


@pytest.fixture
def both(sides):
    """Runs a scene with the clients of either broker, and returns what both showed, which is one."""

    def run(scene):
        shown = []
        for side in sides:
            with Clients(side) as clients:
                shown.append(scene(clients))
        ours, theirs = shown
        assert ours == theirs
        return ours

    return run


def running_info(group, client_id="c1"):
    return Request(RequestCode.GET_CONSUMER_RUNNING_INFO, RunningInfoHeader(group, client_id))


def status(group, client_id=None):
    header = ConsumerStatusHeader("T", group, client_id)
    return Request(RequestCode.INVOKE_BROKER_TO_GET_CONSUMER_STATUS, header)


def at(count):
    """Returns how far a client is that has so many queues."""
    queues = {MessageQueue("T", "broker-a", queue_id): 7 * queue_id for queue_id in range(count)}
    return Response(ResponseCode.SUCCESS, body=ConsumerStatusBody(queues))


@pytest.mark.parametrize("serialization", Serialization)
def test_running_info_is_asked_and_answered_alike(both, serialization):
    def scene(clients):
        asked = []

        def answer(request):
            asked.append((request.code, dict(request.ext), request.body))
            if request.header.client_id == "c2":
                return refuse(ResponseCode.SYSTEM_ERROR, "The Consumer Group <g> not exist in this consumer")
            return Response(ResponseCode.SUCCESS, body=RUNNING_INFO)

        offline = clients.ask(running_info("g"))
        for client_id in ("c1", "c2"):
            clients.join("g", client_id, answer, serialization=serialization)
        answers = [clients.ask(running_info("g", client_id)) for client_id in ("c1", "c2", "c3")]
        return asked, offline, answers

    asked, offline, answers = both(scene)
    fields = {"consumerGroup": "g", "clientId": "c1", "jstackEnable": "false"}
    assert asked[0] == (RequestCode.GET_CONSUMER_RUNNING_INFO, fields, None)
    assert offline == (ResponseCode.SYSTEM_ERROR, "The Consumer <g> <c1> not online", None)
    assert answers[0] == (ResponseCode.SUCCESS, None, RUNNING_INFO)
    assert answers[1][:2] == (ResponseCode.SYSTEM_ERROR, "The Consumer Group <g> not exist in this consumer")
    assert answers[2][1] == "The Consumer <g> <c3> not online"


def test_a_message_to_consume_is_handed_over_alike(both):
    def scene(clients):
        asked = []

        def answer(request):
            message = decode_message(request.body, verify=True)
            fields = {name: text for name, text in request.ext.items() if name != "msgId"}
            asked.append((fields, message.topic, message.body, message.properties))
            return Response(ResponseCode.SUCCESS, body=b'{"consumeResult":"CR_SUCCESS"}')

        clients.join("g", "c1", answer)
        clients.ask(make_group("g"))
        sent = wait_for_result(clients.admin.ask(send("direct"), 60_000), idle_s=IDLE_S)
        message_id = expect_header(sent, SendMessageResponseHeader).msg_id
        who = ("c1", "direct"), ("c1", "another"), ("c1", None), ("c2", "direct"), (None, None)
        headers = [ConsumeDirectlyHeader("g", client, message_id, topic=topic) for client, topic in who]
        answers = [clients.ask(Request(RequestCode.CONSUME_MESSAGE_DIRECTLY, one)) for one in headers]
        return asked, answers

    asked, answers = both(scene)
    assert [fields.get("topicSysFlag") for fields, *_ in asked] == ["0", None, None]
    assert {fields["brokerName"] for fields, *_ in asked} == {"broker-a"}
    assert [code for code, *_ in answers] == [ResponseCode.SUCCESS] * 3 + [ResponseCode.SYSTEM_ERROR] * 2


def test_how_far_clients_are_is_gathered_alike(both):
    def scene(clients):
        asked = []

        def saying(answer):
            def say(request):
                asked.append((request.code, dict(request.ext)))
                return answer

            return say

        clients.join("g", "c1", saying(at(2)))
        clients.join("g", "c2", saying(at(3)), serialization=Serialization.ROCKETMQ)
        clients.join("g", "refuses", saying(refuse(ResponseCode.SYSTEM_ERROR, "no")))
        clients.join("g", "empty", saying(Response(ResponseCode.SUCCESS)))
        clients.join("g", "else", saying(Response(ResponseCode.SUCCESS, body=b"{}")))
        clients.join("g", "broken", saying(Response(ResponseCode.SUCCESS, body=b"{")))
        answers = [clients.ask(status("g", who)) for who in (None, "", "  ", "c2", "no one")]
        return sorted(asked, key=str), answers

    asked, answers = both(scene)
    assert len(asked) == 3 * 6 + 1
    assert asked[0] == (RequestCode.GET_CONSUMER_STATUS_FROM_CLIENT, {"group": "g", "topic": "T"})
    everyone = {"c1": at(2).body.queues, "c2": at(3).body.queues, "else": {}}
    assert answers[0] == (ResponseCode.SUCCESS, None, ConsumerStatusBody(clients=everyone))
    assert answers[3][2] == ConsumerStatusBody(clients={"c2": everyone["c2"]})


def test_how_far_clients_are_is_written_alike(sides):
    written = []
    for side in sides:
        with Clients(side) as clients:
            clients.join("g", "c1", lambda _: at(1))
            answer = wait_for_result(clients.admin.ask(status("g"), 60_000), idle_s=IDLE_S)
            written.append(CONSUMER_STATUS.encode(answer.body, Dialect.FASTJSON))
    assert written[0] == written[1]


def succeed(_):
    return Response(ResponseCode.SUCCESS)


def test_old_clients_are_refused_alike(both):
    def scene(clients):
        answers = []
        for version in range(V3_1_8_SNAPSHOT + 1):
            group, client_id = f"g{version}", f"v{version}"
            client = clients.join(group, client_id, succeed, version=version)
            answers += map(clients.ask, (running_info(group, client_id), status(group)))
            client.close()
        return answers

    answers = both(scene)
    refused = [remark for code, remark, _ in answers if code is ResponseCode.SYSTEM_ERROR]
    assert len(refused) == V3_1_8_SNAPSHOT + 28
    assert OLD_VERSIONS[61] in refused[-1]


def test_clients_that_do_not_answer_are_waited_for_alike(sides):
    """Both wait for ten seconds of real time, at once."""
    shown = {}

    def scene(side):
        with Clients(side) as clients:
            clients.join("g", "silent")
            clients.join("g", "c2", lambda _: at(1))
            going = []
            going.append(clients.join("gone", "c1", lambda _: going[0].hang_up()))
            requests = running_info("gone"), status("g"), running_info("g", "silent")
            asked = [
                clients.connect(f"admin{number}").ask(request, 60_000)
                for number, request in enumerate(requests)
            ]
            shown[side] = [seen_of(wait_for_result(one, idle_s=IDLE_S)) for one in asked]

    threads = [threading.Thread(target=scene, args=(side,)) for side in sides]
    for thread in threads:
        thread.start()
    for thread in threads:
        join_thread(thread, idle_s=IDLE_S)
    ours, theirs = (shown[side] for side in sides)
    assert (ours[0][0], theirs[0][0]) == (ResponseCode.SYSTEM_ERROR, ResponseCode.CONSUME_MSG_TIMEOUT)
    assert ours[1] == theirs[1]
    assert ours[1][2] == ConsumerStatusBody(clients={"c2": at(1).body.queues})
    for answer in (ours[2], theirs[2]):
        assert answer[0] is ResponseCode.CONSUME_MSG_TIMEOUT
        assert answer[1].startswith("consumer <g> <silent> Timeout: ")
