"""A flood of sends over connections delays neither what keeps clients alive nor other clients."""

from __future__ import annotations

from dataclasses import replace

from seglog.remoting.codec import Codec
from seglog.remoting.codes import ResponseCode
from seglog.remoting.command import expect_header
from seglog.remoting.headers import SendMessageResponseHeader
from tests.server.conftest import ask, held_back
from tests.server.frames import answers, bytes_of
from tests.support.asks import beat_of, bodies_of, pull_from, send_to
from tests.support.machine.patience import wait_for_result, wait_until


def test_s4_49_a_heartbeat_is_answered_before_sends_of_its_own_connection_that_came_first(serve, dial):
    server, codec = serve(send_wait_ms=600_000), Codec()
    end = dial(server)
    end.sendall(bytes_of(codec, *(send_to("T") for _ in range(900)), beat_of("c1", "T")))
    found = answers(codec, end, 901)  # in the order in which they came
    assert list(found).index(900) < 900
    del found[900]
    headers = [expect_header(found[number], SendMessageResponseHeader) for number in range(900)]
    assert [each.queue_offset for each in headers] == list(range(900))


def test_a_client_among_flooding_ones_is_answered_before_they_are(serve, dial, join):
    server, codec = serve(send_wait_ms=600_000), Codec()
    modest, floods = join(server), [dial(server) for _ in range(4)]
    flood = bytes_of(codec, *(send_to("T") for _ in range(1_000)))
    ask(modest, beat_of("c1", "T"))
    with held_back(server):  # all of them are there before the first is looked at
        for end in floods:
            end.sendall(flood)
        asked = modest.ask(send_to("U", b"in between"), 60_000)
    wait_for_result(asked, idle_s=30)
    assert bodies_of(ask(modest, pull_from("U", 0))) == [b"in between"]
    for end in floods:
        reader = Codec()
        bytes_of(reader, *(send_to("T") for _ in range(1_000)))
        found = answers(reader, end, 1_000)
        assert all(each.code is ResponseCode.SUCCESS for each in found.values())
    store = server.broker.store
    assert store.max_offset("T", 0) == 4_000
    (between,) = (message.phy_offset for message in store.get("U", 0, 0, 1))
    earlier = sum(message.phy_offset < between for message in store.get("T", 0, 0, 4_000))
    assert earlier < 2_000


def test_what_a_client_has_sent_is_carried_out_though_it_hung_up(serve, dial):
    server, codec = serve(send_wait_ms=600_000), Codec()
    end = dial(server)
    end.sendall(bytes_of(codec, *(replace(send_to("T"), is_oneway=True) for _ in range(900))))
    end.close()
    wait_until(lambda: server.broker.store.max_offset("T", 0) == 900, idle_s=30)
    wait_until(lambda: server.server.connection_count == 0)


def test_s4_49_more_than_may_wait_is_answered_busy_and_the_connection_goes_on(serve, dial):
    server, codec = serve(queued_sends=1, send_wait_ms=600_000), Codec()
    end = dial(server)
    end.sendall(bytes_of(codec, *(send_to("T") for _ in range(900))))
    found = answers(codec, end, 900).values()
    stored = [each for each in found if each.code is ResponseCode.SUCCESS]
    busy = [each for each in found if each.code is ResponseCode.SYSTEM_BUSY]
    assert len(stored) + len(busy) == 900
    assert len(stored) == server.broker.store.max_offset("T", 0)
    assert busy
    assert {each.remark for each in busy} == {"[OVERLOAD]system busy, start flow control for a while"}
    end.sendall(bytes_of(codec, send_to("T")))
    assert [each.code for each in answers(codec, end, 1).values()] == [ResponseCode.SUCCESS]


def test_answers_of_all_clients_have_a_limit_and_who_reads_is_served(serve, dial, join):
    server = serve(all_answer_bytes=2 << 20, answer_bytes=64 << 20, stall_ms=600_000)
    reader, body = join(server), bytes(100_000)
    for _ in range(4):
        ask(reader, send_to("T", body))
    ask(reader, beat_of("c1", "T"))
    silent = [dial(server) for _ in range(6)]
    for end in silent:
        codec = Codec()
        end.sendall(bytes_of(codec, *(pull_from("T", 0) for _ in range(200))))
    shared = server.server._server._shared
    wait_until(lambda: shared.answer_bytes >= 2 << 20, idle_s=30)
    for _ in range(5):
        assert bodies_of(ask(reader, pull_from("T", 0)))[0] == body
    assert shared.answer_bytes < 8 << 20  # 80 MB were asked for
    for end in silent:
        end.close()
    wait_until(lambda: server.server.connection_count == 1)
    assert shared.answer_bytes == 0
