"""Threads of an open store: one that repeats, one that works on demand, and waiters for queues.

What waits for a time takes its clock as an argument; every thread ends with the store.

Called by writer, flush, seals and openings.
Truth: none; a thread that fails reports to the store's latch.
"""

from seglog.storage.threads.on_demand import OnDemand as OnDemand
from seglog.storage.threads.waiting import WouldWaitError as WouldWaitError
from seglog.storage.threads.waiting import check_may_wait as check_may_wait
from seglog.storage.threads.waiting import may_wait as may_wait
from seglog.storage.threads.waiting import without_waiting as without_waiting
