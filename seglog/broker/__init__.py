"""A RocketMQ broker over a message store: topics, offsets, queue locks and the requests about them.

``broker`` holds :class:`~seglog.broker.broker.Broker`, the embedded API; ``assembly`` wires the parts. Other
top rooms import these and the names that a room exports.

Truth: the message store; tables are files beside it in RocketMQ's format.
"""
