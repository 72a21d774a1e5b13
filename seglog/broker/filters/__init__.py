"""Filters: subscriptions by tags or SQL92, and their Bloom filters as RocketMQ keeps them.

Called by pulls and handlers.
Truth: the subscription of the group's clients.
"""
