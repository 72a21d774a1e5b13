"""The doctor: checks a store that is not open, repairs it, and undoes a repair.

The code is in rooms, each on a floor of ``rooms.toml``. Other top rooms import the names that a room exports.

Truth: the store's log; a plan is shown before it is applied, and every change can be undone bit for bit.
"""
