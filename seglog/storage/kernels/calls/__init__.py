"""Native calls of an open store: puts and pulls without a line of Python, and the tails that they share.

Called by the rooms that write and read a store; the loops over records are in the rest of the kernels.
Truth: the Python ways of the same calls, which take over what these leave.
"""
