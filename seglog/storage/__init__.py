"""The engine: an append-only CommitLog in RocketMQ's format and the queues that index it."""
