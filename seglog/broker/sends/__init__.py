"""sends."""
