"""The doctor: says what is wrong with a store that is not open, repairs it, and takes a repair back.

Everything lives in rooms, each a floor of ``rooms.toml``. Other top rooms import the names that a room
exports.

Truth: the store's log; a plan is shown before it is applied, and every change can be undone bit for bit.
"""
