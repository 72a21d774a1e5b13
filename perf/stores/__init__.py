"""Stores that single benches work on, and the work that is done on them."""
