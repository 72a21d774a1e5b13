"""The CommitLog of an open store: one sequence of mapped files, appended at one end, read anywhere.

Holds the log's limits, its holes, and the window of memory ahead of its end whose pages are ready.

Called by writer, readers and recovery.
Truth: this room holds the truth; all other files of a store can be rebuilt from the log.
"""
