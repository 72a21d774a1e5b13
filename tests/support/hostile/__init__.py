"""Stores made by an attacker, and every command that such a store is given to."""
