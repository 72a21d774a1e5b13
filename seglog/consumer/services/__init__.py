"""What gives the messages of queues to listeners: side by side, or each queue in order.

Called by consumers.
Truth: memory only; how often a message has failed in order is known here alone, and begins anew elsewhere.
"""
