"""An answer that takes long neither is found nor written by the loop, which serves other clients too."""

from __future__ import annotations

import threading
import time

from seglog.broker.tables import TopicConfig
from seglog.producer.producer import Producer
from seglog.remoting.admin_bodies import TopicStatsBody
from seglog.remoting.admin_headers import TopicHeader
from seglog.remoting.codec import Asked, Codec
from seglog.remoting.codes import RequestCode
from seglog.remoting.command import Request, expect_body
from seglog.remoting.later import Deferred
from seglog.remoting.topics import MAX_QUEUES
from tests.server.frames import answers, bytes_of
from tests.support.listening import BrokerServer
from tests.support.machine.patience import patience_s, wait_for_result

STATS = Request(RequestCode.GET_TOPIC_STATS_INFO, TopicHeader("T"))


def cpu_s(thread: threading.Thread) -> float:
    assert thread.ident is not None
    return time.clock_gettime(time.pthread_getcpuclockid(thread.ident))


def test_all_queues_of_a_topic_are_listed_without_the_loop(serve, dial):
    others = {*threading.enumerate()}  # one of an earlier test may be ending
    server, codec = serve(), Codec()
    server.broker.topics.put(TopicConfig("T", MAX_QUEUES, MAX_QUEUES))
    tool, (loop,) = (
        dial(server),
        [one for one in {*threading.enumerate()} - others if one.name == "seglog-server"],
    )
    tool.settimeout(patience_s(60))

    answer = server.broker.answer(STATS)
    assert isinstance(answer, Deferred)
    found = wait_for_result(answer, idle_s=60)
    begun_s = time.thread_time()
    codec.answer(Asked(1, STATS), found)
    to_write_s = time.thread_time() - begun_s

    begun_s = cpu_s(loop)
    tool.sendall(bytes_of(codec, STATS))
    (listed,) = answers(codec, tool, 1).values()
    taken_s = cpu_s(loop) - begun_s
    assert len(expect_body(listed, TopicStatsBody).offsets) == MAX_QUEUES
    # To find it takes a sixth of that; the loop only sends it. CPU time does not grow on a busy machine.
    assert taken_s < to_write_s / 10, (taken_s, to_write_s)


def test_a_batch_of_many_small_messages_is_acknowledged_by_the_ids_of_all(tmp_path):
    count = 33_000
    timeout_ms = int(patience_s(60) * 1_000)
    with BrokerServer(tmp_path, segment_bytes=8 << 20) as server, Producer(server.address) as producer:
        sent = producer.send_batch("T", [b"x"] * count, queue_id=0, timeout_ms=timeout_ms)
        assert len(set(sent.offset_message_ids)) == count
        assert sum(map(len, sent.offset_message_ids)) > 1 << 20
        assert server.broker.store.max_offset("T", 0) == count
