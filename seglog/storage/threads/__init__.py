"""Threads of an open store: one that repeats, one that works on demand, and waiters for queues.

They take their clock as an argument and end with the store.

Called by writer, flush, seals and openings.
Truth: none; a thread that fails reports to the store's latch.
"""
