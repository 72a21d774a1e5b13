"""A broker for tests: virtual time, clients of its own, and the same files for the same calls.

    with VirtualBroker.at(tmp_path) as broker:
        broker.producer().send("orders", b"42 apples", delay_level=18)
        broker.advance("2h")
        assert [message.body for message in broker.messages("orders")] == [b"42 apples"]

With pytest the fixture ``seglog_broker`` is one of these; ``seglog_server`` makes :class:`ServedBroker`.
What a broker does by time it does in :meth:`~VirtualBroker.advance`, at its moment and in the thread of the
test. Beside the test run the threads that every store has which is open for writing; no answer and no byte
depends on when they have their turns, and they end with the broker.

Called by tests of applications, and by the pytest plugin.
Truth: the store that a broker is opened at.
"""

from seglog.testing.for_tests import ForTests as ForTests
from seglog.testing.served_broker import ServedBroker as ServedBroker
from seglog.testing.virtual_broker import QUEUE_FILE_SIZE_BYTES as QUEUE_FILE_SIZE_BYTES
from seglog.testing.virtual_broker import SEGMENT_SIZE_BYTES as SEGMENT_SIZE_BYTES
from seglog.testing.virtual_broker import RoomyFiles as RoomyFiles
from seglog.testing.virtual_broker import VirtualBroker as VirtualBroker
