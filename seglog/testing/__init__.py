"""A broker for tests: virtual time, clients of its own, and the same files for the same calls.

    with VirtualBroker.at(tmp_path) as broker:
        broker.producer().send("orders", b"42 apples", delay_level=18)
        broker.advance("2h")
        assert [message.body for message in broker.messages("orders")] == [b"42 apples"]

With pytest the fixture ``seglog_broker`` is such a broker; ``seglog_server`` makes a :class:`ServedBroker`.
The broker's timed work is done in :meth:`~VirtualBroker.advance`, at its virtual time and in the thread of
the test. The threads of a store that is open for writing run beside the test; no answer and no byte depends
on their scheduling, and they end with the broker.

Called by tests of applications, and by the pytest plugin.
Truth: the store of the broker.
"""

from seglog.testing.for_tests import ForTests as ForTests
from seglog.testing.served_broker import ServedBroker as ServedBroker
from seglog.testing.virtual_broker import QUEUE_FILE_SIZE_BYTES as QUEUE_FILE_SIZE_BYTES
from seglog.testing.virtual_broker import SEGMENT_SIZE_BYTES as SEGMENT_SIZE_BYTES
from seglog.testing.virtual_broker import RoomyFiles as RoomyFiles
from seglog.testing.virtual_broker import VirtualBroker as VirtualBroker
