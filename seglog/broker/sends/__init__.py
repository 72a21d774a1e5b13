"""Sends: the checks and the append of a message, and messages that consumers send back for a retry.

Called by the handlers.
Truth: the store; an answer is given once the requested durability is reached.
"""
