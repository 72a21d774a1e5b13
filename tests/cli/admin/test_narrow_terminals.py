"""Clients and changes of offsets fit narrow terminals: what has no room goes on below; nothing is cut."""

from __future__ import annotations

import pytest
from rich.cells import cell_len

from seglog.clock import VirtualClock
from seglog.remoting.codes import RequestCode, ResponseCode
from seglog.remoting.command import Request
from seglog.remoting.heartbeat import ConsumerData, HeartbeatBody
from seglog.remoting.peer import Peer
from seglog.remoting.subscription import SubscriptionData
from seglog.storage.format.record import Host
from tests.support.brokers import open_broker, send
from tests.support.command_line import Seglog
from tests.support.command_line.screen import shown_on_terminal
from tests.support.listening import BrokerServer

LONG = "the-client-of-the-billing-service-in-the-second-room-" + "x" * 60
WIDTHS = pytest.mark.parametrize("columns", [80, 60])


def assert_whole(lines, columns, rows):
    """Fails unless each row begins at the border, goes on indented, fits, and shows all of its cells."""
    assert max(map(cell_len, lines)) <= columns
    firsts = [at for at, line in enumerate(lines) if not line.startswith(" ")]
    assert len(firsts) == 1 + len(rows)
    assert len(lines) > len(firsts)
    for cells, begin, end in zip(rows, firsts[1:], [*firsts[2:], len(lines)], strict=True):
        shown = "".join(lines[begin:end]).replace(" ", "")
        assert sorted(shown) == sorted("".join(cells).replace(" ", ""))
    assert not any("…" in line for line in lines)


@WIDTHS
def test_clients_are_shown_whole(seglog: Seglog, tmp_path, columns):
    with BrokerServer(tmp_path / "served") as server:
        peer = Peer(LONG, Host(b"\x7f\0\0\1", 4242), language="PYTHON", is_remote=True)
        topics = tuple(SubscriptionData(f"topic-{number}", "TagA || TagB", version=1) for number in range(9))
        body = HeartbeatBody(LONG, ("of-producers",), (ConsumerData("billing", topics),))
        answer = server.broker.dispatch(Request(RequestCode.HEART_BEAT, body=body), peer)
        assert answer.code is ResponseCode.SUCCESS
        lines = shown_on_terminal(["clients", server.address], columns)
        found = seglog("clients", server.address, "--json").lines
    rows = [
        (
            *(line["group"], line["kind"], line["client"], line["address"], line["language"]),
            line["version"],
            ", ".join(f"{topic} {tags}" for topic, tags in line.get("subscriptions", {}).items()) or "-",
        )
        for line in found
    ]
    assert {row[2] for row in rows} == {LONG}
    assert_whole(lines, columns, rows)


@WIDTHS
def test_changes_of_offsets_are_shown_whole(seglog: Seglog, tmp_path, columns):
    clock = VirtualClock(1_800_000_000_000)
    with open_broker(tmp_path / "s", clock) as broker:
        for _ in range(4):
            send(broker, "orders-of-all-shops")
        for offset in (3, 4, 1):
            broker.offsets.commit("billing-of-all-shops", "orders-of-all-shops", 0, offset, LONG)
            clock.advance(1_000)
            broker.persist()
    piped = seglog("offsets", "log", tmp_path / "s").stdout.splitlines()
    lines = shown_on_terminal(["offsets", "log", tmp_path / "s"], columns)
    assert_whole(lines, columns, [row.split() for row in piped[1:]])
    assert sum("BACKWARDS" in line for line in lines) == 1


def test_a_terminal_with_room_shows_a_row_in_a_line(seglog: Seglog, tmp_path):
    with open_broker(tmp_path / "s", VirtualClock()) as broker:
        send(broker, "T")
        broker.offsets.commit("g", "T", 0, 1, "c")
    piped = seglog("offsets", "log", tmp_path / "s").stdout.splitlines()
    assert shown_on_terminal(["offsets", "log", tmp_path / "s"], 200) == piped
