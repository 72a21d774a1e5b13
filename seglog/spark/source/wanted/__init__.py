"""wanted."""
