"""Pools, which call listeners: in threads of the consumer, as tasks of a loop, or where time is moved.

Called by consumers.
Truth: none; messages in a pool that is closed are delivered again.
"""
