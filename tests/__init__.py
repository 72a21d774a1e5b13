"""Tests, by the rooms of the package."""
