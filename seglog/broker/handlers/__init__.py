"""Which function answers which request: one table for callers in process and for the wire."""
