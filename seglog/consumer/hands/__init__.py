"""Hands messages to a listener, one by one or in batches, and notes the result of each.

Called by the services of consumers, in the threads or tasks of their pools.
Truth: none.
"""
