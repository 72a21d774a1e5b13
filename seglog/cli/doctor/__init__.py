"""Commands that examine, repair and copy a store.

Each takes a store, calls the doctor and shows what it answers.
"""
