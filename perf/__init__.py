"""Benches of the store beside its peers: ``python -m perf --help``.

Every figure is taken in a process of its own and checked for what it claims to have done; contestants take
turns within each round, so that whatever else the machine does meets all of them, and ratios are formed
within a round.
"""
