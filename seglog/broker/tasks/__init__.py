"""Duties of a broker that belong to no other room: saves, notices, the expiry of clients.

Called by the broker.
Truth: none; a late duty runs at once.
"""
