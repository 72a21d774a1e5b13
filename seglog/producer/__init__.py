"""Sending messages through a broker."""
