"""State: what the handlers of a broker work on, as one value.

Called by pulls, sends and handlers.
Truth: the tables that it refers to.
"""
