"""Commands that read: messages, files, units and records, without opening the store for writing."""
