"""Duties of a broker that belong to none of its other rooms: saving, notices, clients that are gone.

Called by the broker.
Truth: none; a duty that is late is done at once.
"""
