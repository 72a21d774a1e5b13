"""Where listeners are called: in threads of the consumer, as tasks of a loop, or where time is moved.

Called by consumers.
Truth: none; what a pool is closed over comes again.
"""
