"""State: the parts that the handlers of a broker use, as one value.

Called by pulls, sends and handlers.
Truth: the tables that it refers to.
"""
