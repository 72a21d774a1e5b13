"""Crashes: a disk in memory that loses power, processes that are killed, files whose calls fail."""
