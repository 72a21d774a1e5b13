"""Consuming messages through a broker."""
