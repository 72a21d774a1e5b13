"""index_check."""
