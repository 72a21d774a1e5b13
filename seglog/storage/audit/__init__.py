"""Holds a store's files against each other in splits that can be read in any order, anywhere, at once."""
