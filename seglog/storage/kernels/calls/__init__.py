"""Native calls of an open store: puts and pulls that execute no Python code, and the tails that they share.

Called by the rooms that write and read a store; the loops over records are in the other kernel modules.
Truth: the Python implementation of the same calls, which also does the calls that the native one leaves.
"""
