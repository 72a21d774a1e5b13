"""Pulls: which messages a pull gets, what it commits, and how long it waits.

Holds the checks in RocketMQ's order and the table of held pulls; none of them has a thread.

Called by the handlers.
Truth: the queue and the group's offset at the moment of the pull.
"""
