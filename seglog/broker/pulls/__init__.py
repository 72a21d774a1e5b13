"""pulls."""
