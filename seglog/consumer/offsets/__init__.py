"""Where a group goes on, and where it begins: its offsets at brokers, or of one client in a local file.

Called by the consumer and by its pulls.
"""
