"""Damages, the campaign of them, and the laws that openings and repairs keep."""
