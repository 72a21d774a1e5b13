"""Commands that examine, repair and copy a store.

Each command takes a store, calls :mod:`seglog.doctor` and prints the result.
"""
