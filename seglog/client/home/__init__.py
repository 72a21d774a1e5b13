"""Homes: the one thread or loop that may change a client's state, and the timers that run there.

Called by clients and their links.
Truth: none.
"""
