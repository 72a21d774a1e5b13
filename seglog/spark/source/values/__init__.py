"""Columns: which there are, and how each is made of many records at once, without an object per record."""
