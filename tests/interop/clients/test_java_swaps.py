"""One directory under the real broker, under ours and under the real one again, while Java's clients live on.

Each serves it at the same ports, so clients notice no more than that their broker was away.
"""

from __future__ import annotations

from typing import Final

import pytest

from seglog.remoting.codes import RequestCode
from seglog.remoting.command import Request
from seglog.remoting.headers import CreateTopicHeader
from seglog.server.listening import Listener
from tests.interop.clients.conftest import DRAWN, RELEASES
from tests.interop.judging.java_worker import JavaWorker
from tests.interop.judging.places import rocketmq_at
from tests.interop.judging.questions import Geometry
from tests.support.brokers import QUEUE_FILE_BYTES, SEGMENT_BYTES
from tests.support.listening import BrokerServer
from tests.support.machine.patience import wait_until
from tests.support.material.config_files import read_config
from tests.support.scale import is_full, scaled

pytestmark = pytest.mark.interop

GEOMETRY: Final = Geometry(SEGMENT_BYTES, QUEUE_FILE_BYTES, 500, 2_000)
QUEUES: Final = 4
MESSAGES: Final = scaled(150, 2_000)
"""How many are acknowledged and consumed, at least, before the broker changes."""


def committed(path):
    """Returns what the group has committed, queue by queue, as the directory has it."""
    table = read_config(path / "config" / "consumerOffset.json")["offsetTable"].get("T@g", {})
    return {int(queue_id): offset for queue_id, offset in table.items()}


@pytest.mark.parametrize("release", RELEASES if is_full() else [DRAWN])
def test_a_directory_changes_its_broker_and_clients_lose_nothing(judge, tmp_path, release):
    path, offsets = tmp_path / "store", {}
    three = Listener.usual_three(port=0, broker_port=0)
    ports = [each.port for each in three]
    for each in three:
        each.close()
    with JavaWorker(f"127.0.0.1:{ports[0]}", tmp_path / "clients") as clients:

        def go_on():
            """Returns once clients are a good deal farther; what they were given again was not committed."""
            sent, given = len(clients.sent["p"]), len(clients.given["c"])
            wait_until(lambda: len(clients.sent["p"]) >= sent + MESSAGES, idle_s=60)
            wait_until(lambda: len(clients.given["c"]) >= given + MESSAGES, idle_s=60)
            assert all(
                place.queue_offset >= offsets.get(place.queue_id, 0) for place in clients.given["c"][given:]
            )

        def is_farther(now):
            """Returns whether all queues are farther than when the broker before was stopped."""
            return all(now.get(queue_id, 0) > offsets.get(queue_id, 0) for queue_id in range(QUEUES))

        with rocketmq_at(path, ports, release, GEOMETRY) as broker:
            header = CreateTopicHeader("T", "TBW102", QUEUES, QUEUES, 6)
            assert broker.ask(Request(RequestCode.UPDATE_AND_CREATE_TOPIC, header)).code == 0
            clients.sent["p"] = []
            clients.join("c", "g", "T", "CLUSTERING")
            clients.send("p", "T", QUEUES)
            go_on()
            wait_until(lambda: is_farther(broker.offsets().get("T@g", {})), idle_s=30)
        assert is_farther(committed(path))
        offsets = committed(path)
        with BrokerServer(path, ports[0], record_crc=False, broker_port=ports[1]) as server:
            assert server.broker.offsets.all()
            go_on()
            # Java's client commits every 5 s, and consumes as many in less.
            ours = server.broker.offsets
            wait_until(
                lambda: is_farther({each: ours.query("g", "T", each) or 0 for each in range(QUEUES)}),
                idle_s=30,
            )
        assert is_farther(committed(path))
        offsets = committed(path)
        with rocketmq_at(path, ports, release, GEOMETRY) as broker:
            go_on()
            count = clients.hush("p")
            acknowledged = set(clients.sent["p"])
            assert len(acknowledged) == count
            wait_until(lambda: acknowledged <= set(clients.given["c"]), idle_s=60)
            ends = {
                queue_id: 1
                + max(each.queue_offset for each in clients.given["c"] if each.queue_id == queue_id)
                for queue_id in range(QUEUES)
            }
            wait_until(lambda: broker.offsets()["T@g"] == ends, idle_s=30)
    assert {place.queue_offset for place in clients.given["c"] if place.queue_id == 0} == set(range(ends[0]))
