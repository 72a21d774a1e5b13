"""Makes queues and key index of a new store, in tasks, beside the place where the store will be.

Tasks write a log segment by segment, and write data derived from its records beside it; other tasks make
queues and index files from that. Compactions and restores make their stores in this way: the driver does no
work for each message. Files that tasks pass to other tasks are removed before the store is complete.

Truth: the new log. A check of the new store reads all of it again.
"""
