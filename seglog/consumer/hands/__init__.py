"""Messages in the hands of a listener: one by one or in batches, and what became of each.

Called by the services of consumers, where their pools run that.
Truth: none.
"""
