"""Pulls: the messages that a pull returns, the offset that it commits, and how long it is held.

Holds the checks in RocketMQ's order and the table of held pulls; held pulls occupy no thread.

Called by the handlers.
Truth: the queue and the group's offset at the moment of the pull.
"""
