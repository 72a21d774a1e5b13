"""Sends: from a message's arrival to the store, and messages that come back to be tried again.

Called by the handlers.
Truth: the store; an answer follows the durability that was asked for.
"""
