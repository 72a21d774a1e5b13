"""Clients of RocketMQ at work, each in a process of its own: ours, Java's, and the one from PyPI."""
