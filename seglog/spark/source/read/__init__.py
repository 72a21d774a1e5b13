"""Batch reads: from options and filters to splits, and from a split to record batches. Tasks call this."""
