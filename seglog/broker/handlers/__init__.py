"""Handlers: the function that answers each request code, in one table for calls in process and over the wire.

Called by the broker.
Truth: RocketMQ's codes and the order of its checks.
"""
