"""The CommitLog of an open store: one sequence of mapped files, appended at one end, read anywhere.

Holds the log's limits, its holes, and the window of memory ahead of its end that is ready to be written.

Called by writer, readers and recovery.
Truth: this room is the truth; everything else of a store can be derived from its files.
"""
