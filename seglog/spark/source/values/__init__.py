"""Columns: their definitions, and code that makes each for many records at once, without an object each."""
