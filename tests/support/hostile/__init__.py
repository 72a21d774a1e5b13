"""Stores that somebody made who wishes no good, and every command that such a store is given to."""
