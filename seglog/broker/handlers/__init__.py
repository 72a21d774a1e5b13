"""Handlers: which function answers which request, one table for callers in process and for the wire.

Called by the broker.
Truth: RocketMQ's codes and the order of its checks.
"""
