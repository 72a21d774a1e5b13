"""The engine: an append-only CommitLog in RocketMQ's format, and the queues and indexes that follow from it.

``store`` holds :class:`~seglog.storage.store.MessageStore`, the embedded API; ``opening`` brings a store
directory into the state that a store serves; ``retention`` deletes old files. All other modules are in rooms,
each on a floor of ``rooms.toml``: a room imports rooms of lower floors only. Other top rooms import the
modules of this folder, and the names that a room exports.

Truth: the log. Queues, index, checkpoint and tables are derived; they are rebuilt or clamped, never trusted
over it.
"""
