"""Who is connected to a broker, and what it does, asked over a connection."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess

import pytest

from seglog import ConsumeFrom, OrderlyConsumer, Producer
from seglog.cli.admin.asking import Unreachable
from seglog.cli.admin.top import drawn
from seglog.cli.admin.top_view import WIDTH, GroupRow, TopicRow, View
from seglog.errors import CannotConnectError, InvalidArgumentError
from seglog.remoting.admin_bodies import ClusterBody, NamesBody
from seglog.remoting.bodies import BrokerData
from seglog.remoting.codec import Asked, Codec
from seglog.remoting.codes import RequestCode, ResponseCode
from seglog.remoting.command import Request, Response
from seglog.remoting.heartbeat import ConsumerData, HeartbeatBody
from seglog.remoting.peer import Peer
from seglog.remoting.subscription import SubscriptionData
from seglog.remoting.versions import version_name
from seglog.storage.format.record import Host
from tests.support.command_line import Seglog
from tests.support.command_line.screen import on_screen
from tests.support.hostile.text import ACTS, HOSTILE
from tests.support.listening import BrokerServer
from tests.support.listening import Server as ListeningServer
from tests.support.machine.patience import patience_s, wait_until
from tests.support.narrow import not_none


@pytest.fixture
def server(tmp_path):
    with BrokerServer(tmp_path / "served") as one:
        yield one


@pytest.fixture
def busy(server):
    """A server with a producer, and a consumer that has done half of what there is."""
    with Producer(server.address) as producer:
        for number in range(8):
            producer.send("orders", b"%d" % number, queue_id=0)
        consumer = OrderlyConsumer(
            server.address, "billing", "orders", lambda _message: None, consume_from=ConsumeFrom.FIRST
        )
        with consumer:
            consumer.run_until_idle()
            consumer.commit()
            for number in range(4):
                producer.send("unread", b"%d" % number, queue_id=0)
            server.broker.groups.find("late")
            server.broker.offsets.commit("late", "unread", 0, 1)
            # A heartbeat comes a second after the first send.
            wait_until(server.broker.clients.all_producers)
            yield server


def test_clients_are_shown_with_what_they_subscribe_to(seglog: Seglog, busy):
    ran = seglog("clients", busy.address, "--json")
    assert (ran.exit_code, ran.stderr) == (0, "")
    by_role = {line["kind"]: line for line in ran.lines}
    assert by_role.keys() == {"producer", "consumer"}
    for line in ran.lines:
        assert (line["language"], line["version"], line["broker"]) == ("PYTHON", "V5_4_0", "broker-a")
        assert re.fullmatch(r"127\.0\.0\.1:\d+", line["address"])
    assert by_role["consumer"]["group"] == "billing"
    assert by_role["consumer"]["subscriptions"] == {"%RETRY%billing": "*", "orders": "*"}
    heading, *rows = seglog("clients", busy.address).stdout.splitlines()
    assert heading.split("  ")[0] == "group"
    assert heading.endswith("its group subscribes to")
    assert [row.split()[1] for row in rows] == ["producer", "consumer"]


def test_a_broker_without_clients_has_none(seglog: Seglog, server):
    assert seglog("clients", server.address).stdout == "no clients\n"
    assert seglog("clients", server.address, "--json").stdout == ""


def test_top_shows_what_there_is_once(seglog: Seglog, busy):
    (told,) = seglog("top", busy.address, "--once", "--json").lines
    assert (told["kind"], told["broker"], told["address"]) == ("top", "broker-a", busy.address)
    assert {row["topic"]: row["putInDay"] for row in told["topics"]} == {"orders": 8, "unread": 4}
    groups = {(row["group"], row["topic"]): row["lag"] for row in told["groups"]}
    assert groups == {("billing", "orders"): 0, ("billing", "%RETRY%billing"): 0, ("late", "unread"): 3}
    facts = told["facts"]
    assert (facts["seglog.lag"], facts["seglog.producerGroups"]) == ("3", "1")
    assert int(facts["seglog.locks"]) >= 1
    assert int(facts["seglog.connections"]) >= 3
    shown = seglog("top", busy.address, "--once").stdout.splitlines()
    assert shown[0].startswith(f"broker-a at {busy.address}, V5_5_1, log ")
    assert shown[1].startswith("put ")
    assert shown[2].startswith("committed lag 3  locks ")
    assert max(map(len, shown)) <= WIDTH


@pytest.mark.parametrize("command", [["clients"], ["top", "--once"]])
def test_an_address_that_nothing_answers_at_is_an_error(seglog: Seglog, command):
    ran = seglog(*command, "127.0.0.1:1")
    assert ran.exit_code == CannotConnectError.exit_code
    assert "127.0.0.1:1" in ran.stderr
    assert seglog(*command, "nowhere").exit_code == InvalidArgumentError.exit_code


def test_lines_of_the_view_are_never_longer_than_80_columns():
    long = "x" * 200 + "\x1b[31m"
    numbers = (10**9, 10**8, 123_456_789.5)
    facts = {"putTps": "1234567.89 1 1", "brokerVersionDesc": long, "seglog.lag": "9" * 90}
    view = View(long, long, facts, [TopicRow(long, 1e9, 10**12)] * 30, [GroupRow(long, long, *numbers)] * 30)
    lines = view.lines()
    assert len(lines) == 3 + 2 + 12 + 2 + 12
    assert max(map(len, lines)) <= WIDTH
    assert not any("\x1b" in line for line in lines)


@pytest.mark.parametrize(
    "said", ["abc", "a b c", "\N{SUPERSCRIPT TWO}", "--5", "9" * 5_000, "nan", "-inf", "", "1e400"]
)
def test_figures_that_are_no_numbers_are_shown_as_0(said):
    names = ("commitLogDiskRatio", "putTps", "msgPutTotalTodayNow", "commitLogMaxOffset")
    lines = View("b", "h:1", dict.fromkeys(names, said), [], []).lines()
    assert lines[0] == "b at h:1, of no version, log 0 bytes, disk 0 %"
    assert lines[1] == "put 0.0/s, pulled 0.0/s; today 0 put, 0 pulled"


@pytest.mark.parametrize("width", [20, 60, 80, 132])
def test_lines_of_the_view_fit_into_the_terminal(width):
    topic, group = TopicRow("t" * 100, 1.5, 7), GroupRow("g" * 100, "t" * 100, 3, 2, 0.5)
    lines = View("b", "h:1", {}, [topic] * 9, [group] * 9).lines(width, 2)
    assert max(map(len, lines)) <= width
    if width >= 60:
        rows = [line.split() for line in lines if line.startswith(("t", "g"))]
        assert [row[-2:] for row in rows] == [["1.5", "7"]] * 2 + [["2", "0.5"]] * 2


def dead_one_and(server):
    """Serves as the name server of two brokers, of which one is dead; the topics are those of the other."""
    data = [BrokerData("c", name, {0: at}) for name, at in (("a", "127.0.0.1:1"), ("b", server.address))]
    cluster = ClusterBody({one.broker_name: one for one in data}, {"c": frozenset("ab")})
    answers = {
        RequestCode.GET_BROKER_CLUSTER_INFO: cluster,
        RequestCode.GET_ALL_TOPIC_LIST_FROM_NAMESERVER: NamesBody(frozenset(("orders", "unread"))),
    }

    def serve(end, _number):
        codec = Codec()
        while data := end.recv(1 << 16):
            for asked in codec.receive(data):
                assert isinstance(asked, Asked)
                answer = Response(ResponseCode.SUCCESS, body=answers[RequestCode(asked.request.code)])
                end.sendall(b"".join(codec.answer(asked, answer)))

    return ListeningServer(serve)


@pytest.mark.parametrize("command", [["clients"], ["top", "--once"]])
def test_a_dead_broker_hides_no_other(seglog: Seglog, busy, command):
    with dead_one_and(busy) as names:
        ran = seglog(*command, names.address, "--json")
        assert ran.exit_code == CannotConnectError.exit_code
        (dead,) = [line for line in ran.lines if line["kind"] == "unreachable"]
        assert (dead["broker"], dead["address"]) == ("a", "127.0.0.1:1")
        assert {line["broker"] for line in ran.lines} == {"a", "b"}
        (error,) = ran.stderr.splitlines()
        assert "127.0.0.1:1" in json.loads(error)["error"]
        shown = seglog(*command, names.address).stdout
        assert "a at 127.0.0.1:1 is not shown: " in shown
        assert "billing" in shown


def test_top_goes_on_while_nothing_answers(busy, command_line, start_child):
    line = [*command_line, "top", "--interval", "0.2"]
    with dead_one_and(busy) as names:
        process = start_child([*line, names.address], stdout=subprocess.PIPE, text=True)
        said = not_none(process.stdout)
        assert any(line.startswith("b at ") for line in said)
        names.close()
        assert any(line.startswith(f"the name server at {names.address} is not shown: ") for line in said)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=patience_s(60))
    assert process.returncode == 130


def test_tables_of_a_low_terminal_share_its_rows():
    view = View(
        "b", "h:1", {}, [TopicRow(f"t{at}", 1, 1) for at in range(30)], [GroupRow("g", "t", 1, 1, 1)] * 30
    )
    silent = Unreachable("x", "h:2", CannotConnectError("h:2 cannot be connected to"))
    lines = list(drawn([view, view, silent], 80, 30))
    assert len(lines) <= 30
    assert sum(line.startswith("GROUP") for line in lines) == 2
    assert lines[-2] == "x at h:2 is not shown: h:2 cannot be connected to"
    assert len(list(drawn([view], 80, 60))) == 2 + 2 + 12 + 2 + 12 + 1


def test_a_terminal_is_drawn_until_it_is_interrupted(busy):
    stopped = []

    def stop_behind_two(running, sent):
        if sent.count(b"broker-a at") >= 2 and not stopped:
            stopped.append(running.pid)
            os.kill(running.pid, signal.SIGINT)

    words = ["top", busy.address, "--interval", "0.2"]
    shown = on_screen(words, 80, {"COLUMNS": "80", "LINES": "40"}, look=stop_behind_two)
    assert stopped
    assert (shown.exit_code, "Traceback" in shown.text) == (130, False)


@pytest.mark.parametrize(
    ("number", "name"),
    [
        (0, "V3_0_0_SNAPSHOT"), (62, "V3_1_8_SNAPSHOT"), (121, "121"), (392, "V4_9_0_SNAPSHOT"),
        (401, "V4_9_4"), (413, "V5_0_0"), (477, "V5_3_2"), (493, "V5_4_0"), (505, "V5_4_6"),
    ],
)  # fmt: skip
def test_versions_are_called_as_by_rocketmq(number, name):
    assert version_name(number) == name


@pytest.mark.parametrize("form", [[], ["--json"]])
@pytest.mark.parametrize("command", [["clients"], ["top", "--once"]])
def test_no_client_acts_upon_the_terminal_of_who_looks(seglog: Seglog, server, command, form):
    peer = Peer(HOSTILE, Host(b"\x7f\0\0\1", 1), language=HOSTILE, is_remote=True)
    data = ConsumerData(HOSTILE, (SubscriptionData(HOSTILE, HOSTILE, version=1),))
    body = HeartbeatBody(HOSTILE, (HOSTILE,), (data,))
    assert server.broker.answer(Request(RequestCode.HEART_BEAT, body=body), peer).code is ResponseCode.SUCCESS
    ran = seglog(*command, server.address, *form)
    text = ran.stdout_bytes.decode() + ran.stderr
    assert ran.exit_code == 0, text
    assert "FORGED" in text or command[0] == "top"
    assert not ACTS.search(text), text
    assert not any(line.startswith("FORGED") for line in text.splitlines())
