"""SQLite for message logs: an embedded storage engine over RocketMQ's own files."""
