"""Services, which give messages of queues to listeners: concurrently, or each queue in order.

Called by consumers.
Truth: memory only; an orderly consumer's failures are counted only here, and start at 0 in another member.
"""
