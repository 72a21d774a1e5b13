"""Sampling: contestants in turn, each sample in a process of its own."""
