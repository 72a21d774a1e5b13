"""Stores, records and files that tests work on."""
