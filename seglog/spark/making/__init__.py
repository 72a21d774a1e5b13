"""What a store needs that is made beside the place where it will be: queues and key index, made by tasks.

Tasks write a log segment by segment, and leave beside it what follows from their records; other tasks make
queues and files of the index of that. Compactions and restores make their stores so: the driver does nothing
for each message. What tasks left for others is gone before the store is one.

Truth: the new log. Who checks a store that was made reads it again, whole.
"""
