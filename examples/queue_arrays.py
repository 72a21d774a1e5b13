"""A store as numpy arrays: rates and sizes of a queue without an object for each message.

`python queue_arrays.py ~/store TopicA` reads what a broker wrote, also while it runs. Without arguments the
program writes a store of its own first.
"""

import sys

import numpy as np

from seglog import MessageStore

path, topic = sys.argv[1:3] if len(sys.argv) > 2 else ("arrays.store", "orders")
if len(sys.argv) <= 2:
    with MessageStore.open(path) as store:
        store.put_batch(topic, [b"x" * size for size in range(1, 1001)])

with MessageStore.open(path, read_only=True) as store:
    for place in store.queues():
        if place.topic != topic:
            continue
        queue = store.queue(place.topic, place.queue_id)
        units = queue.units()  # a view of the file: 20 bytes a message, none copied
        stored_ms = queue.timestamps()
        seconds = max(1, int(stored_ms.max() - stored_ms.min()) // 1000)
        print(f"{topic}/{place.queue_id}: {len(queue)} messages, {len(queue) / seconds:.0f} a second")
        print("record sizes, quartiles:", np.percentile(units["size_bytes"], [25, 50, 75]).tolist())
        print("ten largest:", np.argsort(units["size_bytes"])[-10:].tolist())
        assert int(units["size_bytes"].max()) >= 1000
