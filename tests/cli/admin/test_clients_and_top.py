"""Who is connected to a broker, and what it does, asked over a connection."""

from __future__ import annotations

import os
import pty
import re
import select
import signal
import subprocess
import time

import pytest

from seglog import ConsumeFrom, OrderlyConsumer, Producer
from seglog.cli.admin.top_view import WIDTH, GroupRow, TopicRow, View
from seglog.errors import CannotConnectError, InvalidArgumentError
from seglog.remoting.codes import RequestCode, ResponseCode
from seglog.remoting.command import Request
from seglog.remoting.heartbeat import ConsumerData, HeartbeatBody
from seglog.remoting.peer import Peer
from seglog.remoting.subscription import SubscriptionData
from seglog.remoting.versions import version_name
from seglog.storage.format.record import Host
from tests.support.asks import wait_until
from tests.support.command_line import Seglog
from tests.support.hostile.text import ACTS, HOSTILE
from tests.support.listening import BrokerServer
from tests.support.machine.patience import patience_s


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
    assert shown[2].startswith("lag 3  locks ")
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


def test_a_terminal_is_drawn_until_it_is_interrupted(busy, command_line):
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        [*command_line, "top", busy.address, "--interval", "0.2"],
        stdin=theirs,
        stdout=theirs,
        stderr=subprocess.PIPE,
        env={**os.environ, "TERM": "xterm", "COLUMNS": "80", "LINES": "40"},
    ) as process:
        os.close(theirs)
        seen, until_s = b"", time.monotonic() + patience_s(60)
        while seen.count(b"broker-a at") < 2 and time.monotonic() < until_s:
            if select.select([ours], [], [], 0.5)[0]:
                seen += os.read(ours, 1 << 16)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=patience_s(60))
    os.close(ours)
    assert seen.count(b"broker-a at") >= 2
    assert (process.returncode, b"Traceback" in errors) == (130, False)


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
