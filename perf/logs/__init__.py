"""Logs in Python that workloads run on: ours, and peers as a Python program would use them."""
